import MillBase
package import MillBinder
import MillCatalog
package import MillColumnar
package import MillExpr

/// What a statement needs to know of its session.
package struct SessionContext: Sendable {
    package var userName: String
    package var databaseName: String
    /// `on_error = raise`: a failing expression ends an ad-hoc query. Otherwise it gives NULL.
    package var raisesErrors: Bool
    /// `source_timeout`: how long a source may give a query nothing; nil is for ever.
    package var sourceTimeout: Duration?
    /// What the session's open transaction sees and has written; nil when it has done neither yet.
    package var transaction: OpenTransaction?
    /// For `pg_settings` and `current_setting`.
    package var settings: SessionSettings
    /// Cancels the running statement.
    package var cancellation: CancellationHook
    /// Files that a query may name; nil: none.
    package var files: (any FileColumns)?
    /// Tables of attached catalogs that a query may name; nil: none.
    package var catalogTables: (any CatalogTables)?

    package init(
        userName: String, databaseName: String, raisesErrors: Bool = true, sourceTimeout: Duration? = nil,
        transaction: OpenTransaction? = nil, settings: SessionSettings = SessionSettings(), cancellation: CancellationHook = CancellationHook(),
        files: (any FileColumns)? = nil, catalogTables: (any CatalogTables)? = nil
    ) {
        self.userName = userName
        self.databaseName = databaseName
        self.raisesErrors = raisesErrors
        self.sourceTimeout = sourceTimeout
        self.transaction = transaction
        self.settings = settings
        self.cancellation = cancellation
        self.files = files
        self.catalogTables = catalogTables
    }

    /// What system relations and catalog functions show of a state of the catalog.
    func systemContext(_ catalog: Catalog) -> SystemContext {
        SystemContext(catalog: catalog, databaseName: databaseName, userName: userName, settings: settings)
    }

    /// - Parameter functions: the catalog's, where the statement may call them.
    package func binderContext(
        _ purpose: BinderContext.Purpose, parameterTypes: [SQLType?] = [], parameterValues: [BoundExpression] = [],
        functions: (any CatalogFunctions)? = nil
    ) -> BinderContext {
        func text(_ value: String) -> BoundExpression { .literal(.string(value), .varchar) }
        return BinderContext(
            purpose, parameterTypes: parameterTypes, parameterValues: parameterValues,
            sessionValues: [
                "current_user": text(userName), "session_user": text(userName), "user": text(userName), "current_role": text(userName),
                "current_database": text(databaseName), "current_catalog": text(databaseName), "current_schema": text("public"),
                "version": text(Engine.versionText),
            ], catalogFunctions: functions, files: files, catalogTables: catalogTables)
    }
}

extension Engine {
    /// What `version()` says: drivers read the PostgreSQL number from its start.
    package static let versionText = "PostgreSQL 14.0 (Millrace \(version))"
    package static let version = "0.1.0"
}
