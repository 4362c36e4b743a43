package import MillBase

/// Values in PostgreSQL's binary format, without their length words.
///
/// Dates and timestamps inside the engine count from 1970, on the wire from 2000-01-01; the extreme integers are the
/// infinities on both sides and are not moved. Fixed-width types are big-endian; jsonb is text behind a version byte.
/// Source: the `*_send` and `*_recv` functions of PostgreSQL's `src/backend/utils/adt`.
package enum PgBinary {
    /// Days from 1970-01-01 to 2000-01-01.
    package static let epochDays: Int32 = 10_957
    /// The same in microseconds.
    package static let epochMicros: Int64 = 946_684_800_000_000

    /// Wire days of a date in days since 1970.
    @inlinable
    package static func wireDate(_ days: Int32) -> Int32 {
        if days == .max || days == .min { return days }
        let (moved, overflow) = days.subtractingReportingOverflow(epochDays)
        return overflow ? .min : moved
    }

    /// Wire microseconds of a timestamp in microseconds since 1970.
    @inlinable
    package static func wireTimestamp(_ micros: Int64) -> Int64 {
        if micros == .max || micros == .min { return micros }
        let (moved, overflow) = micros.subtractingReportingOverflow(epochMicros)
        return overflow ? .min : moved
    }

    /// - Throws: 22P03 when `bytes` is not `T`'s width.
    package static func integer<T: FixedWidthInteger>(_: T.Type, _ bytes: ArraySlice<UInt8>) throws(SQLError) -> T {
        guard bytes.count == MemoryLayout<T>.size else { throw wrongLength() }
        var value: T = 0
        for byte in bytes { value = value << 8 | T(truncatingIfNeeded: byte) }
        return value
    }

    package static func boolean(_ bytes: ArraySlice<UInt8>) throws(SQLError) -> Bool {
        guard bytes.count == 1, let byte = bytes.first else { throw wrongLength() }
        return byte != 0
    }

    package static func float32(_ bytes: ArraySlice<UInt8>) throws(SQLError) -> Float {
        Float(bitPattern: try integer(UInt32.self, bytes))
    }

    package static func float64(_ bytes: ArraySlice<UInt8>) throws(SQLError) -> Double {
        Double(bitPattern: try integer(UInt64.self, bytes))
    }

    /// Days since 1970-01-01.
    package static func date(_ bytes: ArraySlice<UInt8>) throws(SQLError) -> Int32 {
        let days = try integer(Int32.self, bytes)
        if days == .max || days == .min { return days }
        let (moved, overflow) = days.addingReportingOverflow(epochDays)
        guard !overflow, moved != .max else { throw SQLError(.datetimeFieldOverflow, "date out of range") }
        return moved
    }

    /// Microseconds since midnight.
    package static func time(_ bytes: ArraySlice<UInt8>) throws(SQLError) -> Int64 {
        let micros = try integer(Int64.self, bytes)
        guard (0...86_400_000_000).contains(micros) else { throw SQLError(.datetimeFieldOverflow, "time out of range") }
        return micros
    }

    /// Microseconds since 1970-01-01.
    package static func timestamp(_ bytes: ArraySlice<UInt8>) throws(SQLError) -> Int64 {
        let micros = try integer(Int64.self, bytes)
        if micros == .max || micros == .min { return micros }
        let (moved, overflow) = micros.addingReportingOverflow(epochMicros)
        guard !overflow, moved != .max else { throw SQLError(.datetimeFieldOverflow, "timestamp out of range") }
        return moved
    }

    package static func interval(_ bytes: ArraySlice<UInt8>) throws(SQLError) -> (months: Int32, days: Int32, micros: Int64) {
        guard bytes.count == 16 else { throw wrongLength() }
        let start = bytes.startIndex
        return (
            try integer(Int32.self, bytes[start + 12..<start + 16]), try integer(Int32.self, bytes[start + 8..<start + 12]),
            try integer(Int64.self, bytes[start..<start + 8])
        )
    }

    /// The text of a jsonb, without its version byte.
    package static func jsonb(_ bytes: ArraySlice<UInt8>) throws(SQLError) -> ArraySlice<UInt8> {
        guard bytes.first == 1 else {
            throw SQLError(.invalidBinaryRepresentation, "unsupported jsonb version number \(bytes.first ?? 0)")
        }
        return bytes.dropFirst()
    }

    /// Checks that text from a client is UTF-8 without zeros, as every text value must be.
    ///
    /// - Throws: 22021 with the first offending bytes.
    package static func text(_ bytes: ArraySlice<UInt8>) throws(SQLError) -> String {
        guard !bytes.contains(0) else { throw invalidUTF8("0x00") }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw invalidUTF8(firstInvalid(in: bytes))
        }
        return text
    }

    private static func firstInvalid(in bytes: ArraySlice<UInt8>) -> String {
        var decoder = UTF8()
        var iterator = bytes.makeIterator()
        var consumed = bytes.startIndex
        while case .scalarValue(let scalar) = decoder.decode(&iterator) {
            consumed += UTF8.width(scalar)
        }
        guard consumed < bytes.endIndex else { return "" }
        let digits = String(bytes[consumed], radix: 16)
        return "0x" + (digits.utf8.count < 2 ? "0" : "") + digits
    }

    private static func invalidUTF8(_ bytes: String) -> SQLError {
        SQLError(.characterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\": \(bytes)")
    }

    private static func wrongLength() -> SQLError {
        SQLError(.invalidBinaryRepresentation, "incorrect binary data format in bind parameter")
    }
}
