/// One item of a FROM list.
package indirect enum TableReference: Hashable, Sendable {
    case table(NamedTable)
    /// A call as a relation: `generate_series(1, 3)`, `TUMBLE(t, ts, INTERVAL '15 SECONDS')`.
    case function(TableFunction)
    case subquery(DerivedTable)
    case join(Join)

    package var span: NodeSpan {
        switch self {
        case .table(let table): table.span
        case .function(let function): function.span
        case .subquery(let derived): derived.span
        case .join(let join): join.span
        }
    }
}

package struct TableAlias: Hashable, Sendable {
    package var name: Identifier
    /// `AS t(a, b)`; empty if absent.
    package var columns: [Identifier]
}

package indirect enum TableVersion: Hashable, Sendable {
    /// `FOR SYSTEM_TIME AS OF expr`, also `FOR TIMESTAMP AS OF expr`.
    case time(Expression)
    /// `FOR SYSTEM_VERSION AS OF expr`, also `FOR VERSION AS OF expr`: a snapshot's number, a branch's or tag's name.
    case version(Expression)

    package var span: NodeSpan {
        switch self {
        case .time(let expression), .version(let expression): expression.span
        }
    }
}

package struct NamedTable: Hashable, Sendable {
    package var name: ObjectName
    /// Which state of a table that keeps older ones; nil for the newest.
    package var version: TableVersion?
    package var alias: TableAlias?
    package var span: NodeSpan
}

package struct TableFunction: Hashable, Sendable {
    package var isLateral: Bool
    package var call: FunctionCall
    package var withOrdinality: Bool
    package var alias: TableAlias?
    package var span: NodeSpan
}

package struct DerivedTable: Hashable, Sendable {
    package var isLateral: Bool
    package var query: Query
    package var alias: TableAlias?
    package var span: NodeSpan
}

package struct Join: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case inner, left, right, full, cross
    }

    package enum Condition: Hashable, Sendable {
        /// CROSS JOIN only.
        case none
        case on(Expression)
        /// `USING (a, b) [AS alias]`.
        case using([Identifier], alias: Identifier?)
        case natural
    }

    package var kind: Kind
    /// RisingWave's ASOF JOIN.
    package var isAsOf: Bool
    package var left: TableReference
    package var right: TableReference
    package var condition: Condition
    package var span: NodeSpan
}
