/// Bind: makes a portal of a prepared statement and its parameters' values.
package struct BindMessage: Hashable, Sendable {
    package var portal: String
    package var statement: String
    /// None, one for all, or one for each parameter.
    package var parameterFormats: [PgFormat]
    /// A nil value is NULL.
    package var values: [[UInt8]?]
    /// None, one for all, or one for each result column.
    package var resultFormats: [PgFormat]

    package init(
        portal: String = "", statement: String = "", parameterFormats: [PgFormat] = [], values: [[UInt8]?] = [],
        resultFormats: [PgFormat] = []
    ) {
        self.portal = portal
        self.statement = statement
        self.parameterFormats = parameterFormats
        self.values = values
        self.resultFormats = resultFormats
    }

    init(decoding reader: inout MessageReader) throws(PgWireError) {
        self.init(portal: try reader.name(), statement: try reader.name())
        parameterFormats = try Self.formats(&reader)
        for _ in 0..<(try reader.count(elementBytesMin: 4)) {
            let length = try reader.int32()
            guard length >= -1 else { throw .invalidField("parameter length") }
            values.append(length == -1 ? nil : Array(try reader.take(Int(length))))
        }
        resultFormats = try Self.formats(&reader)
    }

    private static func formats(_ reader: inout MessageReader) throws(PgWireError) -> [PgFormat] {
        var formats: [PgFormat] = []
        for _ in 0..<(try reader.count(elementBytesMin: 2)) {
            guard let format = PgFormat(rawValue: try reader.int16()) else { throw .invalidField("format code") }
            formats.append(format)
        }
        return formats
    }
}
