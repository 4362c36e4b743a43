package import MillBase

/// What can go wrong with an Avro file.
package enum AvroError: Error, Hashable, Sendable {
    /// The bytes at `offset` of the file (of a block's content when it was compressed) are not what the format says.
    case malformed(file: String, offset: Int, AvroFlaw)
    /// The file is as the format says, and we do not read that.
    case unsupported(file: String, feature: String)
    /// A value handed to a writer is not of the schema's type at `path`. Nothing of the object was written.
    case valueDoesNotFit(path: String, expected: String)
}

/// Why bytes are not what the format says.
package enum AvroFlaw: Error, Hashable, Sendable {
    case cutShort
    case noMagicNumber
    case badLength(Int64)
    case badNumber
    case badBranch(Int64)
    case badUTF8
    case badSyncMarker
    case badSchema(String)
    case cannotDecompress(String)
    case nestedTooDeep
    case tooManyValues
    case leftover(Int)
}

extension AvroFlaw: CustomStringConvertible {
    package var description: String {
        switch self {
        case .cutShort: "it ends too early"
        case .noMagicNumber: "it does not begin as an Avro file does"
        case .badLength(let length): "it announces a length of \(length)"
        case .badNumber: "a number is longer than its type"
        case .badBranch(let index): "a union or an enumeration has nothing at \(index)"
        case .badUTF8: "a text is not valid UTF-8"
        case .badSyncMarker: "the mark behind a block is missing"
        case .badSchema(let what): "its schema is not valid: \(what)"
        case .cannotDecompress(let codec): "a block cannot be decompressed by \(codec)"
        case .nestedTooDeep: "a value is nested too deeply"
        case .tooManyValues: "one object has more than \(AvroLimits.valuesMax) values"
        case .leftover(let count): "\(count) bytes of a block belong to none of its objects"
        }
    }
}

/// Bounds on what is read from a file of unknown origin.
package enum AvroLimits {
    /// Bytes of a block after decompression.
    package static let blockBytesMax = 256 << 20
    /// Values within one object, those without bytes among them.
    package static let valuesMax = 4 << 20
    package static let depthMax = 64
    /// Nodes of a schema, each use of a named type counted.
    package static let schemaNodesMax = 50_000
    package static let schemaBytesMax = 16 << 20
    /// Objects without bytes that a block may announce.
    package static let emptyObjectsMax = 1 << 20
}

extension AvroError: SQLErrorConvertible {
    package var sqlError: SQLError {
        switch self {
        case .malformed(let file, let offset, let flaw):
            SQLError(.dataCorrupted, "\"\(file)\" is not a valid Avro file", detail: "At byte \(offset): \(flaw).")
        case .unsupported(let file, let feature): SQLError(.featureNotSupported, "cannot read \"\(file)\": \(feature)")
        case .valueDoesNotFit(let path, let expected): SQLError(.internalError, "a value of an Avro file is not \(expected) at \(path)")
        }
    }
}
