/// A scalar expression as written.
///
/// The parser produces it, the binder consumes it. Parentheses leave no node: the printer puts them back where
/// precedence asks for them. Every expression's height is at most `Parser.heightMax`, so a recursive walk may be
/// written plainly; chains of AND and of OR are flat lists, whatever their length.
package struct Expression: Hashable, Sendable {
    package var kind: Kind
    package var span: NodeSpan

    package init(_ kind: Kind, _ span: NodeSpan = NodeSpan(0, 0)) {
        self.kind = kind
        self.span = span
    }

    package indirect enum Kind: Hashable, Sendable {
        case literal(Literal)
        /// `DATE '2024-01-01'`, `TIMESTAMP(3) '...'`, `my_type '...'`.
        case typedLiteral(TypeName, String)
        /// `INTERVAL '15 SECONDS'`, `INTERVAL '15' SECOND`, `INTERVAL(3) '...'`.
        case interval(String, IntervalFields?)
        /// `$1`, counted from 1.
        case parameter(Int)
        /// `c`, `t.c`, `s.t.c`; in the arguments of a table function also a relation's name.
        case column(ObjectName)
        /// Prefix operators: `-x`, `+x`, `~x`, `@x`.
        case unary(OperatorName, Expression)
        case binary(Expression, OperatorName, Expression)
        /// Two operands or more.
        case and([Expression])
        /// Two operands or more.
        case or([Expression])
        case not(Expression)
        case isTest(Expression, IsTest, negated: Bool)
        /// `a IS [NOT] DISTINCT FROM b`.
        case isDistinct(Expression, Expression, negated: Bool)
        case between(Between)
        case like(Like)
        /// One element or more.
        case inList(Expression, [Expression], negated: Bool)
        case inQuery(Expression, Query, negated: Bool)
        case exists(Query)
        /// `(SELECT ...)` as a value.
        case subquery(Query)
        /// `x = ANY (...)`, `x <> ALL (SELECT ...)`.
        case quantified(Quantified)
        case caseWhen(Case)
        /// `CAST(x AS t)` and `x::t`.
        case cast(Expression, TypeName)
        /// `TRY_CAST(x AS t)`: NULL where the cast fails.
        case tryCast(Expression, TypeName)
        case collate(Expression, ObjectName)
        /// `x AT TIME ZONE zone`.
        case atTimeZone(Expression, zone: Expression)
        case call(FunctionCall)
        /// `ROW(...)` and `(a, b)`.
        case row([Expression])
        /// `ARRAY[...]`; nested brackets without the word ARRAY are nested arrays.
        case array([Expression])
        /// `ARRAY(SELECT ...)`.
        case arrayQuery(Query)
        /// `MAP {k: v, ...}`.
        case map([MapEntry])
        case element(Expression, at: Expression)
        /// `a[1:2]`; either bound may be missing.
        case slice(Expression, from: Expression?, to: Expression?)
        /// `(x).f`.
        case field(Expression, Identifier)
        /// DEFAULT as a cell of INSERT's VALUES or as an assigned value; the parser accepts it nowhere else.
        case defaultValue
    }
}

package enum Literal: Hashable, Sendable {
    case null
    case boolean(Bool)
    /// Decimal digits with an optional leading `-`. Integer if it has neither `.` nor `e`, else numeric. Underscores are
    /// gone, and hexadecimal, octal and binary integers are already decimal.
    case number(String)
    /// After escapes; whatever quoting was used.
    case string(String)
    /// `B'0101'`: the digits.
    case bits(String)
    /// `X'1f'`: the digits.
    case hexBits(String)
}

/// An operator by symbol, and by schema where it was written `OPERATOR(pg_catalog.~)`.
package struct OperatorName: Hashable, Sendable {
    /// As PostgreSQL's catalog has it: `!=` arrives as `<>`.
    package var symbol: String
    /// Empty unless the OPERATOR() form gave one.
    package var schema: [Identifier]
    package var span: NodeSpan

    package init(_ symbol: String, schema: [Identifier] = [], _ span: NodeSpan = NodeSpan(0, 0)) {
        self.symbol = symbol
        self.schema = schema
        self.span = span
    }
}

package enum IsTest: Hashable, Sendable {
    case null, `true`, `false`, unknown
}

package struct Between: Hashable, Sendable {
    package var operand: Expression
    package var low: Expression
    package var high: Expression
    package var symmetric: Bool
    package var negated: Bool
}

package enum LikeKind: Hashable, Sendable {
    case like, ilike, similarTo
}

package struct Like: Hashable, Sendable {
    package var operand: Expression
    package var kind: LikeKind
    package var pattern: Expression
    package var escape: Expression?
    package var negated: Bool
}

package struct Quantified: Hashable, Sendable {
    package enum Operand: Hashable, Sendable {
        case array(Expression)
        case query(Query)
    }

    package var left: Expression
    /// `x LIKE ANY` arrives as `~~`, NOT LIKE as `!~~`, ILIKE as `~~*` and `!~~*`.
    package var operation: OperatorName
    /// ALL; else ANY or SOME.
    package var isAll: Bool
    package var operand: Operand
}

package struct Case: Hashable, Sendable {
    package struct Branch: Hashable, Sendable {
        package var condition: Expression
        package var result: Expression
    }

    /// `CASE operand WHEN value`; nil for the searched form.
    package var operand: Expression?
    /// One branch or more.
    package var branches: [Branch]
    package var otherwise: Expression?
}

package struct MapEntry: Hashable, Sendable {
    package var key: Expression
    package var value: Expression
}
