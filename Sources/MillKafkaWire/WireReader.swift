/// Reads the primitive types of the Kafka protocol from a block of bytes.
///
/// The bytes come from strangers: every length is checked against what is left before anything is allocated, and what
/// does not fit is a `WireError`, never a trap. Encoding: https://kafka.apache.org/protocol#protocol_types; integers are
/// big-endian, "flexible" fields have unsigned varint lengths plus one and end in tagged fields.
package struct WireReader {
    /// Elements of all arrays of one message. A request within the frame limit has no use for more, and it bounds what
    /// a small frame of empty strings can make us allocate.
    package static let elementsMax = 1_000_000

    private let bytes: WireBytes
    private let start: UnsafeRawPointer
    private var end: Int
    /// Bytes read so far.
    package private(set) var position = 0
    private var elementsLeft = Self.elementsMax

    package init(_ bytes: WireBytes) {
        self.bytes = bytes
        start = bytes.unsafeBytes.baseAddress ?? UnsafeRawPointer(bitPattern: 1)!  // never dereferenced when there are no bytes
        end = bytes.count
    }

    package var remaining: Int { end - position }

    /// - Throws: `trailingBytes` unless everything was read.
    package func finish() throws(WireError) {
        if remaining != 0 { throw .trailingBytes(count: remaining) }
    }

    private mutating func take(_ count: Int) throws(WireError) -> UnsafeRawPointer {
        guard count <= remaining else { throw .truncated(offset: position, needed: count, available: remaining) }
        defer { position += count }
        return start + position
    }

    private mutating func integer<T: FixedWidthInteger>(_: T.Type) throws(WireError) -> T {
        T(bigEndian: try take(MemoryLayout<T>.size).loadUnaligned(as: T.self))
    }

    package mutating func int8() throws(WireError) -> Int8 { try integer(Int8.self) }
    package mutating func int16() throws(WireError) -> Int16 { try integer(Int16.self) }
    package mutating func uint16() throws(WireError) -> UInt16 { try integer(UInt16.self) }
    package mutating func int32() throws(WireError) -> Int32 { try integer(Int32.self) }
    package mutating func uint32() throws(WireError) -> UInt32 { try integer(UInt32.self) }
    package mutating func int64() throws(WireError) -> Int64 { try integer(Int64.self) }
    package mutating func float64() throws(WireError) -> Double { Double(bitPattern: try integer(UInt64.self)) }
    package mutating func bool() throws(WireError) -> Bool { try integer(UInt8.self) != 0 }
    package mutating func uuid() throws(WireError) -> WireUUID { WireUUID(high: try integer(UInt64.self), low: try integer(UInt64.self)) }

    /// An unsigned integer of up to 32 bits, seven to a byte, lowest first.
    package mutating func unsignedVarint() throws(WireError) -> UInt32 {
        let from = position
        var value: UInt64 = 0
        for index in 0..<5 {
            let byte = try integer(UInt8.self)
            value |= UInt64(byte & 0x7F) << UInt64(7 * index)
            if byte & 0x80 == 0 {
                guard let result = UInt32(exactly: value) else { throw .invalidVarint(offset: from) }
                return result
            }
        }
        throw .invalidVarint(offset: from)
    }

    /// A length of `short` bytes or, in a flexible version, an unsigned varint of length plus one; nil is null.
    private mutating func length(flexible: Bool, short: Bool) throws(WireError) -> Int? {
        let from = position
        let length: Int
        if flexible {
            length = Int(try unsignedVarint()) - 1
        } else {
            length = short ? Int(try int16()) : Int(try int32())
        }
        if length == -1 { return nil }
        guard length >= 0, length <= remaining else { throw .invalidLength(offset: from, length: Int64(length)) }
        return length
    }

    package mutating func nullableString(flexible: Bool) throws(WireError) -> String? {
        guard let count = try length(flexible: flexible, short: true) else { return nil }
        let from = position
        let text = UnsafeRawBufferPointer(start: try take(count), count: count)
        guard let string = String(validating: text, as: UTF8.self) else { throw .invalidText(offset: from) }
        return string
    }

    package mutating func string(flexible: Bool) throws(WireError) -> String {
        let from = position
        guard let string = try nullableString(flexible: flexible) else { throw .invalidLength(offset: from, length: -1) }
        return string
    }

    package mutating func nullableBytes(flexible: Bool) throws(WireError) -> WireBytes? {
        guard let count = try length(flexible: flexible, short: false) else { return nil }
        defer { position += count }
        return bytes.slice(offset: position, count: count)
    }

    package mutating func bytes(flexible: Bool) throws(WireError) -> WireBytes {
        let from = position
        guard let bytes = try nullableBytes(flexible: flexible) else { throw .invalidLength(offset: from, length: -1) }
        return bytes
    }

    package mutating func nullableArray<T>(
        flexible: Bool, _ element: (inout WireReader) throws(WireError) -> T
    ) throws(WireError) -> [T]? {
        let from = position
        guard let count = try length(flexible: flexible, short: false) else { return nil }
        guard count <= elementsLeft else { throw .tooManyElements(offset: from) }
        elementsLeft -= count
        var elements: [T] = []
        elements.reserveCapacity(min(count, 1024))
        for _ in 0..<count { elements.append(try element(&self)) }
        return elements
    }

    package mutating func array<T>(
        flexible: Bool, _ element: (inout WireReader) throws(WireError) -> T
    ) throws(WireError) -> [T] {
        let from = position
        guard let elements = try nullableArray(flexible: flexible, element) else { throw .invalidLength(offset: from, length: -1) }
        return elements
    }

    /// Hands each tagged field to `field`, which may read less than all of it; what it does not know is skipped.
    package mutating func taggedFields(_ field: (UInt32, inout WireReader) throws(WireError) -> Void) throws(WireError) {
        let count = try unsignedVarint()
        for _ in 0..<count {
            let tag = try unsignedVarint()
            let from = position
            let size = Int(try unsignedVarint())
            guard size <= remaining else { throw .invalidLength(offset: from, length: Int64(size)) }
            let outerEnd = end
            end = position + size
            defer { end = outerEnd }
            try field(tag, &self)
            position = end
        }
    }

    package mutating func skipTaggedFields() throws(WireError) {
        try taggedFields { _, _ throws(WireError) in }
    }
}
