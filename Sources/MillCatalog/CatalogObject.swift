package import MillBase
package import MillColumnar
package import MillPlan

/// A named object of the catalog.
package struct CatalogObject: Hashable, Sendable {
    package var id: ObjectID
    package var schemaName: String
    package var name: String
    package var kind: Kind
    package var columns: [CatalogColumn]
    /// Numbers of the PRIMARY KEY's columns; empty without one.
    package var primaryKey: [Int]
    /// Of a source or table.
    package var watermark: SourceWatermark?
    /// What it reads directly. DROP of one of these is refused or cascades.
    package var dependencies: [ObjectID]
    /// The CREATE statement as the parser prints it, for SHOW CREATE and for starting again.
    package var definition: String
    /// WITH options and format of a source or sink, in the order written.
    package var options: [CatalogOption]
    /// A view's query, bound; its meaning is expanded where it is used.
    package var query: BoundQuery?

    package enum Kind: String, Hashable, Sendable {
        case source
        case table
        case materializedView = "materialized view"
        case view
        case sink
        case system
    }

    package init(
        id: ObjectID, schemaName: String, name: String, kind: Kind, columns: [CatalogColumn], primaryKey: [Int] = [],
        watermark: SourceWatermark? = nil, dependencies: [ObjectID] = [],
        definition: String = "", options: [CatalogOption] = [], query: BoundQuery? = nil
    ) {
        self.id = id
        self.schemaName = schemaName
        self.name = name
        self.kind = kind
        self.columns = columns
        self.primaryKey = primaryKey
        self.watermark = watermark
        self.dependencies = dependencies
        self.definition = definition
        self.options = options
        self.query = query
    }

    package var schema: Schema { columns.map { Field($0.name, $0.type) } }

    /// The hidden column that numbers the rows of a table without a primary key.
    package var rowIDColumn: Int? { kind == .table && primaryKey.isEmpty ? columns.firstIndex(where: \.isRowID) : nil }

    /// The columns that tell a table's rows apart: its primary key, or the hidden number of each row.
    package var rowKey: [Int] { rowIDColumn.map { [$0] } ?? primaryKey }

    /// The name of the primary key's constraint and index, as PostgreSQL makes it.
    package var primaryKeyName: String { name + "_pkey" }
}

package struct CatalogColumn: Hashable, Sendable {
    package var name: String
    package var type: SQLType
    package var isNullable: Bool
    /// DEFAULT as SQL text, evaluated for an INSERT that leaves the column out.
    package var defaultText: String?
    /// The characters of `varchar(n)`: a longer text is refused by INSERT. A source takes texts as they come.
    package var lengthMax: Int?
    /// Not shown by `*`, such as a source's position.
    package var isHidden: Bool

    /// The hidden column of a table without a primary key. Numbers are given out once, and a row keeps its own for its life.
    package static let rowID = CatalogColumn("_row_id", .int64, isNullable: false, isHidden: true)
    package var isRowID: Bool { isHidden && name == CatalogColumn.rowID.name }

    package init(_ name: String, _ type: SQLType, isNullable: Bool = true, defaultText: String? = nil, isHidden: Bool = false) {
        self.name = name
        self.type = type
        self.isNullable = isNullable
        self.defaultText = defaultText
        self.isHidden = isHidden
    }
}

package struct CatalogOption: Hashable, Sendable {
    package var name: String
    package var value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}
