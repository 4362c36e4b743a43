import MillBase
import MillColumnar
import MillExpr
import MillSQL

/// Calls: scalar functions, aggregates, the special forms, and the moment of `now()`.
extension Binder {
    func bindCall(_ call: FunctionCall, _ scope: ExpressionContext, at span: SourceSpan) throws(SQLError) -> BoundExpression {
        let name = call.name.last.name
        for argument in call.arguments where argument.name != nil {
            throw unsupported("a named argument", at: argument.value.span.source)
        }
        if call.isVariadic { throw unsupported("VARIADIC", at: span) }
        if let window = call.over { return try bindWindowCall(call, over: window, scope, at: span) }
        if FunctionRegistry.isAggregate(name) { return try bindAggregate(call, scope, at: span) }
        if call.isDistinct || call.filter != nil || !call.orderBy.isEmpty || !call.withinGroup.isEmpty {
            let what = call.isDistinct ? "DISTINCT" : call.filter != nil ? "FILTER" : call.orderBy.isEmpty ? "WITHIN GROUP" : "ORDER BY"
            guard FunctionRegistry.isFunction(name) else { throw undefined(name, at: call.name.span.source) }
            throw SQLError(.wrongObjectType, "\(what) specified, but \(name) is not an aggregate function", at: call.name.span.source)
        }
        if call.syntax == .star {
            throw SQLError(.wrongObjectType, "\(name)(*) specified, but \(name) is not an aggregate function", at: call.name.span.source)
        }
        if let value = try bindMoment(name, call, at: span) { return value }
        if call.arguments.isEmpty, let value = context.sessionValues[name] {
            isOfTheMoment = true
            return value
        }
        if let value = try bindCatalogCall(name, call, scope, at: span) { return value }
        switch name {
        case "coalesce": return try bindCoalesce(call.arguments.map(\.value), scope, at: span)
        case "nullif": return try bindNullIf(call.arguments.map(\.value), scope, at: span)
        default:
            if Binder.isWindowFunction(name) {
                throw SQLError(.wrongObjectType, "window function \(name) requires an OVER clause", at: call.name.span.source)
            }
            return try bindFunction(name, call.arguments.map(\.value), scope, at: span, nameSpan: call.name.span.source)
        }
    }

    /// A scalar function by its registry name.
    func bindFunction(
        _ name: String, _ arguments: [Expression], _ scope: ExpressionContext, at span: SourceSpan, nameSpan: SourceSpan? = nil
    ) throws(SQLError) -> BoundExpression {
        var bound: [BoundExpression] = []
        for argument in arguments { bound.append(try bind(argument, scope)) }
        do {
            let resolved = try FunctionRegistry.resolve(name: name, arguments: bound.map(\.type))
            return try call(resolved, bound, spans: arguments.map(\.span.source), at: span)
        } catch { throw error.located(at: nameSpan ?? span) }
    }

    private func undefined(_ name: String, at span: SourceSpan) -> SQLError {
        SQLError(
            .undefinedFunction, "function \(name) does not exist",
            hint: "No function matches the given name and argument types. You might need to add explicit type casts.", at: span)
    }

    // MARK: Aggregates

    private func bindAggregate(_ call: FunctionCall, _ scope: ExpressionContext, at span: SourceSpan) throws(SQLError) -> BoundExpression {
        let name = call.name.last.name
        if scope.isInsideAggregate { throw SQLError(.groupingError, "aggregate function calls cannot be nested", at: span) }
        guard scope.clause.allowsAggregates else {
            throw SQLError(.groupingError, "aggregate functions are not allowed in \(scope.clause.rawValue)", at: span)
        }
        scope.isInsideAggregate = true
        defer { scope.isInsideAggregate = false }
        // What an aggregate reads need not be grouped: its mentions are nobody's business outside.
        let mentions = scope.mentions
        let bound = try aggregateCall(call, scope, at: span)
        scope.mentions = mentions
        return scope.add(bound)
    }

    /// An aggregate with its argument and its filter, whether over a group or over a window.
    func aggregateCall(_ call: FunctionCall, _ scope: ExpressionContext, at span: SourceSpan) throws(SQLError) -> AggregateCall {
        let name = call.name.last.name
        if !call.orderBy.isEmpty || !call.withinGroup.isEmpty { throw unsupported("ORDER BY in aggregate \(name)", at: span) }
        if call.arguments.isEmpty, call.syntax != .star {
            if name == "count" { throw SQLError(.wrongObjectType, "count(*) must be used to call a parameterless aggregate function", at: span) }
            throw undefined("\(name)()", at: call.name.span.source)
        }
        var arguments: [BoundExpression] = []
        for argument in call.arguments { arguments.append(try bind(argument.value, scope)) }
        let filter: BoundExpression? =
            if let condition = call.filter {
                try requireBoolean(try bind(condition, scope), in: "FILTER", at: condition.span.source)
            } else { nil }
        do {
            let resolved = try FunctionRegistry.resolveAggregate(name, arguments: arguments.map(\.type), distinct: call.isDistinct)
            var argument = arguments.first
            if let value = argument, let type = resolved.argumentType {
                argument = try coerce(value, to: type, at: call.arguments[0].value.span.source)
            }
            // MIN, MAX and the boolean ones see the same values once or often: without DISTINCT they need no set of them.
            let isDistinct = call.isDistinct && ![.min, .max, .boolAnd, .boolOr].contains(resolved.function)
            return AggregateCall(resolved.function, argument: argument, distinct: isDistinct, filter: filter, type: resolved.type)
        } catch { throw error.located(at: span) }
    }

    // MARK: Special forms

    private func bindCoalesce(_ arguments: [Expression], _ scope: ExpressionContext, at span: SourceSpan) throws(SQLError) -> BoundExpression {
        guard !arguments.isEmpty else { throw SQLError(.syntaxError, "COALESCE needs at least one argument", at: span) }
        var bound: [BoundExpression] = []
        for argument in arguments { bound.append(try bind(argument, scope)) }
        let (values, type) = try unify(bound, spans: arguments.map(\.span.source), of: "COALESCE")
        return values.count == 1 ? values[0] : .coalesce(values, type)
    }

    /// `NULLIF(a, b)`: NULL where a = b, else a, in a's type.
    private func bindNullIf(_ arguments: [Expression], _ scope: ExpressionContext, at span: SourceSpan) throws(SQLError) -> BoundExpression {
        guard arguments.count == 2 else { throw SQLError(.syntaxError, "NULLIF needs two arguments", at: span) }
        let left = try duplicating(2, at: span) { () throws(SQLError) in try bind(arguments[0], scope) }
        let right = try bind(arguments[1], scope)
        let equality = try bindOperator(OperatorName("="), left, right, spans: arguments.map(\.span.source), at: span)
        let value = try settled(left)
        return .caseWhen([.init(equality, .literal(.null, value.type))], otherwise: value, value.type)
    }

    /// `now()` and its kin: the statement's moment, which a view does not have.
    private func bindMoment(_ name: String, _ call: FunctionCall, at span: SourceSpan) throws(SQLError) -> BoundExpression? {
        let isWithoutArguments = call.arguments.isEmpty || call.syntax == .keyword
        guard isWithoutArguments else { return nil }
        let type: SQLType
        switch name {
        case "now", "current_timestamp", "transaction_timestamp", "statement_timestamp", "clock_timestamp", "proctime": type = .timestamptz
        case "localtimestamp": type = .timestamp
        case "current_date": type = .date
        case "localtime", "current_time": type = .time
        default: return nil
        }
        guard case .statement(let now) = context.purpose else {
            throw SQLError(
                .featureNotSupported, "\(name) is not supported in a materialized view",
                hint: "Leave it out of the view and compare with it in the SELECT that reads the view.", at: span)
        }
        isOfTheMoment = true
        let microsPerDay: Int64 = 86_400_000_000
        let remainder = now % microsPerDay
        let timeOfDay = remainder < 0 ? remainder + microsPerDay : remainder
        switch type {
        case .date: return .literal(.int((now - timeOfDay) / microsPerDay), .date)
        case .time: return .literal(.int(timeOfDay), .time)
        default: return .literal(.int(now), type)
        }
    }
}
