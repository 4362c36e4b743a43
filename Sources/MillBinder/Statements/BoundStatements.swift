package import MillCatalog
package import MillPlan

/// INSERT with its meaning settled.
package struct BoundInsert: Hashable, Sendable {
    package var table: CatalogObject
    /// The rows to store: every column of the table in its order, of its type.
    package var query: BoundQuery
    /// Columns that may not be NULL, each checked on every row (23502).
    package var notNullColumns: [Int]
    /// RETURNING, over the table's columns; empty without.
    package var returning: LogicalProject?

    package init(table: CatalogObject, query: BoundQuery, notNullColumns: [Int], returning: LogicalProject? = nil) {
        self.table = table
        self.query = query
        self.notNullColumns = notNullColumns
        self.returning = returning
    }
}

/// CREATE SOURCE or TABLE with its types resolved: what becomes a `CatalogObject` once the connector agrees.
package struct BoundRelation: Hashable, Sendable {
    package var kind: CatalogObject.Kind
    package var schemaName: String
    package var name: String
    package var columns: [CatalogColumn]
    package var primaryKey: [Int]
    /// WITH options in the order written, then `format`, `encode` and the encoding's options.
    package var options: [CatalogOption]
    /// CREATE TABLE ... AS: the rows to begin with.
    package var query: BoundQuery?

    package init(
        kind: CatalogObject.Kind, schemaName: String, name: String, columns: [CatalogColumn], primaryKey: [Int], options: [CatalogOption],
        query: BoundQuery? = nil
    ) {
        self.kind = kind
        self.schemaName = schemaName
        self.name = name
        self.columns = columns
        self.primaryKey = primaryKey
        self.options = options
        self.query = query
    }
}

/// CREATE [MATERIALIZED] VIEW with its query bound.
package struct BoundView: Hashable, Sendable {
    package var kind: CatalogObject.Kind
    package var schemaName: String
    package var name: String
    package var columns: [CatalogColumn]
    /// The rows as a relation: an ORDER BY with LIMIT is part of the plan, an ORDER BY alone has no meaning.
    package var query: BoundQuery
    package var options: [CatalogOption]

    package init(kind: CatalogObject.Kind, schemaName: String, name: String, columns: [CatalogColumn], query: BoundQuery, options: [CatalogOption]) {
        self.kind = kind
        self.schemaName = schemaName
        self.name = name
        self.columns = columns
        self.query = query
        self.options = options
    }
}
