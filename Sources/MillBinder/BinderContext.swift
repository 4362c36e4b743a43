package import MillColumnar
package import MillExpr

/// What a statement is bound for: the moment, the session and what its parameters are known to be.
package struct BinderContext: Sendable {
    /// How the bound query will live.
    package enum Purpose: Hashable, Sendable {
        /// Runs once. `now()` is this many microseconds since 1970 in UTC, `current_date` its day.
        case statement(now: Int64)
        /// Is kept correct for ever, so that nothing in it may stand for one moment.
        case view
    }

    package var purpose: Purpose
    /// Declared types of `$1`, `$2`, ...; nil where the client left it to the context.
    package var parameterTypes: [SQLType?]
    /// Values of `$1`, `$2`, ... of the types that an earlier binding inferred: with them LIMIT may be a parameter too. Empty
    /// while only the types are asked for.
    package var parameterValues: [BoundExpression]
    /// Functions without arguments that the session answers: `current_user`, `current_schema`, `version`, ...
    package var sessionValues: [String: BoundExpression]
    /// Functions that the catalog answers; nil where no catalog queries are expected.
    package var catalogFunctions: (any CatalogFunctions)?
    /// What `read_parquet` and the like read; nil where it has no place.
    package var files: (any FileColumns)?

    package init(
        _ purpose: Purpose, parameterTypes: [SQLType?] = [], parameterValues: [BoundExpression] = [], sessionValues: [String: BoundExpression] = [:],
        catalogFunctions: (any CatalogFunctions)? = nil, files: (any FileColumns)? = nil
    ) {
        self.purpose = purpose
        self.parameterTypes = parameterTypes
        self.parameterValues = parameterValues
        self.sessionValues = sessionValues
        self.catalogFunctions = catalogFunctions
        self.files = files
    }
}
