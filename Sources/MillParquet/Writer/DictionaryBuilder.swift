import MillColumnar

/// The distinct values of a column chunk in the order in which they came, and which number each has.
///
/// A table of slots by hash, probed one after the other, with the numbers of values; the values themselves lie beside each other as
/// they are stored, the bytes of long ones in a heap of the dictionary's own.
final class DictionaryBuilder {
    private let stride: Int
    private let isBytes: Bool
    /// Bytes that lie before each value of a dictionary page.
    private let prefixBytes: Int
    private var slots: UnsafeMutablePointer<UInt32>
    private var slotCount: Int
    private let heap = StringHeap()
    let values = OutputBytes()
    private(set) var count = 0
    /// What the values take in a dictionary page.
    private(set) var byteCount = 0

    private static let emptySlot = UInt32.max

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

    @inline(__always)
    private func number<T: DictionaryKey>(_ source: UnsafePointer<T>, _ added: Int, _ numbers: UnsafeMutablePointer<UInt32>) {
        let (slots, mask) = (slots, slotCount - 1)
        let known = values.base.assumingMemoryBound(to: T.self)
        var count = count
        var bytes = 0
        for index in 0..<added {
            let key = source[index]
            var slot = Int(truncatingIfNeeded: key.dictionaryHash) & mask
            while true {
                let number = slots[slot]
                if number == Self.emptySlot {
                    slots[slot] = UInt32(truncatingIfNeeded: count)
                    known[count] = key.kept(in: heap)
                    bytes &+= key.byteCount &+ prefixBytes
                    numbers[index] = UInt32(truncatingIfNeeded: count)
                    count &+= 1
                    break
                }
                if known[Int(number)].isSame(as: key) {
                    numbers[index] = number
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
            var slot = Int(truncatingIfNeeded: known[index].dictionaryHash) & (slotCount - 1)
            while slots[slot] != Self.emptySlot { slot = (slot + 1) & (slotCount - 1) }
            slots[slot] = UInt32(index)
        }
    }
}

/// A value as a dictionary tells it from others: by its bytes, so that -0 is not 0.
private protocol DictionaryKey: BitwiseCopyable {
    var dictionaryHash: UInt64 { get }
    var byteCount: Int { get }
    func isSame(as other: Self) -> Bool
    /// The same value, whose bytes live as long as `heap`.
    func kept(in heap: StringHeap) -> Self
}

/// Every bit of the result depends on every bit of both.
@inline(__always) private func mix(_ hash: UInt64, _ word: UInt64) -> UInt64 {
    let product = (hash ^ word).multipliedFullWidth(by: 0xA076_1D64_78BD_642F)
    return product.high ^ product.low ^ word
}

extension DictionaryKey where Self: FixedWidthInteger {
    @inline(__always) fileprivate var dictionaryHash: UInt64 { mix(0, UInt64(truncatingIfNeeded: self)) }
    @inline(__always) fileprivate var byteCount: Int { 0 }
    @inline(__always) fileprivate func isSame(as other: Self) -> Bool { self == other }
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
        // Over 12 bytes: the last load, which overlaps the one before, covers the end.
        while offset &+ 8 < count {
            hash = mix(hash, bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            offset &+= 8
        }
        return mix(hash, bytes.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self))
    }
    @inline(__always) fileprivate var byteCount: Int { count }
    @inline(__always) fileprivate func isSame(as other: StringView) -> Bool { self == other }
    @inline(__always) fileprivate func kept(in heap: StringHeap) -> StringView { heap.view(copying: self) }
}
