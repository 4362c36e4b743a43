package import MillAvro
package import MillBase
package import MillIO
package import MillParquet

/// What can go wrong with a table.
package enum IcebergError: Error, Hashable, Sendable {
    /// A file of a table is not what the format says.
    case malformed(location: String, what: String)
    case unsupported(String)
    /// What was asked of a table makes no sense for it.
    case badRequest(String)
    /// A requirement of a commit does not hold: nothing has changed.
    case commitConflict(String)
    /// Another writer holds the place of this one: nothing has changed, and trying again would not help.
    case outrun(String)
    /// Nobody can tell whether a commit went through.
    case commitUnknown(String)
    /// A table, a snapshot or a reference that is not there.
    case missing(String)
    case avro(AvroError)
    case parquet(ParquetError)
    case io(IOFailure)

    package var isCommitUnknown: Bool { if case .commitUnknown = self { true } else { false } }
    package var isConflict: Bool { if case .commitConflict = self { true } else { false } }
}

extension IcebergError: SQLErrorConvertible {
    package var sqlError: SQLError {
        switch self {
        case .malformed(let location, let what):
            SQLError(.dataCorrupted, "\"\(location)\" is not valid", detail: "It is part of a table: \(what).")
        case .unsupported(let what): SQLError(.featureNotSupported, "not supported: \(what)")
        case .badRequest(let what): SQLError(.invalidParameterValue, what)
        case .commitConflict(let requirement):
            SQLError(.serializationFailure, "the table was changed by others", detail: requirement, hint: "Try it again.")
        case .outrun(let what):
            SQLError(.objectNotInPrerequisiteState, "another writer has taken this one's place in the table", detail: what)
        case .commitUnknown(let what): SQLError(.connectionFailure, "it is not known whether a commit went through", detail: what)
        case .missing(let what): SQLError(.undefinedObject, "there is no \(what)")
        case .avro(let error): error.sqlError
        case .parquet(let error): error.sqlError
        case .io(let failure): failure.sqlError
        }
    }
}
