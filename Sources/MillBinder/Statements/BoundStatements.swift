package import MillCatalog
package import MillPlan

/// INSERT with its meaning settled.
package struct BoundInsert: Hashable, Sendable {
    package var table: CatalogObject
    /// The rows to store: every column of the table in its order, of its type. A hidden row number is NULL, for the engine to give.
    package var query: BoundQuery
    package var conflict: BoundConflict?
    /// RETURNING, over given rows with the table's columns.
    package var returning: BoundQuery?

    package init(table: CatalogObject, query: BoundQuery, conflict: BoundConflict? = nil, returning: BoundQuery? = nil) {
        self.table = table
        self.query = query
        self.conflict = conflict
        self.returning = returning
    }
}

/// What becomes of a row to insert whose primary key is there already.
package enum BoundConflict: Hashable, Sendable {
    case nothing
    /// Over given rows with the columns of the stored row and then of the row to insert: those that the WHERE keeps, as the
    /// columns of the stored row and then of the one in its place.
    case update(BoundQuery, assigned: [Int])
}

/// UPDATE with its meaning settled.
package struct BoundUpdate: Hashable, Sendable {
    package var table: CatalogObject
    /// The rows to change: the table's columns as they are, then as they will be, then what RETURNING reads of other relations.
    package var query: BoundQuery
    /// Columns that SET names.
    package var assigned: [Int]
    /// RETURNING, over given rows with the columns of `query`.
    package var returning: BoundQuery?
}

/// DELETE with its meaning settled.
package struct BoundDelete: Hashable, Sendable {
    package var table: CatalogObject
    /// The rows to delete: the table's columns, then what RETURNING reads of other relations.
    package var query: BoundQuery
    /// RETURNING, over given rows with the columns of `query`.
    package var returning: BoundQuery?
}

/// CREATE SOURCE or TABLE with its types resolved: what becomes a `CatalogObject` once the connector agrees.
package struct BoundRelation: Hashable, Sendable {
    package var kind: CatalogObject.Kind
    package var schemaName: String
    package var name: String
    package var columns: [CatalogColumn]
    package var primaryKey: [Int]
    package var watermark: SourceWatermark?
    /// WITH options in the order written, then `format`, `encode` and the encoding's options.
    package var options: [CatalogOption]
    /// CREATE TABLE ... AS: the rows to begin with.
    package var query: BoundQuery?

    package init(
        kind: CatalogObject.Kind, schemaName: String, name: String, columns: [CatalogColumn], primaryKey: [Int], watermark: SourceWatermark? = nil,
        options: [CatalogOption], query: BoundQuery? = nil
    ) {
        self.kind = kind
        self.schemaName = schemaName
        self.name = name
        self.columns = columns
        self.primaryKey = primaryKey
        self.watermark = watermark
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
