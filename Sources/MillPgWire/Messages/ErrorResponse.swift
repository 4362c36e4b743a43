package import MillBase

/// ErrorResponse and NoticeResponse: the same fields under two type bytes.
package struct ErrorResponse: Hashable, Sendable {
    package enum Severity: String, Hashable, Sendable {
        case error = "ERROR"
        case fatal = "FATAL"
        case warning = "WARNING"
        case notice = "NOTICE"
        case info = "INFO"
        case debug = "DEBUG"
        case log = "LOG"
    }

    package var severity: Severity
    package var sqlState: SQLState
    package var message: String
    package var detail: String?
    package var hint: String?
    /// Where in the client's query text, in characters counted from 1.
    package var position: Int?

    package init(
        _ severity: Severity, _ sqlState: SQLState, _ message: String, detail: String? = nil, hint: String? = nil, position: Int? = nil
    ) {
        self.severity = severity
        self.sqlState = sqlState
        self.message = message
        self.detail = detail
        self.hint = hint
        self.position = position
    }

    /// - Parameter text: the query text that the error's span counts bytes of.
    package init(_ severity: Severity, _ error: SQLError, in text: String? = nil) {
        self.init(severity, error.sqlState, error.message, detail: error.detail, hint: error.hint)
        if let text, let span = error.span {
            position = Self.characterPosition(ofByte: span.start, in: text)
        }
    }

    /// The one-based number of the character that holds a byte; PostgreSQL counts code points.
    package static func characterPosition(ofByte offset: Int, in text: String) -> Int? {
        guard offset >= 0, offset <= text.utf8.count else { return nil }
        return text.utf8.prefix(offset).reduce(1) { $1 & 0xC0 == 0x80 ? $0 : $0 + 1 }
    }

    func encode(type: UInt8, into writer: inout MessageWriter) {
        writer.begin(type)
        field("S", severity.rawValue, into: &writer)
        field("V", severity.rawValue, into: &writer)
        field("C", sqlState.code, into: &writer)
        field("M", message, into: &writer)
        if let detail { field("D", detail, into: &writer) }
        if let hint { field("H", hint, into: &writer) }
        if let position { field("P", String(position), into: &writer) }
        writer.append(UInt8(0))
        writer.end()
    }

    private func field(_ code: Unicode.Scalar, _ value: String, into writer: inout MessageWriter) {
        writer.append(UInt8(ascii: code))
        writer.append(cString: value)
    }
}
