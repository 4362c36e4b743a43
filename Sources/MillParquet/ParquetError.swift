package import MillBase
package import MillIO

/// What can go wrong with a Parquet file.
package enum ParquetError: Error, Hashable, Sendable {
    /// The bytes at `offset` of the file are not what the format says.
    case malformed(file: String, offset: Int, column: String?, Malformed)
    /// The file is as the format says, and we do not read that.
    case unsupported(file: String, column: String?, feature: String)
    /// A value that the column's type in the file cannot hold; `row` counts from the first of the rows handed over, none of which
    /// was written.
    case valueDoesNotFit(column: String, row: Int, UnfitValue)
    /// Rows that take more bytes together than a page may: handed over in parts, they fit. None was written.
    case batchTooLarge(column: String, bytes: Int)
    /// The columns asked of a writer or a reader make no sense.
    case badRequest(String)
    case io(IOFailure)
}

/// Why bytes are not what the format says.
package enum Malformed: Error, Hashable, Sendable {
    /// They end before what they announce.
    case cutShort
    case noMagicNumber
    /// A length or count below zero, or beyond what contains it.
    case badLength(Int)
    case nestedTooDeep
    /// A field without which a structure means nothing.
    case missing(String)
    case badSchema(String)
    case badPage(String)
    /// Nothing is wrong with it, but we do not read that.
    case unreadable(String)
    case badChecksum
    case cannotDecompress(String)
    case invalidUTF8
    case invalidJSON
    case valueOutOfRange
}

/// Why a value has no place in a column.
package enum UnfitValue: Hashable, Sendable {
    /// Of a decimal.
    case notFinite
    /// Of a date or a timestamp.
    case infinite
    /// 24:00:00.
    case endOfDay
    case tooManyDigits(precision: Int, scale: Int)
    case missingInRequiredColumn
    case tooLong(bytes: Int)
    /// Of a nested value, or one whose bytes are of a fixed length: it is no value of this part's type.
    case notOfType(String)
    case missingMember(String)
    case unknownMember(String)
}

extension Malformed: CustomStringConvertible {
    package var description: String {
        switch self {
        case .cutShort: "it ends too early"
        case .noMagicNumber: "it does not begin and end as a Parquet file does"
        case .badLength(let length): "it announces a length of \(length)"
        case .nestedTooDeep: "it is nested too deeply"
        case .missing(let field): "\"\(field)\" is missing"
        case .badSchema(let what), .badPage(let what), .unreadable(let what): what
        case .badChecksum: "the checksum of a page is wrong"
        case .cannotDecompress(let codec): "a page cannot be decompressed by \(codec)"
        case .invalidUTF8: "a text is not valid UTF-8"
        case .invalidJSON: "a value is no JSON that jsonb can hold"
        case .valueOutOfRange: "a value is beyond the range of its column's type"
        }
    }
}

extension UnfitValue: CustomStringConvertible {
    package var description: String {
        switch self {
        case .notFinite: "NaN and infinities have no place in a decimal"
        case .infinite: "an infinite date or timestamp has no place in a file"
        case .endOfDay: "24:00:00 has no place in a file, whose times end before it"
        case .notOfType(let part): "\"\(part)\" in it is of another type"
        case .missingMember(let part): "\"\(part)\" in it is required, and missing"
        case .unknownMember(let part): "the column has no \"\(part)\""
        case .tooManyDigits(let precision, let scale): "it has more digits than numeric(\(precision),\(scale))"
        case .missingInRequiredColumn: "it is NULL and the column is required"
        case .tooLong(let bytes): "it has \(bytes) bytes"
        }
    }
}

extension ParquetError: SQLErrorConvertible {
    package var sqlError: SQLError {
        switch self {
        case .malformed(let file, let offset, let column, let reason):
            SQLError(
                .dataCorrupted, "\"\(file)\" is not a valid Parquet file",
                detail: "At byte \(offset)" + (column.map { ", column \"\($0)\"" } ?? "") + ": \(reason).")
        case .unsupported(let file, let column, let feature):
            SQLError(.featureNotSupported, "cannot read \(column.map { "column \"\($0)\" of " } ?? "")\"\(file)\": \(feature)")
        case .valueDoesNotFit(let column, let row, let reason):
            switch reason {
            case .missingInRequiredColumn:
                SQLError(.notNullViolation, "null value in column \"\(column)\" of a Parquet file", detail: "Row \(row).")
            default:
                SQLError(
                    .numericValueOutOfRange, "value does not fit column \"\(column)\" of a Parquet file", detail: "Row \(row): \(reason).")
            }
        case .batchTooLarge(let column, let bytes):
            SQLError(
                .programLimitExceeded, "column \"\(column)\" has too many bytes for one page of a Parquet file",
                detail: "A batch of it has \(bytes) bytes.")
        case .badRequest(let what): SQLError(.invalidParameterValue, what)
        case .io(let failure): failure.sqlError
        }
    }
}
