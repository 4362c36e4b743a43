/// CREATE [MATERIALIZED] VIEW.
package struct CreateView: Hashable, Sendable {
    package var isMaterialized: Bool
    package var orReplace: Bool
    package var isTemporary: Bool
    package var ifNotExists: Bool
    package var name: ObjectName
    package var columns: [Identifier]
    package var options: [WithOption]
    package var query: Query
    /// EMIT ON WINDOW CLOSE.
    package var emitOnWindowClose: Bool
}

package struct CreateSink: Hashable, Sendable {
    package enum Input: Hashable, Sendable {
        case relation(ObjectName)
        case query(Query)
    }

    package var orReplace: Bool
    package var ifNotExists: Bool
    package var name: ObjectName
    /// `INTO table (columns)`.
    package var into: ObjectName?
    package var columns: [Identifier]
    package var input: Input
    package var emitOnWindowClose: Bool
    package var options: [WithOption]
    package var format: FormatClause?

    /// The view whose rows it sends.
    package var view: CreateView {
        let query: Query =
            switch input {
            case .query(let query): query
            case .relation(let name): Query(with: nil, body: .table(name), span: name.span)
            }
        return CreateView(
            isMaterialized: true, orReplace: false, isTemporary: false, ifNotExists: false, name: name, columns: [], options: [], query: query,
            emitOnWindowClose: emitOnWindowClose)
    }
}

package struct CreateNamespace: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case schema, database
    }

    package var kind: Kind
    package var ifNotExists: Bool
    package var name: ObjectName
    package var options: [WithOption]
}

package struct CreateIndex: Hashable, Sendable {
    package var isUnique: Bool
    package var ifNotExists: Bool
    package var name: Identifier?
    package var table: ObjectName
    package var method: Identifier?
    package var keys: [OrderItem]
    package var include: [Identifier]
    /// RisingWave's DISTRIBUTED BY.
    package var distributedBy: [Expression]
}

/// The kinds that DROP, ALTER, COMMENT, SHOW CREATE, PAUSE and the like can name.
package enum ObjectKind: String, Hashable, Sendable, CaseIterable {
    case table = "TABLE"
    case source = "SOURCE"
    case view = "VIEW"
    case materializedView = "MATERIALIZED VIEW"
    case sink = "SINK"
    case index = "INDEX"
    case schema = "SCHEMA"
    case database = "DATABASE"
    case connection = "CONNECTION"
    case secret = "SECRET"
    case function = "FUNCTION"
    case column = "COLUMN"
}

package struct Drop: Hashable, Sendable {
    package var kind: ObjectKind
    package var ifExists: Bool
    package var names: [ObjectName]
    /// CASCADE; else RESTRICT.
    package var cascade: Bool
}

package struct Alter: Hashable, Sendable {
    package enum Action: Hashable, Sendable {
        case rename(Identifier)
        case renameColumn(Identifier, Identifier)
        case addColumn(ColumnDefinition, ifNotExists: Bool)
        case dropColumn(Identifier, ifExists: Bool, cascade: Bool)
        case setSchema(Identifier)
        case owner(Identifier)
        /// `SET name = value`, also RisingWave's `SET PARALLELISM = 4`.
        case set(SettingName, SettingValue)
    }

    package var kind: ObjectKind
    package var ifExists: Bool
    package var name: ObjectName
    package var action: Action
}

package struct Comment: Hashable, Sendable {
    package var kind: ObjectKind
    package var name: ObjectName
    /// nil for IS NULL, which removes it.
    package var text: String?
}
