/// A call of a scalar, aggregate, window or table function.
///
/// The standard's special forms are calls too, with the arguments in the order of PostgreSQL's function and `syntax`
/// remembering how to print them: `EXTRACT(f FROM x)` is `extract('f', x)`, `POSITION(a IN b)` is `position(b, a)`,
/// `TRIM(LEADING y FROM x)` is `ltrim(x, y)`, `SUBSTRING(x FOR n)` is `substring(x, 1, n)`.
package struct FunctionCall: Hashable, Sendable {
    package struct Argument: Hashable, Sendable {
        /// `name => value`.
        package var name: Identifier?
        package var value: Expression
        /// `relation PARTITION BY a` or `PARTITION BY (a, b)`, in a call in FROM; empty if absent.
        package var partitionBy: [Expression] = []
    }

    package enum Syntax: Hashable, Sendable {
        case ordinary
        /// `count(*)`: no arguments.
        case star
        /// `CURRENT_TIMESTAMP`, `LOCALTIME(3)`: a word, with its precision as the only argument if there is one.
        case keyword
        case extract
        case position
        /// BOTH, LEADING and TRAILING are the names btrim, ltrim and rtrim.
        case trim
        case overlay
        case substringFrom
        case substringFor
    }

    package var name: ObjectName
    package var arguments: [Argument] = []
    package var syntax = Syntax.ordinary
    package var isDistinct = false
    /// The last argument is VARIADIC.
    package var isVariadic = false
    /// ORDER BY inside the parentheses.
    package var orderBy: [OrderItem] = []
    /// WITHIN GROUP (ORDER BY ...); empty if absent.
    package var withinGroup: [OrderItem] = []
    package var filter: Expression?
    package var over: WindowReference?

    package init(_ name: ObjectName, _ arguments: [Expression] = [], syntax: Syntax = .ordinary) {
        self.name = name
        self.arguments = arguments.map { Argument(name: nil, value: $0) }
        self.syntax = syntax
    }
}

/// What stands after OVER.
package enum WindowReference: Hashable, Sendable {
    case named(Identifier)
    case inline(WindowSpecification)
}

package struct WindowSpecification: Hashable, Sendable {
    /// A window of the WINDOW clause that this one extends.
    package var base: Identifier?
    package var partitionBy: [Expression] = []
    package var orderBy: [OrderItem] = []
    package var frame: WindowFrame?
    package var span: NodeSpan
}

package struct WindowFrame: Hashable, Sendable {
    package enum Unit: Hashable, Sendable {
        case rows, range, groups
    }

    package enum Bound: Hashable, Sendable {
        case unboundedPreceding
        case preceding(Expression)
        case currentRow
        case following(Expression)
        case unboundedFollowing
    }

    package enum Exclusion: Hashable, Sendable {
        case noOthers, currentRow, group, ties
    }

    package var unit: Unit
    package var start: Bound
    /// CURRENT ROW where only a start was written.
    package var end: Bound
    package var exclusion: Exclusion
    package var span: NodeSpan
}
