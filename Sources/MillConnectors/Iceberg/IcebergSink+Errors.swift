import MillBase
import MillIO
import MillIceberg
import MillParquet

extension IcebergSink {
    /// What went wrong with the table, as the user of the sink sees it: what may pass by itself is of a class that is tried again.
    static func failure(_ error: IcebergError, _ table: TableIdentifier) -> SQLError {
        switch error {
        case .io(let failure): failure.remoteError(of: "table \"\(table)\"")
        case .parquet(.io(let failure)): failure.remoteError(of: "table \"\(table)\"")
        case .missing(let what):
            // Of a class that is tried again: a catalog that has just been started may not know its tables yet.
            SQLError(.undefinedObject, "there is no \(what)", hint: "Make it again, or drop the sink.")
        case .commitConflict, .commitUnknown:
            // Opening the table again tells what is in it.
            SQLError(
                .connectionFailure, "could not commit to table \"\(table)\"", detail: error.sqlError.detail,
                hint: "It is tried again by itself.")
        case .outrun(let what):
            SQLError(
                .objectNotInPrerequisiteState, "another writer has taken the place of this sink in table \"\(table)\"", detail: what,
                hint: "Two servers run this sink, as after copying a data directory, or another sink took the table over: drop one of them."
            )
        default: error.sqlError
        }
    }

    /// The same as CREATE SINK says it: what is not there has to be made first.
    static func refusal(_ error: IcebergError, _ table: TableIdentifier) -> SQLError {
        guard case .missing(let what) = error else { return failure(error, table) }
        if what.hasPrefix("catalog ") {
            return SQLError(.undefinedObject, "there is no \(what)", hint: "Look at catalog.uri and warehouse.path.")
        }
        return SQLError(
            what.hasPrefix("namespace ") ? .invalidSchemaName : .undefinedTable, "there is no \(what)",
            hint: "Make it first, or set create_table_if_not_exists = 'true'.")
    }
}
