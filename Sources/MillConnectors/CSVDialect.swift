import MillBase

/// How the files of a source of CSV are written, beyond RFC 4180.
package struct CSVDialect: Hashable, Sendable {
    package var delimiter: UInt8
    /// The first line has the names of columns.
    package var hasHeader: Bool

    package init(delimiter: UInt8 = UInt8(ascii: ","), hasHeader: Bool = true) {
        self.delimiter = delimiter
        self.hasHeader = hasHeader
    }

    /// From the options of ENCODE CSV, or Flink's, which are taken out.
    init(taking options: inout ConnectorOptions) throws(SQLError) {
        self.init()
        if let text = try options.take("without_header") { hasHeader = try !Self.flag(text, "without_header", options) }
        guard let text = try options.take("delimiter", "csv.field-delimiter") else { return }
        let bytes = ["\\t", "tab"].contains(text.lowercased()) ? [9] : Array(text.utf8)
        guard bytes.count == 1, bytes[0] != UInt8(ascii: "\""), bytes[0] != 10, bytes[0] != 13, bytes[0] != 0 else {
            throw options.invalid("delimiter", text, expected: "one byte that is no quote and ends no line, such as ';', or 'tab'")
        }
        delimiter = bytes[0]
    }

    private static func flag(_ text: String, _ name: String, _ options: ConnectorOptions) throws(SQLError) -> Bool {
        switch text.lowercased() {
        case "true": return true
        case "false": return false
        default: throw options.invalid(name, text, expected: "'true' or 'false'")
        }
    }
}
