import MillBase
import MillColumnar
import MillExpr
import MillPlan
import MillSQL

/// TUMBLE and HOP in FROM.
extension Binder {
    /// Windows that one row may fall into at most: more is a mistyped interval, and each is a row.
    private static let windowsPerRowMax: Int64 = 10_000

    func bindTableFunction(_ function: TableFunction, outer: Scope?) throws(SQLError) -> FromItem {
        let call = function.call
        let name = call.name.last.name
        if name == "unnest" || name == "pg_options_to_table" { return try bindArrayTable(function, outer: outer) }
        guard name == "tumble" || name == "hop" else {
            if FunctionRegistry.isFunction(name) || FunctionRegistry.isAggregate(name) {
                throw unsupported("function \(name) in FROM", at: call.name.span.source)
            }
            throw SQLError(
                .undefinedFunction, "table function \(name) does not exist", hint: "TUMBLE and HOP are the table functions.", at: call.name.span.source)
        }
        if function.withOrdinality { throw unsupported("WITH ORDINALITY", at: function.span.source) }
        let isHop = name == "hop"
        let required = isHop ? 4 : 3
        let arguments = call.arguments.map(\.value)
        guard (required...required + 1).contains(arguments.count) else {
            let usage = isHop ? "HOP(relation, time_column, slide, size [, offset])" : "TUMBLE(relation, time_column, size [, offset])"
            throw SQLError(
                .undefinedFunction, "\(name.uppercased()) takes \(required) or \(required + 1) arguments", hint: "Write \(usage).",
                at: function.span.source)
        }
        let input = try bindWindowInput(arguments[0], outer: outer)
        let (column, type) = try bindTimeColumn(arguments[1], input, name.uppercased())
        let slide = try bindDuration(arguments[2], isHop ? "slide" : "size", name.uppercased())
        let size = isHop ? try bindDuration(arguments[3], "size", "HOP") : slide
        guard size >= slide else {
            throw SQLError(
                .invalidParameterValue, "the size of a HOP window must be at least its slide",
                hint: "HOP takes the slide first, then the size.", at: arguments[3].span.source)
        }
        guard size / slide <= Binder.windowsPerRowMax else {
            throw SQLError(
                .invalidParameterValue, "each row would fall into \(size / slide) windows", hint: "At most \(Binder.windowsPerRowMax) are possible.",
                at: arguments[2].span.source)
        }
        let offset = arguments.count > required ? try bindDuration(arguments[required], "offset", name.uppercased(), isPositive: false) : 0
        let window = TimeWindow(
            timeColumn: column, boundType: type == .timestamptz ? .timestamptz : .timestamp, slideMicros: slide, sizeMicros: size,
            offsetMicros: offset % slide)
        return try windowed(input, window, alias: function.alias)
    }

    /// The input with its names, and `window_start` and `window_end` under the same relation.
    private func windowed(_ input: FromItem, _ window: TimeWindow, alias: TableAlias?) throws(SQLError) -> FromItem {
        let plan = LogicalPlan.timeWindow(LogicalTimeWindow(input: input.plan, window: window))
        let names = input.scope.entries.map(\.name) + ["window_start", "window_end"]
        let hidden = Set(input.scope.entries.indices.filter { input.scope.entries[$0].isHidden })
        return try aliased(plan, names: names, hidden: hidden, alias?.name, alias?.columns ?? [], defaultName: input.scope.relations.first)
    }

    /// A relation by name, or a subquery in parentheses.
    private func bindWindowInput(_ argument: Expression, outer: Scope?) throws(SQLError) -> FromItem {
        switch argument.kind {
        case .column(let name): return try bindRelation(name, alias: nil)
        case .subquery(let query):
            let plan = try relation(try bindQuery(query, outer: outer))
            return try aliased(plan, names: plan.schema.map(\.name), nil, [], defaultName: nil)
        default:
            throw SQLError(
                .syntaxError, "the first argument of a window function in FROM must be a relation", hint: "Name a source, table, view or WITH query.",
                at: argument.span.source)
        }
    }

    private func bindTimeColumn(_ argument: Expression, _ input: FromItem, _ function: String) throws(SQLError) -> (Int, SQLType) {
        let bound = try bind(argument, ExpressionContext(scope: input.scope, outer: nil, clause: .tableFunction))
        guard case .column(let index, let type) = bound else {
            throw SQLError(.invalidColumnReference, "the second argument of \(function) must be a column", at: argument.span.source)
        }
        switch type {
        case .date, .timestamp, .timestamptz: return (index, type)
        default:
            throw SQLError(
                .datatypeMismatch, "the time column of \(function) must be date, timestamp or timestamp with time zone, not \(type.name)",
                hint: "Cast it in a subquery or WITH query.", at: argument.span.source)
        }
    }

    /// A constant interval in microseconds; a day counts 24 hours.
    private func bindDuration(
        _ argument: Expression, _ role: String, _ function: String, isPositive: Bool = true
    ) throws(SQLError) -> Int64 {
        let span = argument.span.source
        func invalid(_ message: String, hint: String? = nil) -> SQLError { SQLError(.invalidParameterValue, message, hint: hint, at: span) }
        let context = ExpressionContext(scope: Scope(), outer: nil, clause: .tableFunction)
        let bound: BoundExpression
        do { bound = try bind(argument, context) } catch {
            guard error.sqlState == .undefinedColumn || error.sqlState == .undefinedTable else { throw error }
            throw invalid("the \(role) of \(function) must be a constant interval")
        }
        let value: Scalar?
        do { value = try constant(try coerce(bound, to: .interval, at: span)) } catch {
            if error.sqlState == .datatypeMismatch {
                throw SQLError(
                    .datatypeMismatch, "the \(role) of \(function) must be an interval, not \(bound.type.name)", hint: "Write INTERVAL '15 SECONDS'.",
                    at: span)
            }
            throw error.located(at: span)
        }
        guard case .interval(let interval) = value else { throw invalid("the \(role) of \(function) must be a constant interval") }
        guard interval.months == 0 else {
            throw invalid("the \(role) of \(function) must not have months or years", hint: "They differ in length: use days or hours.")
        }
        let (days, overflow) = Int64(interval.days).multipliedReportingOverflow(by: 86_400_000_000)
        let (micros, overflow2) = days.addingReportingOverflow(interval.micros)
        guard !overflow, !overflow2 else { throw invalid("the \(role) of \(function) is out of range") }
        guard micros > 0 || !isPositive else { throw invalid("the \(role) of \(function) must be greater than zero") }
        return micros
    }
}
