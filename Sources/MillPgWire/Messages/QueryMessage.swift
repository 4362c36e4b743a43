/// Query: a text of any number of statements, run at once. The text is kept as bytes; the machine checks that it is UTF-8.
package struct QueryMessage: Hashable, Sendable {
    package var text: [UInt8]

    package init(text: [UInt8]) { self.text = text }
    package init(_ text: String) { self.text = Array(text.utf8) }

    init(decoding reader: inout MessageReader) throws(PgWireError) {
        text = Array(try reader.cString())
    }
}
