import CMemory
import MillColumnar

/// The distinct values of a column chunk in the order in which they came, and which number each has.
///
/// A table of slots by hash, probed one after the other: the upper half of a slot is of the hash, so that few values are looked at that
/// turn out to be others, the lower half is the value's number. The values themselves lie beside each other as they are stored, the bytes
/// of long ones in a heap of the dictionary's own.
final class DictionaryBuilder {
    private let stride: Int
    private let isBytes: Bool
    /// Bytes that lie before each value of a dictionary page.
    private let prefixBytes: Int
    private var slots: UnsafeMutablePointer<UInt64>
    private var slotCount: Int
    private let heap = StringHeap()
    let values = OutputBytes()
    private(set) var count = 0
    /// What the values take in a dictionary page.
    private(set) var byteCount = 0

    private static let emptySlot = UInt64.max
    /// Values looked up together.
    private static let part = 64
    private static let hashHalf: UInt64 = 0xFFFF_FFFF_0000_0000

    init(_ storage: ColumnStorage) {
        stride = storage.stride
        isBytes = storage.isBytes
        prefixBytes = storage.form == .bytes ? 4 : 0
        slotCount = 1 << 13
        slots = .allocate(capacity: slotCount)
        slots.initialize(repeating: Self.emptySlot, count: slotCount)
    }

    deinit { slots.deallocate() }

    /// Writes the numbers of `added` values; those not yet there get the next ones.
    func number(_ source: UnsafeRawPointer, _ added: Int, into numbers: UnsafeMutablePointer<UInt32>) {
        // Room for all of them to be new, with half the slots empty: nothing grows in the loop.
        if (count + added) * 2 > slotCount { grow(for: count + added) }
        _ = values.room(added * stride)
        switch stride {
        case 4: number(source.assumingMemoryBound(to: UInt32.self), added, numbers)
        case 8: number(source.assumingMemoryBound(to: UInt64.self), added, numbers)
        default: number(source.assumingMemoryBound(to: StringView.self), added, numbers)
        }
        byteCount = isBytes ? byteCount : count * stride
    }

    /// A large dictionary is in no near cache: of a part of the values, the slots, then the values found there, then their bytes are asked
    /// for before the first is looked at, so that all of them are on their way at once.
    @inline(__always)
    private func number<T: DictionaryKey>(_ source: UnsafePointer<T>, _ added: Int, _ numbers: UnsafeMutablePointer<UInt32>) {
        let known = values.base.assumingMemoryBound(to: T.self)
        withUnsafeTemporaryAllocation(of: UInt64.self, capacity: Self.part) { room in
            guard let hashes = room.baseAddress else { return }
            let (slots, mask) = (slots, slotCount - 1)
            var start = 0
            while start < added {
                let part = min(Self.part, added - start)
                for index in 0..<part {
                    let hash = source[start &+ index].dictionaryHash
                    hashes[index] = hash
                    mill_prefetch(slots + (Int(truncatingIfNeeded: hash) & mask))
                }
                for index in 0..<part {
                    let entry = slots[Int(truncatingIfNeeded: hashes[index]) & mask]
                    if entry != Self.emptySlot { mill_prefetch(known + Int(UInt32(truncatingIfNeeded: entry))) }
                }
                if T.hasBytesElsewhere {
                    for index in 0..<part {
                        let entry = slots[Int(truncatingIfNeeded: hashes[index]) & mask]
                        if entry != Self.emptySlot { known[Int(UInt32(truncatingIfNeeded: entry))].prefetch() }
                    }
                }
                number(source + start, part, hashes, known, numbers + start)
                start &+= part
            }
        }
    }

    @inline(__always)
    private func number<T: DictionaryKey>(
        _ source: UnsafePointer<T>, _ added: Int, _ hashes: UnsafePointer<UInt64>, _ known: UnsafeMutablePointer<T>,
        _ numbers: UnsafeMutablePointer<UInt32>
    ) {
        let (slots, mask) = (slots, slotCount - 1)
        var count = count
        var bytes = 0
        for index in 0..<added {
            let key = source[index]
            let hash = hashes[index]
            var slot = Int(truncatingIfNeeded: hash) & mask
            while true {
                let entry = slots[slot]
                if (entry ^ hash) & Self.hashHalf == 0, entry != Self.emptySlot,
                    known[Int(UInt32(truncatingIfNeeded: entry))].isSame(as: key)
                {
                    numbers[index] = UInt32(truncatingIfNeeded: entry)
                    break
                }
                if entry == Self.emptySlot {
                    slots[slot] = hash & Self.hashHalf | UInt64(truncatingIfNeeded: count)
                    known[count] = key.kept(in: heap)
                    bytes &+= key.byteCount &+ prefixBytes
                    numbers[index] = UInt32(truncatingIfNeeded: count)
                    count &+= 1
                    break
                }
                slot = (slot &+ 1) & mask
            }
        }
        values.advance((count - self.count) * stride)
        self.count = count
        byteCount += bytes
    }

    private func grow(for wanted: Int) {
        while slotCount < wanted * 4 { slotCount *= 2 }
        slots.deallocate()
        slots = .allocate(capacity: slotCount)
        slots.initialize(repeating: Self.emptySlot, count: slotCount)
        switch stride {
        case 4: fill(UInt32.self)
        case 8: fill(UInt64.self)
        default: fill(StringView.self)
        }
    }

    private func fill<T: DictionaryKey>(_: T.Type) {
        let known = values.base.assumingMemoryBound(to: T.self)
        for index in 0..<count {
            let hash = known[index].dictionaryHash
            var slot = Int(truncatingIfNeeded: hash) & (slotCount - 1)
            while slots[slot] != Self.emptySlot { slot = (slot + 1) & (slotCount - 1) }
            slots[slot] = hash & Self.hashHalf | UInt64(index)
        }
    }

    /// Writes those values that one of `count` numbers stands for, each once; returns how many there are.
    func distinct(_ numbers: UnsafePointer<UInt32>, _ count: Int, into target: OutputBytes) -> Int {
        let used = UnsafeMutablePointer<UInt8>.allocate(capacity: self.count)
        defer { used.deallocate() }
        used.initialize(repeating: 0, count: self.count)
        for index in 0..<count { used[Int(numbers[index])] = 1 }
        target.truncate(to: 0)
        let room = target.room(self.count * stride)
        return switch stride {
        case 4: keep(UInt32.self, used, room)
        case 8: keep(UInt64.self, used, room)
        default: keep(StringView.self, used, room)
        }
    }

    private func keep<T: BitwiseCopyable>(_: T.Type, _ used: UnsafeMutablePointer<UInt8>, _ target: UnsafeMutableRawPointer) -> Int {
        let known = values.base.assumingMemoryBound(to: T.self)
        let target = target.assumingMemoryBound(to: T.self)
        var kept = 0
        for index in 0..<count {
            target[kept] = known[index]
            kept &+= Int(used[index])
        }
        return kept
    }
}

/// A value as a dictionary tells it from others: by its bytes, so that -0 is not 0.
private protocol DictionaryKey: BitwiseCopyable {
    var dictionaryHash: UInt64 { get }
    var byteCount: Int { get }
    func isSame(as other: Self) -> Bool
    static var hasBytesElsewhere: Bool { get }
    /// Asks for bytes elsewhere.
    func prefetch()
    /// The same value, whose bytes live as long as `heap`.
    func kept(in heap: StringHeap) -> Self
}

private let hashFactor: UInt64 = 0xA076_1D64_78BD_642F

/// Every bit of the result depends on every bit of both.
@inline(__always) private func mix(_ hash: UInt64, _ word: UInt64) -> UInt64 {
    let product = (hash ^ word).multipliedFullWidth(by: hashFactor)
    return product.high ^ product.low ^ word
}

extension DictionaryKey where Self: FixedWidthInteger {
    @inline(__always) fileprivate var dictionaryHash: UInt64 { mix(0, UInt64(truncatingIfNeeded: self)) }
    @inline(__always) fileprivate var byteCount: Int { 0 }
    @inline(__always) fileprivate func isSame(as other: Self) -> Bool { self == other }
    fileprivate static var hasBytesElsewhere: Bool { false }
    fileprivate func prefetch() {}
    @inline(__always) fileprivate func kept(in heap: StringHeap) -> Self { self }
}

extension UInt32: DictionaryKey {}
extension UInt64: DictionaryKey {}

extension StringView: DictionaryKey {
    @inline(__always) fileprivate var dictionaryHash: UInt64 {
        if isInline { return mix(mix(0, low), high) }
        let bytes = UnsafeRawPointer(pointer)
        var hash = UInt64(truncatingIfNeeded: count)
        var offset = 0
        // Sixteen bytes a step; over 12 bytes, the last loads overlap what came before and cover the end.
        while offset &+ 16 < count {
            let product = (hash ^ bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
                .multipliedFullWidth(by: hashFactor ^ bytes.loadUnaligned(fromByteOffset: offset &+ 8, as: UInt64.self))
            hash = product.high ^ product.low
            offset &+= 16
        }
        hash = mix(hash, bytes.loadUnaligned(fromByteOffset: max(count &- 16, 0), as: UInt64.self))
        return mix(hash, bytes.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self))
    }
    @inline(__always) fileprivate var byteCount: Int { count }
    @inline(__always) fileprivate func isSame(as other: StringView) -> Bool { self == other }
    fileprivate static var hasBytesElsewhere: Bool { true }
    @inline(__always) fileprivate func prefetch() { if !isInline { mill_prefetch(pointer) } }
    @inline(__always) fileprivate func kept(in heap: StringHeap) -> StringView { heap.view(copying: self) }
}
