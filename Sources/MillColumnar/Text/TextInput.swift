package import MillBase


/// Text to values, as PostgreSQL's input functions read it: INSERT, COPY, CAST, parameters, CSV and JSON strings.
///
/// A value either parses whole or is refused with PostgreSQL's code: 22P02 (no such form), 22007 (not a date or time),
/// 22008 (a field out of its range), 22003 (too large). Nothing here depends on the clock or the locale, so the words
/// `now` and `today` are not dates. Leading and trailing white space is ignored except in text.
package enum TextInput {
    /// Appends the value of `text` to `column`, which has the physical layout of `type` and room for it.
    package static func parse(_ text: UnsafeBufferPointer<UInt8>, as type: SQLType, into column: Column) throws(SQLError) {
        switch type {
        case .varchar, .unknown: column.append(bytes: text)
        case .boolean: column.append(UInt8(try boolean(text) ? 1 : 0))
        case .int16: column.append(Int16(truncatingIfNeeded: try integer(text, as: type, within: Int64(Int16.min)...Int64(Int16.max))))
        case .int32: column.append(Int32(truncatingIfNeeded: try integer(text, as: type, within: Int64(Int32.min)...Int64(Int32.max))))
        case .int64: column.append(try integer(text, as: type, within: Int64.min...Int64.max))
        case .float32: column.append(try float32(text))
        case .float64: column.append(try float64(text))
        case .numeric(let precision, let scale): column.append(try decimal(text, precision: precision, scale: scale))
        case .bytea:
            let bytes = try bytea(text)
            bytes.withUnsafeBufferPointer { column.append(bytes: $0) }
        case .date: column.append(try date(text))
        case .time: column.append(try time(text))
        case .timestamp: column.append(try timestamp(text))
        case .timestamptz: column.append(try timestamptz(text))
        case .interval: column.append(try interval(text))
        case .jsonb:
            var canonical: [UInt8] = []
            try JSONCanonicalizer.canonicalize(text, to: &canonical)
            canonical.withUnsafeBufferPointer { column.append(bytes: $0) }
        }
    }

    /// The value of a literal's text; the slow form for one value.
    package static func scalar(_ text: String, as type: SQLType) throws(SQLError) -> Scalar {
        let column = Column(type, capacity: 1)
        var text = text
        var failure: SQLError?
        text.withUTF8 { bytes in
            do throws(SQLError) { try parse(bytes, as: type, into: column) } catch { failure = error }
        }
        if let failure { throw failure }
        return column.scalar(0)
    }

    /// `text` without white space at its ends.
    static func trimmed(_ text: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8> {
        var start = 0
        var end = text.count
        while start < end, isSpace(text[start]) { start += 1 }
        while end > start, isSpace(text[end - 1]) { end -= 1 }
        return UnsafeBufferPointer(rebasing: text[start..<end])
    }

    @inline(__always) static func isSpace(_ byte: UInt8) -> Bool { byte == 32 || (byte >= 9 && byte <= 13) }

    @inline(__always) static func isDigit(_ byte: UInt8) -> Bool { byte &- 48 < 10 }

    /// Whether `text` is `word` in any case; `word` is in lower case.
    static func equals(_ text: UnsafeBufferPointer<UInt8>, _ word: StaticString) -> Bool {
        guard text.count == word.utf8CodeUnitCount else { return false }
        for index in 0..<text.count where lowered(text[index]) != word.utf8Start[index] { return false }
        return true
    }

    @inline(__always) static func lowered(_ byte: UInt8) -> UInt8 { byte &- 65 < 26 ? byte | 32 : byte }

    // MARK: Errors

    /// The type as PostgreSQL names it in an input error.
    private static func name(_ type: SQLType) -> String {
        switch type {
        case .numeric: "numeric"
        case .timestamp: "timestamp"
        case .time: "time"
        case .jsonb: "json"
        default: type.name
        }
    }

    static func invalid(_ text: UnsafeBufferPointer<UInt8>, as type: SQLType) -> SQLError {
        let isTime =
            switch type {
            case .date, .time, .timestamp, .timestamptz, .interval: true
            default: false
            }
        return SQLError(isTime ? .invalidDatetimeFormat : .invalidTextRepresentation, "invalid input syntax for type \(name(type)): \"\(excerpt(text))\"")
    }

    static func outOfRange(_ text: UnsafeBufferPointer<UInt8>, as type: SQLType) -> SQLError {
        switch type {
        case .float32, .float64: SQLError(.numericValueOutOfRange, "\"\(excerpt(text))\" is out of range for type \(name(type))")
        case .date, .timestamp, .timestamptz:
            SQLError(.datetimeFieldOverflow, "\(type == .date ? "date" : "timestamp") out of range: \"\(excerpt(text))\"")
        case .interval: SQLError(.datetimeFieldOverflow, "interval field value out of range: \"\(excerpt(text))\"")
        case .numeric: SQLError(.numericValueOutOfRange, "value overflows numeric format")
        default: SQLError(.numericValueOutOfRange, "value \"\(excerpt(text))\" is out of range for type \(name(type))")
        }
    }

    static func fieldOutOfRange(_ text: UnsafeBufferPointer<UInt8>) -> SQLError {
        SQLError(.datetimeFieldOverflow, "date/time field value out of range: \"\(excerpt(text))\"")
    }

    /// At most 200 bytes of the value, so that a message stays a message.
    private static func excerpt(_ text: UnsafeBufferPointer<UInt8>) -> String {
        text.count <= 200 ? String(decoding: text, as: UTF8.self) : String(decoding: text[0..<200], as: UTF8.self) + "..."
    }
}
