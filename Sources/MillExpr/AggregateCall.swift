package import MillColumnar

/// An aggregate in a GROUP BY: which function, over what, and which rows count.
package struct AggregateCall: Hashable, Sendable, Codable {
    package var function: AggregateFunction
    /// The value that is aggregated; nil for `count(*)`.
    package var argument: BoundExpression?
    /// Further constant arguments, such as `string_agg`'s delimiter.
    package var options: [Scalar]
    package var distinct: Bool
    package var filter: BoundExpression?
    package var type: SQLType

    package init(
        _ function: AggregateFunction, argument: BoundExpression?, options: [Scalar] = [], distinct: Bool = false, filter: BoundExpression? = nil,
        type: SQLType
    ) {
        self.function = function
        self.argument = argument
        self.options = options
        self.distinct = distinct
        self.filter = filter
        self.type = type
    }
}

/// The aggregates. Argument types are already coerced to what the function takes.
package enum AggregateFunction: String, Hashable, Sendable, Codable, CaseIterable {
    /// Rows, or present values when there is an argument. bigint.
    case count
    /// int16 and int32 give bigint, bigint and numeric give numeric, real gives real, double gives double.
    case sum
    /// Integers and numeric give numeric, floats give double.
    case avg
    case min
    case max
    case boolAnd = "bool_and"
    case boolOr = "bool_or"
    /// The one value of the group; more than one row is error 21000. What a scalar subquery becomes.
    case singleValue = "single_value"
}
