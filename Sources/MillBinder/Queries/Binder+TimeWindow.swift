import MillBase
import MillColumnar
import MillExpr
import MillPlan
import MillSQL

/// A table function that appends the bounds of windows.
private enum WindowFunction: String, CaseIterable {
    case tumble
    case hop
    case session

    /// SQL's name.
    var name: String { rawValue.uppercased() }

    /// Arguments in their order, by the names that Flink gives them.
    var arguments: [String] {
        switch self {
        case .tumble: ["data", "timecol", "size", "offset"]
        case .hop: ["data", "timecol", "slide", "size", "offset"]
        case .session: ["data", "timecol", "gap"]
        }
    }

    /// The first so many arguments cannot be left out.
    var requiredCount: Int { self == .hop ? 4 : 3 }

    var usage: String {
        switch self {
        case .tumble: "TUMBLE(relation, time_column, size [, offset])"
        case .hop: "HOP(relation, time_column, slide, size [, offset])"
        case .session: "SESSION(relation [PARTITION BY (column, ...)], time_column, gap)"
        }
    }
}

/// TUMBLE, HOP and SESSION in FROM.
extension Binder {
    /// Windows that one row may fall into at most: more is a mistyped interval, and each is a row.
    private static let windowsPerRowMax: Int64 = 10_000

    func bindTableFunction(_ function: TableFunction, outer: Scope?) throws(SQLError) -> FromItem {
        let name = function.call.name.last.name
        let span = function.call.name.span.source
        if name == "unnest" || name == "pg_options_to_table" { return try bindArrayTable(function, outer: outer) }
        if let encode = Self.fileFunctions[name] { return try bindFiles(function, encode: encode) }
        guard let window = WindowFunction(rawValue: name) else {
            let isKnown = FunctionRegistry.isFunction(name) || FunctionRegistry.isAggregate(name)
            if isKnown { throw unsupported("function \(name) in FROM", at: span) }
            let hint = "TUMBLE, HOP, SESSION, read_parquet, read_csv and read_json are the table functions."
            throw SQLError(.undefinedFunction, "table function \(name) does not exist", hint: hint, at: span)
        }
        if function.withOrdinality { throw unsupported("WITH ORDINALITY", at: function.span.source) }
        let arguments = try ordered(function, window)
        for argument in arguments.dropFirst(window == .session ? 1 : 0) {
            guard let first = argument.partitionBy.first else { continue }
            throw SQLError(
                .syntaxError, "PARTITION BY stands only behind the relation of SESSION",
                hint: window == .session ? nil : "\(window.name) needs none: group by the columns.", at: first.span.source)
        }
        let input = try bindWindowInput(arguments[0].value, outer: outer)
        let (column, type) = try bindTimeColumn(arguments[1].value, input, window.name)
        let boundType: SQLType = type == .timestamptz ? .timestamptz : .timestamp
        if window == .session {
            let gap = try bindDuration(arguments[2].value, "gap", window.name)
            guard gap < SessionWindow.gapMicrosBound else {
                throw SQLError(.invalidParameterValue, "the gap of SESSION is out of range", at: arguments[2].value.span.source)
            }
            let partition = try bindPartition(arguments[0].partitionBy, input)
            let session = SessionWindow(timeColumn: column, boundType: boundType, gapMicros: gap, partition: partition)
            let plan = LogicalPlan.sessionWindow(LogicalSessionWindow(input: input.plan, window: session))
            return try windowed(plan, over: input, alias: function.alias)
        }
        let bound = try bindSlide(window, arguments.map(\.value), column, boundType)
        return try windowed(.timeWindow(LogicalTimeWindow(input: input.plan, window: bound)), over: input, alias: function.alias)
    }

    /// The arguments in the order of the function, as which some or all may be given by name.
    private func ordered(_ function: TableFunction, _ window: WindowFunction) throws(SQLError) -> [FunctionCall.Argument] {
        var places: [FunctionCall.Argument?] = Array(repeating: nil, count: window.arguments.count)
        for (index, argument) in function.call.arguments.enumerated() {
            let named = argument.name.map { name in window.arguments.firstIndex(of: name.name) }
            guard let place = named ?? index, place < places.count, places[place] == nil else {
                guard let name = argument.name else { break }
                throw SQLError(
                    .undefinedFunction, "\(window.name) has no argument \"\(name.name)\", or has it twice",
                    hint: "Its arguments are \(window.arguments.map { $0.uppercased() }.joined(separator: ", ")).", at: name.span.source)
            }
            places[place] = argument
        }
        let given = places.prefix { $0 != nil }.compactMap { $0 }
        guard given.count == function.call.arguments.count, given.count >= window.requiredCount else {
            let (least, most) = (window.requiredCount, window.arguments.count)
            throw SQLError(
                .undefinedFunction, "\(window.name) takes \(least == most ? "\(least)" : "\(least) or \(most)") arguments",
                hint: "Write \(window.usage).", at: function.span.source)
        }
        return given
    }

    /// The window of TUMBLE or HOP.
    private func bindSlide(
        _ function: WindowFunction, _ arguments: [Expression], _ column: Int, _ boundType: SQLType
    ) throws(SQLError) -> TimeWindow {
        let isHop = function == .hop
        let slide = try bindDuration(arguments[2], isHop ? "slide" : "size", function.name)
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
        let required = function.requiredCount
        let offset = arguments.count > required ? try bindDuration(arguments[required], "offset", function.name, isPositive: false) : 0
        return TimeWindow(timeColumn: column, boundType: boundType, slideMicros: slide, sizeMicros: size, offsetMicros: offset % slide)
    }

    /// The columns that part sessions, each once.
    private func bindPartition(_ expressions: [Expression], _ input: FromItem) throws(SQLError) -> [Int] {
        var columns: [Int] = []
        for expression in expressions {
            let bound = try bind(expression, ExpressionContext(scope: input.scope, outer: nil, clause: .tableFunction))
            guard case .column(let index, _) = bound else {
                throw SQLError(
                    .invalidColumnReference, "PARTITION BY of SESSION takes columns", hint: "Compute it in a subquery or WITH query.",
                    at: expression.span.source)
            }
            if !columns.contains(index) { columns.append(index) }
        }
        return columns
    }

    /// The plan of a window over an input: its names, and `window_start` and `window_end` under the same relation.
    private func windowed(_ plan: LogicalPlan, over input: FromItem, alias: TableAlias?) throws(SQLError) -> FromItem {
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

    /// A column, or `DESCRIPTOR(column)` as Flink writes it.
    private func bindTimeColumn(_ argument: Expression, _ input: FromItem, _ function: String) throws(SQLError) -> (Int, SQLType) {
        var argument = argument
        if case .call(let call) = argument.kind, call.name.last.name == "descriptor", call.arguments.count == 1 {
            argument = call.arguments[0].value
        }
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
