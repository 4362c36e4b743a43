import CMemory

/// The values of one column of a batch: fixed-width values side by side, and which of them are present.
///
/// - `data` holds `capacity` values of `type.physical.stride` bytes; a missing value's bytes are zero, so that hashing and
///   comparing whole words is deterministic.
/// - `validity` has a bit per row, 1 for present; nil means that every value is present.
/// - `heaps` keep alive what the `StringView`s point into.
///
/// Rule that makes it safe to share: one thread builds a column; from the moment it is put into a `DeltaBatch` nobody
/// writes to it.
package final class Column: @unchecked Sendable {
    package let type: SQLType
    package let capacity: Int
    package internal(set) var count: Int
    package let data: UnsafeMutableRawPointer
    package internal(set) var heaps: [StringHeap]

    /// An empty column with room for `capacity` values. The bytes of values not yet set are undefined.
    package init(_ type: SQLType, capacity: Int) {
        self.type = type
        self.capacity = capacity
        count = 0
        heaps = []
        data = Self.allocate(Self.blockBytes(type, capacity))
    }

    /// A column of `count` values that the caller writes through `data` before anyone reads them.
    package init(_ type: SQLType, uninitialized count: Int) {
        self.type = type
        self.capacity = count
        self.count = count
        heaps = []
        data = Self.allocate(Self.blockBytes(type, count))
    }

    deinit {
        validity?.deallocate()
        mill_batch_free(data - Self.headerBytes, Self.blockBytes(type, capacity))
    }

    /// In front of the values lies the address of the bitmap: loops ask for it with every row, and reading a variable of a class there
    /// costs a check for overlapping access.
    @usableFromInline static let headerBytes = 64

    /// Of the header, the values, and 64 bytes that may be read past them.
    private static func blockBytes(_ type: SQLType, _ capacity: Int) -> Int { headerBytes + max(capacity * type.physical.stride, 16) + 64 }

    private static func allocate(_ byteCount: Int) -> UnsafeMutableRawPointer {
        let memory = mill_batch_allocate(byteCount)!
        memory.storeBytes(of: nil, as: UnsafeMutablePointer<UInt64>?.self)
        return memory + headerBytes
    }

    package internal(set) var validity: UnsafeMutablePointer<UInt64>? {
        @inlinable @inline(__always) get { (data - Self.headerBytes).load(as: UnsafeMutablePointer<UInt64>?.self) }
        set { (data - Self.headerBytes).storeBytes(of: newValue, as: UnsafeMutablePointer<UInt64>?.self) }
    }

    /// Words of a validity bitmap for this capacity.
    package var validityWords: Int { (capacity + 63) / 64 }

    package func values<T>(_: T.Type) -> UnsafeMutablePointer<T> { data.assumingMemoryBound(to: T.self) }

    @inlinable @inline(__always) package func isNull(_ row: Int) -> Bool {
        guard let validity else { return false }
        return validity[row >> 6] & (1 << UInt64(row & 63)) == 0
    }

    /// Where a row's value lies; nil when it is missing.
    @inline(__always) package func value(_ row: Int) -> UnsafeRawPointer? {
        isNull(row) ? nil : UnsafeRawPointer(data + row &* type.physical.stride)
    }

    /// Whether no value is missing, without counting when there is no bitmap.
    package var hasNoNulls: Bool { validity == nil }

    /// The bitmap, made with every bit set when there was none.
    package func ensureValidity() -> UnsafeMutablePointer<UInt64> {
        if let validity { return validity }
        let words = max(validityWords, 1)
        let bitmap = UnsafeMutablePointer<UInt64>.allocate(capacity: words)
        bitmap.initialize(repeating: .max, count: words)
        validity = bitmap
        return bitmap
    }

    /// Marks a row as missing and zeroes its bytes.
    package func setNull(_ row: Int) {
        ensureValidity()[row >> 6] &= ~(1 << UInt64(row & 63))
        let stride = type.physical.stride
        (data + row * stride).initializeMemory(as: UInt8.self, repeating: 0, count: stride)
    }

    /// Takes over a bitmap of `validityWords` words made elsewhere with `allocate`.
    package func adoptValidity(_ bitmap: UnsafeMutablePointer<UInt64>?) {
        validity?.deallocate()
        validity = bitmap
    }

    /// Keeps `heap` alive as long as this column.
    package func keep(_ heap: StringHeap) {
        if !heaps.contains(where: { $0 === heap }) { heaps.append(heap) }
    }

    package func keep(_ others: [StringHeap]) {
        for heap in others { keep(heap) }
    }

    /// The heap that this column's own new strings go to.
    package func ownHeap() -> StringHeap {
        if let own { return own }
        let heap = StringHeap()
        own = heap
        heaps.append(heap)
        return heap
    }

    /// Made at the first string of this column's own.
    internal var own: StringHeap?
}
