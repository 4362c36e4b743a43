package import MillColumnar

/// One overload of a scalar function or operator as the registry resolved it: a stable name and its argument types.
///
/// The pair is what a stored plan keeps; the kernel is looked up from it when the expression is compiled.
package struct ScalarFunction: Hashable, Sendable {
    /// The registry's name: `add`, `equal`, `lower`, `date_trunc`. Operators have word names.
    package let name: String
    /// The types of the arguments after coercion. A variadic overload lists one type per actual argument.
    package let argumentTypes: [SQLType]
    /// Same arguments, same result. `now()` is not: it is replaced by the epoch's time.
    package let volatility: Volatility

    package init(name: String, argumentTypes: [SQLType], volatility: Volatility = .immutable) {
        self.name = name
        self.argumentTypes = argumentTypes
        self.volatility = volatility
    }

    package enum Volatility: Hashable, Sendable {
        case immutable
        /// Constant within one epoch or ad-hoc statement: `now()`, `current_timestamp`.
        case stable
        case volatile
    }
}
