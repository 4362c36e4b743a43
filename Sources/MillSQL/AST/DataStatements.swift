package struct Insert: Hashable, Sendable {
    package enum Input: Hashable, Sendable {
        case query(Query)
        case defaultValues
    }

    package var with: WithClause?
    package var table: ObjectName
    package var alias: Identifier?
    package var columns: [Identifier]
    package var input: Input
    package var onConflict: OnConflict?
    package var returning: [SelectItem]
}

package struct OnConflict: Hashable, Sendable {
    package enum Action: Hashable, Sendable {
        case nothing
        case update([Assignment], filter: Expression?)
    }

    package enum Target: Hashable, Sendable {
        case columns([Expression], filter: Expression?)
        case constraint(Identifier)
    }

    package var target: Target?
    package var action: Action
    package var span: NodeSpan
}

/// `column = value` or `(a, b) = row`.
package struct Assignment: Hashable, Sendable {
    package var columns: [ObjectName]
    /// Written with parentheses, so that the value is a row even for one column.
    package var isRow: Bool
    package var value: Expression
}

package struct Update: Hashable, Sendable {
    package var with: WithClause?
    package var table: NamedTable
    package var assignments: [Assignment]
    package var from: [TableReference]
    package var filter: Expression?
    package var returning: [SelectItem]
}

package struct Delete: Hashable, Sendable {
    package var with: WithClause?
    package var table: NamedTable
    package var using: [TableReference]
    package var filter: Expression?
    package var returning: [SelectItem]
}

package struct Truncate: Hashable, Sendable {
    package var tables: [ObjectName]
    package var cascade: Bool

    /// What it does to each table: all rows go.
    package var deletions: [Delete] {
        tables.map { name in
            Delete(with: nil, table: NamedTable(name: name, version: nil, alias: nil, span: name.span), using: [], filter: nil, returning: [])
        }
    }
}

package struct Copy: Hashable, Sendable {
    package enum Subject: Hashable, Sendable {
        case table(ObjectName, columns: [Identifier])
        case query(Query)
    }

    package enum Endpoint: Hashable, Sendable {
        case stdin
        case stdout
        case file(String)
    }

    package var subject: Subject
    package var isFrom: Bool
    package var endpoint: Endpoint
    /// `WITH (FORMAT csv, HEADER)`; PostgreSQL's older words arrive as the same keys.
    package var options: [WithOption]
}
