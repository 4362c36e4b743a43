package import MillBase

/// Acknowledged transactions that cannot be read any more, and where they were: nobody who needs them goes on without them.
package struct DMLDamage: Sendable, Hashable, SQLErrorConvertible {
    package var path: String
    /// Where in the file the damage begins.
    package var offset: Int
    /// The first transaction that is lost, and the one after the last: none is when both are the same.
    package var first: DMLPosition
    package var next: DMLPosition

    /// XX001.
    package var sqlError: SQLError {
        let reason =
            first < next
            ? "transactions \(first) to \(next.previous), which were acknowledged, are not readable from byte \(offset) on"
            : "what lies between transactions is not readable from byte \(offset) on"
        let error = LogError.corrupted(path: path, reason: reason).sqlError
        return SQLError(
            error.sqlState, error.message,
            hint: "Restore the data directory from a copy; docs/operating.md says how to begin without what is lost.")
    }
}
