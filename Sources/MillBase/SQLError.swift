/// What a user sees when a statement, a value or a connection is refused.
///
/// `message` is a lower-case fragment that names objects in double quotes and no function of ours; `hint` is a
/// sentence that says what to do. `span` points into the statement; the wire turns it into PostgreSQL's one-based
/// character position.
package struct SQLError: Error, Sendable, Hashable, CustomStringConvertible {
    package var sqlState: SQLState
    package var message: String
    package var detail: String?
    package var hint: String?
    package var span: SourceSpan?

    package init(_ sqlState: SQLState, _ message: String, detail: String? = nil, hint: String? = nil, at span: SourceSpan? = nil) {
        self.sqlState = sqlState
        self.message = message
        self.detail = detail
        self.hint = hint
        self.span = span
    }

    package var description: String {
        "\(sqlState): \(message)" + (detail.map { "; \($0)" } ?? "") + (hint.map { " (\($0))" } ?? "")
    }

    /// The same error, pointing at `span` unless it already points somewhere.
    package func located(at span: SourceSpan?) -> SQLError {
        guard self.span == nil else { return self }
        var copy = self
        copy.span = span
        return copy
    }
}

/// A module's own error that has one translation into what the user sees.
package protocol SQLErrorConvertible: Error {
    var sqlError: SQLError { get }
}

extension SQLError {
    /// Of what would need a part of the server that has ended, or is about to.
    package static let shuttingDown = SQLError(.adminShutdown, "the server is shutting down")

    /// Any error as the user sees it: our own kinds by their translation, everything else as XX000, which means a bug.
    package init(any error: any Error) {
        switch error {
        case let error as SQLError: self = error
        case let error as any SQLErrorConvertible: self = error.sqlError
        case is CancellationError: self = SQLError(.queryCanceled, "canceling statement due to user request")
        default: self = SQLError(.internalError, "\(error)")
        }
    }
}
