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
///     64        slots of 16 bytes in key order: u64 head, u32 keyCount, u16 offset of the record, u16 zero
///
/// A record starts at a multiple of 8: the payload, then the key (padded to 8), or the address of a longer key. Sealing a
/// page for disk replaces that address by a page number; nothing else in a page depends on where it lies in memory.
///
/// A head is the 8 bytes of the key after the shared prefix as a big-endian number, so that a search reads neighbouring slots
/// and touches a record only where heads tie. In an inner page the payload is a child's page number, entry i leads to keys at
/// or above its own key, and entry 0 leads to everything below entry 1: its key is not compared and not part of the prefix.
struct OrderedPage {
    let base: UnsafeMutableRawPointer

    static let headerBytes = 64
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
        // Without branches on the data: a mispredicted one costs more than a probe.
        var low = first
        var length = count &- first
        while length > 0 {
            let half = (length &+ 1) &>> 1
            let isBelow = slot(low &+ half &- 1).load(as: UInt64.self) < head
            low &+= half & (0 &- Int(unsafeBitCast(isBelow, to: UInt8.self)))
            length &-= half
        }
        guard low < count, self.head(low) == head else { return (min(low, count), false) }
        return lowerBoundAmongTies(key, head, low, count)
    }

    /// Entries from `low` may share the key's head: compares whole keys.
    private func lowerBoundAmongTies(_ key: UnsafeRawBufferPointer, _ head: UInt64, _ low: Int, _ count: Int) -> (index: Int, isEqual: Bool) {
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
    func insert(at index: Int, _ key: UnsafeRawBufferPointer, overflow: UnsafeMutableRawPointer?, isPrefixKnown: Bool = false) -> UnsafeMutableRawPointer {
        if !isPrefixKnown && index >= firstCompared { admitToPrefix(key) }
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

    /// Shortens the shared prefix to what `key` has of it too; the first compared key sets it.
    private func admitToPrefix(_ key: UnsafeRawBufferPointer) {
        let first = firstCompared
        if count <= first {
            setPrefix(key, Self.prefixBytesMax)
            return
        }
        let skip = prefixCount
        let shared = KeyHead.commonPrefix(key, prefix, max: skip)
        guard shared < skip else { return }
        prefixCount = shared
        for index in first..<count { writeSlot(index, self.key(index), offset(index)) }
    }

    private func setPrefix(_ key: UnsafeRawBufferPointer, _ limit: Int) {
        let length = min(limit, key.count, Self.prefixBytesMax)
        if length > 0 { memcpy(base + 32, key.baseAddress.unsafelyUnwrapped, length) }
        prefixCount = length
    }

    /// Takes entries out; the caller has freed their long keys.
    func remove(_ range: Range<Int>) {
        guard !range.isEmpty else { return }
        for index in range {
            let size = recordBytes(keyCount: keyCount(index))
            if offset(index) == heapStart { heapStart = heapStart &+ size } else { garbage = garbage &+ size }
        }
        memmove(slot(range.lowerBound), slot(range.upperBound), (count &- range.upperBound) &* Self.slotBytes)
        count = count &- range.count
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
    func append(_ source: OrderedPage, _ range: Range<Int>, firstKey: (key: UnsafeRawBufferPointer, overflow: UnsafeMutableRawPointer?)? = nil) {
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
            let record = insert(at: count, key, overflow: overflow, isPrefixKnown: isFresh)
            memcpy(record, source.payload(index), payloadBytes)
        }
    }
}
