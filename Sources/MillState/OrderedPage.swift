import MillColumnar

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A view of one page of an `OrderedTable`: entries sorted by key, in a slotted layout. A pointer, copied freely.
///
/// Byte layout, native byte order:
///
///     0   u16   level: 0 leaf, otherwise the height of an inner page
///     2   u16   count of entries
///     4   u32   heapStart: lowest byte used by records; records fill the page from its end downwards
///     8   u32   garbage: bytes of removed records inside the heap
///     12  u16   prefixCount: first bytes that the keys of all compared entries share, at most 32
///     14  u16   payloadBytes, a multiple of 8
///     16  u32   next page of the level, all ones for none
///     20  u32   previous page of the level
///     24  u32   pageBytes
///     28  u32   longest key held in the page; a longer one lies in an overflow allocation
///     32  32 B  the shared prefix
///     64  128 B 16 hints: from 32 entries on, hint i is the head of entry (i + 1) * (count / 17)
///     192       slots of 16 bytes in key order: u64 head, u32 keyCount, u16 offset of the record, u16 zero
///
/// A record starts at a multiple of 8: the payload, then the key (padded to 8), or the address of a longer key. Sealing a
/// page for disk replaces that address by a page number; nothing else in a page depends on where it lies in memory.
///
/// A head is the 8 bytes of the key after the shared prefix as a big-endian number, so that a search reads neighbouring slots
/// and touches a record only where heads tie. The hints lead a search to a seventeenth of the slots: it waits for memory
/// three times (header and hints, slots, record) where a binary search over the slots of a cold page waits eight times. (The
/// idea is LeanStore's.) In an inner page the payload is a child's page number, entry i leads to keys at
/// or above its own key, and entry 0 leads to everything below entry 1: its key is not compared and not part of the prefix.
struct OrderedPage {
    let base: UnsafeMutableRawPointer

    static let headerBytes = 192
    static let hintsOffset = 64
    static let hintCount = 16
    static let hintedEntriesMin = 32
    static let slotBytes = 16
    static let prefixBytesMax = 32
    static let noPage = UInt32.max

    init(_ base: UnsafeMutableRawPointer) { self.base = base }

    /// Makes the page empty.
    func format(level: Int, payloadBytes: Int, pageBytes: Int) {
        base.initializeMemory(as: UInt8.self, repeating: 0, count: Self.headerBytes)
        base.storeBytes(of: UInt16(level), toByteOffset: 0, as: UInt16.self)
        base.storeBytes(of: UInt16(payloadBytes), toByteOffset: 14, as: UInt16.self)
        base.storeBytes(of: UInt32(pageBytes), toByteOffset: 24, as: UInt32.self)
        base.storeBytes(of: UInt32(pageBytes / 8), toByteOffset: 28, as: UInt32.self)
        heapStart = pageBytes
        next = Self.noPage
        previous = Self.noPage
    }

    var level: Int { Int(base.load(as: UInt16.self)) }
    var isLeaf: Bool { level == 0 }
    var count: Int {
        get { Int(base.load(fromByteOffset: 2, as: UInt16.self)) }
        nonmutating set { base.storeBytes(of: UInt16(truncatingIfNeeded: newValue), toByteOffset: 2, as: UInt16.self) }
    }
    var heapStart: Int {
        get { Int(base.load(fromByteOffset: 4, as: UInt32.self)) }
        nonmutating set { base.storeBytes(of: UInt32(truncatingIfNeeded: newValue), toByteOffset: 4, as: UInt32.self) }
    }
    var garbage: Int {
        get { Int(base.load(fromByteOffset: 8, as: UInt32.self)) }
        nonmutating set { base.storeBytes(of: UInt32(truncatingIfNeeded: newValue), toByteOffset: 8, as: UInt32.self) }
    }
    var prefixCount: Int {
        get { Int(base.load(fromByteOffset: 12, as: UInt16.self)) }
        nonmutating set { base.storeBytes(of: UInt16(truncatingIfNeeded: newValue), toByteOffset: 12, as: UInt16.self) }
    }
    var payloadBytes: Int { Int(base.load(fromByteOffset: 14, as: UInt16.self)) }
    var next: UInt32 {
        get { base.load(fromByteOffset: 16, as: UInt32.self) }
        nonmutating set { base.storeBytes(of: newValue, toByteOffset: 16, as: UInt32.self) }
    }
    var previous: UInt32 {
        get { base.load(fromByteOffset: 20, as: UInt32.self) }
        nonmutating set { base.storeBytes(of: newValue, toByteOffset: 20, as: UInt32.self) }
    }
    var pageBytes: Int { Int(base.load(fromByteOffset: 24, as: UInt32.self)) }
    var inlineKeyBytesMax: Int { Int(base.load(fromByteOffset: 28, as: UInt32.self)) }
    var prefix: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base + 32, count: prefixCount) }

    /// First entry whose key is compared.
    var firstCompared: Int { isLeaf ? 0 : 1 }
    /// Bytes between the slots and the heap.
    var contiguousRoom: Int { heapStart &- Self.headerBytes &- count &* Self.slotBytes }
    /// Bytes of entries with their slots.
    var usedBytes: Int { pageBytes - heapStart - garbage + count * Self.slotBytes }

    // MARK: Entries

    @inline(__always) private func slot(_ index: Int) -> UnsafeMutableRawPointer { base + (Self.headerBytes &+ index &* Self.slotBytes) }
    @inline(__always) func head(_ index: Int) -> UInt64 { slot(index).load(as: UInt64.self) }
    @inline(__always) func keyCount(_ index: Int) -> Int { Int(slot(index).load(fromByteOffset: 8, as: UInt32.self)) }
    @inline(__always) func offset(_ index: Int) -> Int { Int(slot(index).load(fromByteOffset: 12, as: UInt16.self)) }
    @inline(__always) func payload(_ index: Int) -> UnsafeMutableRawPointer { base + offset(index) }

    /// The whole key, valid until the page changes.
    @inline(__always) func key(_ index: Int) -> UnsafeRawBufferPointer {
        let count = keyCount(index)
        let stored = base + (offset(index) &+ payloadBytes)
        if count <= inlineKeyBytesMax { return UnsafeRawBufferPointer(start: stored, count: count) }
        return UnsafeRawBufferPointer(start: UnsafeRawPointer(bitPattern: stored.load(as: UInt.self)), count: count)
    }

    func child(_ index: Int) -> UInt32 { payload(index).load(as: UInt32.self) }

    /// Bytes of a record in the heap.
    func recordBytes(keyCount: Int) -> Int { payloadBytes &+ (keyCount <= inlineKeyBytesMax ? (keyCount &+ 7) & ~7 : 8) }

    // MARK: Search

    /// The first compared entry whose key is not below `key`, and whether it equals it.
    func lowerBound(_ key: UnsafeRawBufferPointer) -> (index: Int, isEqual: Bool) {
        let count = count
        let first = firstCompared
        let skip = prefixCount
        if skip > 0 {
            let shared = min(skip, key.count)
            let order = shared == 0 ? 0 : memcmp(key.baseAddress.unsafelyUnwrapped, base + 32, shared)
            if order != 0 { return (order < 0 ? min(first, count) : count, false) }
            if key.count < skip { return (min(first, count), false) }
        }
        let head = KeyHead.load(UnsafeRawBufferPointer(start: key.baseAddress.map { $0 + skip }, count: key.count &- skip))
        var low = first
        var high = count
        if count >= Self.hintedEntriesMin {
            let hints = (base + Self.hintsOffset).assumingMemoryBound(to: UInt64.self)
            var below = 0
            for index in 0..<Self.hintCount { below &+= Int(unsafeBitCast(hints[index] < head, to: UInt8.self)) }
            let distance = count / (Self.hintCount &+ 1)
            if below > 0 { low = below &* distance &+ 1 }
            if below < Self.hintCount { high = (below &+ 1) &* distance }
        }
        // Counts instead of branching: the loads go out together, and a mispredicted branch costs more than a few compares.
        var below = 0
        for index in low..<high { below &+= Int(unsafeBitCast(self.head(index) < head, to: UInt8.self)) }
        low &+= below
        guard low < count, self.head(low) == head else { return (min(low, count), false) }
        return lowerBoundAmongTies(key, head, low, count)
    }

    /// Entries from `low` may share the key's head: compares whole keys.
    private func lowerBoundAmongTies(
        _ key: UnsafeRawBufferPointer, _ head: UInt64, _ low: Int, _ count: Int
    ) -> (index: Int, isEqual: Bool) {
        var low = low
        var high = count
        var middle = low
        while low < high {
            let order = self.head(middle) != head ? 1 : compareTied(middle, key)
            if order == 0 { return (middle, true) }
            if order < 0 { low = middle &+ 1 } else { high = middle }
            middle = (low &+ high) &>> 1
        }
        return (low, false)
    }

    /// The order of an entry's key against one with an equal head: negative, zero or positive.
    private func compareTied(_ index: Int, _ key: UnsafeRawBufferPointer) -> Int {
        let known = prefixCount &+ 8
        let length = keyCount(index)
        // Both end within the head: padding is zeros, so the longer one is above.
        if length <= known || key.count <= known { return length &- key.count }
        let stored = self.key(index)
        return KeyHead.compare(
            UnsafeRawBufferPointer(start: stored.baseAddress.unsafelyUnwrapped + known, count: length &- known),
            UnsafeRawBufferPointer(start: key.baseAddress.unsafelyUnwrapped + known, count: key.count &- known))
    }

    /// In an inner page, the entry that leads to `key`.
    func childIndex(_ key: UnsafeRawBufferPointer) -> Int {
        let found = lowerBound(key)
        return found.isEqual ? found.index : found.index &- 1
    }

    // MARK: Changes

    /// Inserts an entry for which there is contiguous room. The payload is zeroed. `overflow` is the address of a long key.
    func insert(at index: Int, _ key: UnsafeRawBufferPointer, overflow: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer {
        let distance = hintDistance
        let isReheaded = index >= firstCompared && admitToPrefix(key)
        let record = place(at: index, key, overflow: overflow)
        refreshHints(from: isReheaded ? 0 : index, oldDistance: distance)
        return record
    }

    /// Writes record and slot; prefix and hints are the caller's.
    private func place(at index: Int, _ key: UnsafeRawBufferPointer, overflow: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer {
        let size = recordBytes(keyCount: key.count)
        let start = heapStart &- size
        let count = count
        assert(contiguousRoom >= size + Self.slotBytes, "an entry is inserted only where it fits")
        memmove(slot(index &+ 1), slot(index), (count &- index) &* Self.slotBytes)
        heapStart = start
        let record = base + start
        memset(record, 0, payloadBytes)
        let stored = record + payloadBytes
        if let overflow {
            stored.storeBytes(of: UInt(bitPattern: overflow), as: UInt.self)
        } else if key.count > 0 {
            memcpy(stored, key.baseAddress.unsafelyUnwrapped, key.count)
        }
        writeSlot(index, key, start)
        self.count = count &+ 1
        return record
    }

    private func writeSlot(_ index: Int, _ key: UnsafeRawBufferPointer, _ offset: Int) {
        let slot = slot(index)
        let skip = min(prefixCount, key.count)
        slot.storeBytes(
            of: KeyHead.load(UnsafeRawBufferPointer(start: key.baseAddress.map { $0 + skip }, count: key.count &- skip)), as: UInt64.self)
        slot.storeBytes(of: UInt32(truncatingIfNeeded: key.count), toByteOffset: 8, as: UInt32.self)
        slot.storeBytes(of: UInt16(truncatingIfNeeded: offset), toByteOffset: 12, as: UInt16.self)
        slot.storeBytes(of: 0, toByteOffset: 14, as: UInt16.self)
    }

    /// Entries from one hint to the next, 0 without hints.
    private var hintDistance: Int { count >= Self.hintedEntriesMin ? count / (Self.hintCount &+ 1) : 0 }

    /// Takes the hints anew from the heads that may have changed: all, or those of entries from `index` on.
    private func refreshHints(from index: Int, oldDistance: Int) {
        let distance = hintDistance
        guard distance > 0 else { return }
        let hints = (base + Self.hintsOffset).assumingMemoryBound(to: UInt64.self)
        let first = distance == oldDistance ? min(max(index / distance &- 1, 0), Self.hintCount) : 0
        for hint in first..<Self.hintCount { hints[hint] = head((hint &+ 1) &* distance) }
    }

    /// Whether every hint is the head it stands for; for checking.
    var hasTrueHints: Bool {
        let hints = (base + Self.hintsOffset).assumingMemoryBound(to: UInt64.self)
        let distance = hintDistance
        return distance == 0 || (0..<Self.hintCount).allSatisfy { hints[$0] == head(($0 + 1) * distance) }
    }

    /// Shortens the shared prefix to what `key` has of it too; the first compared key sets it. Whether heads have changed.
    private func admitToPrefix(_ key: UnsafeRawBufferPointer) -> Bool {
        let first = firstCompared
        if count <= first {
            setPrefix(key, Self.prefixBytesMax)
            return false
        }
        let skip = prefixCount
        let shared = KeyHead.commonPrefix(key, prefix, max: skip)
        guard shared < skip else { return false }
        prefixCount = shared
        for index in first..<count { writeSlot(index, self.key(index), offset(index)) }
        return true
    }

    private func setPrefix(_ key: UnsafeRawBufferPointer, _ limit: Int) {
        let length = min(limit, key.count, Self.prefixBytesMax)
        if length > 0 { memcpy(base + 32, key.baseAddress.unsafelyUnwrapped, length) }
        prefixCount = length
    }

    /// Takes entries out; the caller has freed their long keys.
    func remove(_ range: Range<Int>) {
        guard !range.isEmpty else { return }
        let distance = hintDistance
        for index in range {
            let size = recordBytes(keyCount: keyCount(index))
            if offset(index) == heapStart { heapStart = heapStart &+ size } else { garbage = garbage &+ size }
        }
        memmove(slot(range.lowerBound), slot(range.upperBound), (count &- range.upperBound) &* Self.slotBytes)
        count = count &- range.count
        refreshHints(from: range.lowerBound, oldDistance: distance)
        if count == 0 {
            heapStart = pageBytes
            garbage = 0
            prefixCount = 0
        }
    }

    /// Makes the key of entry 0 empty; its payload stays where it is. The caller has freed a long key.
    func forgetFirstKey() {
        let old = recordBytes(keyCount: keyCount(0))
        slot(0).storeBytes(of: 0, as: UInt64.self)
        slot(0).storeBytes(of: 0, toByteOffset: 8, as: UInt32.self)
        garbage = garbage &+ (old &- recordBytes(keyCount: 0))
    }

    /// Appends copies of another page's entries, in order and above all entries here; long keys go over by address.
    ///
    /// `firstKey`, when given, takes the place of the key of the first entry copied.
    func append(
        _ source: OrderedPage, _ range: Range<Int>, firstKey: (key: UnsafeRawBufferPointer, overflow: UnsafeMutableRawPointer?)? = nil
    ) {
        let isFresh = count == 0
        if isFresh {
            // First and last key in advance give the final prefix at once.
            let low = range.lowerBound + firstCompared
            if low < range.upperBound {
                let last = source.key(range.upperBound - 1)
                setPrefix(source.key(low), KeyHead.commonPrefix(source.key(low), last, max: Self.prefixBytesMax))
            }
        }
        for index in range {
            var key = source.key(index)
            var overflow = key.count > inlineKeyBytesMax ? UnsafeMutableRawPointer(mutating: key.baseAddress) : nil
            if index == range.lowerBound, let firstKey {
                key = firstKey.key
                overflow = firstKey.overflow
            }
            if !isFresh && count >= firstCompared { _ = admitToPrefix(key) }
            let record = place(at: count, key, overflow: overflow)
            memcpy(record, source.payload(index), payloadBytes)
        }
        refreshHints(from: 0, oldDistance: 0)
    }
}
