import MillPgWire

/// Growable raw memory that rows are written into before they join the connection's buffer.
///
/// `[UInt8]` checks uniqueness and capacity at every append, which costs more than the values themselves: 47 ns a cell
/// against 8 here. One owner, freed at the end of its scope.
struct RowBuffer: ~Copyable {
    private(set) var base: UnsafeMutableRawPointer
    private(set) var count = 0
    private var capacity: Int

    init(capacity: Int) {
        self.capacity = max(capacity, 64)
        base = .allocate(byteCount: self.capacity, alignment: 16)
    }

    deinit { base.deallocate() }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }

    /// Makes room for `room` more bytes; what follows may use the unchecked `store`.
    @inline(__always)
    mutating func reserve(_ room: Int) {
        if capacity - count < room { grow(room) }
    }

    @inline(never)
    private mutating func grow(_ room: Int) {
        capacity = max(capacity * 2, count + room)
        let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 16)
        larger.copyMemory(from: base, byteCount: count)
        base.deallocate()
        base = larger
    }

    /// A big-endian integer; the room is reserved.
    @inline(__always)
    mutating func store<T: FixedWidthInteger & BitwiseCopyable>(_ value: T) {
        base.storeBytes(of: value.bigEndian, toByteOffset: count, as: T.self)
        count += MemoryLayout<T>.size
    }

    /// A value of fixed width behind its length.
    @inline(__always)
    mutating func field<T: FixedWidthInteger & BitwiseCopyable>(_ value: T) {
        reserve(4 + MemoryLayout<T>.size)
        store(Int32(MemoryLayout<T>.size))
        store(value)
    }

    /// Bytes behind their length, after `version` when there is one.
    @inline(__always)
    mutating func field(_ bytes: UnsafeBufferPointer<UInt8>, version: UInt8? = nil) {
        reserve(5 + bytes.count)
        store(Int32(truncatingIfNeeded: bytes.count + (version == nil ? 0 : 1)))
        if let version { store(version) }
        if let source = bytes.baseAddress, bytes.count > 0 {
            (base + count).copyMemory(from: source, byteCount: bytes.count)
            count += bytes.count
        }
    }

    /// An integer in decimal digits behind its length.
    @inline(__always)
    mutating func decimalField(_ value: Int64) {
        reserve(24)
        var rest = value.magnitude
        var digits = 1
        var bound: UInt64 = 10
        // The magnitude of an Int64 has at most 19 digits, so the bound reaches 10^19 at most, which fits.
        while digits < 19, rest >= bound {
            digits += 1
            bound &*= 10
        }
        let length = digits + (value < 0 ? 1 : 0)
        store(Int32(truncatingIfNeeded: length))
        if value < 0 { base.storeBytes(of: UInt8(ascii: "-"), toByteOffset: count, as: UInt8.self) }
        var position = count + length
        for _ in 0..<digits {
            let (quotient, remainder) = rest.quotientAndRemainder(dividingBy: 10)
            position -= 1
            base.storeBytes(of: UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: remainder), toByteOffset: position, as: UInt8.self)
            rest = quotient
        }
        count += length
    }

    @inline(__always)
    mutating func patch(_ value: Int32, at position: Int) {
        base.storeBytes(of: value.bigEndian, toByteOffset: position, as: Int32.self)
    }
}
