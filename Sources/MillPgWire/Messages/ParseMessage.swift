/// Parse: makes a prepared statement of one statement's text. An empty name is the unnamed statement.
package struct ParseMessage: Hashable, Sendable {
    package var name: String
    package var text: [UInt8]
    /// The types that the client fixes, in parameter order; `.unspecified` or missing ones are inferred.
    package var parameterTypes: [PgOID]

    package init(name: String = "", _ text: String, parameterTypes: [PgOID] = []) {
        self.name = name
        self.text = Array(text.utf8)
        self.parameterTypes = parameterTypes
    }

    init(decoding reader: inout MessageReader) throws(PgWireError) {
        name = try reader.name()
        text = Array(try reader.cString())
        parameterTypes = []
        for _ in 0..<(try reader.count(elementBytesMin: 4)) {
            parameterTypes.append(PgOID(try reader.uint32()))
        }
    }
}
