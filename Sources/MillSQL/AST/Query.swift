/// SELECT, VALUES, TABLE and their combinations, with what may stand around them.
package struct Query: Hashable, Sendable {
    package var with: WithClause?
    package var body: QueryBody
    package var orderBy: [OrderItem] = []
    /// LIMIT and FETCH FIRST; LIMIT ALL and LIMIT NULL leave nil and a NULL literal.
    package var limit: Expression?
    /// FETCH FIRST ... WITH TIES.
    package var withTies = false
    package var offset: Expression?
    package var span: NodeSpan
}

package indirect enum QueryBody: Hashable, Sendable {
    case select(Select)
    /// One row or more, each with one value or more.
    case values([[Expression]], NodeSpan)
    /// `TABLE name`.
    case table(ObjectName)
    case setOperation(SetOperation)
    /// A parenthesised query that has its own WITH, ORDER BY, LIMIT or OFFSET.
    case nested(Query)
}

package struct SetOperation: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case union, intersect, except
    }

    package var kind: Kind
    package var isAll: Bool
    package var left: QueryBody
    package var right: QueryBody
    package var span: NodeSpan
}

package struct WithClause: Hashable, Sendable {
    package var isRecursive: Bool
    package var tables: [CommonTable]
    package var span: NodeSpan
}

package struct CommonTable: Hashable, Sendable {
    package var name: Identifier
    package var columns: [Identifier]
    /// `AS [NOT] MATERIALIZED`.
    package var materialized: Bool?
    package var query: Query
}

package struct OrderItem: Hashable, Sendable {
    package var expression: Expression
    package var isDescending: Bool
    /// nil where not written: last when ascending, first when descending.
    package var nullsFirst: Bool?
}

package struct Select: Hashable, Sendable {
    package enum Quantifier: Hashable, Sendable {
        case all
        case distinct
        case distinctOn([Expression])
    }

    package var quantifier = Quantifier.all
    /// Empty for `SELECT FROM t`.
    package var items: [SelectItem] = []
    package var from: [TableReference] = []
    package var filter: Expression?
    package var groupBy: [GroupingElement] = []
    package var having: Expression?
    package var windows: [NamedWindow] = []
    package var span: NodeSpan
}

package enum SelectItem: Hashable, Sendable {
    case expression(Expression, alias: Identifier?)
    /// `*` or `t.*`, with RisingWave's `EXCEPT (t.a, b)`.
    case wildcard(of: ObjectName?, except: [ObjectName], NodeSpan)
    /// `(x).*`.
    case fieldWildcard(Expression, NodeSpan)
}

package indirect enum GroupingElement: Hashable, Sendable {
    case expression(Expression)
    /// `()`.
    case empty(NodeSpan)
    /// Each element is one column set.
    case rollup([[Expression]], NodeSpan)
    case cube([[Expression]], NodeSpan)
    case sets([GroupingElement], NodeSpan)
}

package struct NamedWindow: Hashable, Sendable {
    package var name: Identifier
    package var specification: WindowSpecification
}
