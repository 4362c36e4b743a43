package import MillBase
package import MillColumnar

/// What the registry made of a name and argument types: the overload and the type of its result.
package struct ResolvedFunction: Hashable, Sendable {
    package let function: ScalarFunction
    package let type: SQLType

    /// What each argument must be coerced to; `any` arguments keep their own type.
    package var argumentTypes: [SQLType] { function.argumentTypes }

    /// The call on `arguments`, with implicit casts written out.
    package func call(_ arguments: [BoundExpression], at span: SourceSpan? = nil) throws(SQLError) -> BoundExpression {
        var coerced: [BoundExpression] = []
        for (argument, target) in zip(arguments, argumentTypes) { coerced.append(try Coercion.coerce(argument, to: target, at: span)) }
        return .call(function, coerced, type, span)
    }
}

/// What the registry made of an aggregate's name and argument types.
package struct ResolvedAggregate: Hashable, Sendable {
    package let function: AggregateFunction
    /// What the argument must be coerced to; nil for `count(*)`.
    package let argumentType: SQLType?
    package let type: SQLType
}
