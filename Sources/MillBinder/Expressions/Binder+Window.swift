import MillBase
import MillColumnar
import MillExpr
import MillPlan
import MillSQL

/// Calls with OVER, and the windows that they and the WINDOW clause define.
extension Binder {
    /// Whether a function means nothing without OVER.
    static func isWindowFunction(_ name: String) -> Bool {
        let others: Set = ["percent_rank", "cume_dist", "ntile", "lag", "lead", "first_value", "last_value", "nth_value"]
        return RankFunction(rawValue: name) != nil || others.contains(name)
    }

    func bindWindowCall(
        _ call: FunctionCall, over reference: WindowReference, _ scope: ExpressionContext, at span: SourceSpan
    ) throws(SQLError) -> BoundExpression {
        let name = call.name.last.name
        let nameSpan = call.name.span.source
        guard FunctionRegistry.isAggregate(name) || Self.isWindowFunction(name) else {
            guard FunctionRegistry.isFunction(name) else {
                return try bindFunction(name, call.arguments.map(\.value), scope, at: span, nameSpan: nameSpan)
            }
            throw SQLError(.wrongObjectType, "OVER specified, but \(name) is not a window function nor an aggregate function", at: nameSpan)
        }
        try refuseMisplacedWindow(scope, at: nameSpan)
        if call.isDistinct {
            throw unsupported("DISTINCT in a window function", hint: "Take duplicates out in a subquery in FROM.", at: nameSpan)
        }
        if !call.orderBy.isEmpty {
            throw unsupported("ORDER BY among the arguments of a window function", hint: "Write the order into OVER (...).", at: nameSpan)
        }
        if !call.withinGroup.isEmpty { throw SQLError(.wrongObjectType, "window function \(name) cannot have WITHIN GROUP", at: nameSpan) }
        let specification: WindowSpecification
        switch reference {
        case .named(let window): specification = try namedWindow(window, scope)
        case .inline(let written): specification = try extended(written, scope)
        }
        var window = try bindWindow(specification, scope)
        let function: PendingWindowCall.Function
        if FunctionRegistry.isAggregate(name) {
            guard Self.isWhole(specification) else {
                throw unsupported(
                    "\(name) over a part of its partition", hint: "Without ORDER BY in its window it is computed over the whole partition.",
                    at: nameSpan)
            }
            window.order = []
            scope.isInsideWindowCall = true
            defer { scope.isInsideWindowCall = false }
            function = .aggregate(try aggregateCall(call, scope, at: span))
        } else {
            function = .rank(try rankFunction(call, scope))
        }
        return scope.add(PendingWindowCall(function: function, window: window, mentions: scope.mentions))
    }

    private func rankFunction(_ call: FunctionCall, _ scope: ExpressionContext) throws(SQLError) -> RankFunction {
        let name = call.name.last.name
        let span = call.name.span.source
        guard let function = RankFunction(rawValue: name) else {
            throw unsupported("window function \(name)", hint: "Join with a subquery that numbers the rows.", at: span)
        }
        if call.filter != nil {
            throw unsupported("FILTER of \(name)", hint: "Leave rows out in a subquery in FROM.", at: span)
        }
        guard !call.arguments.isEmpty else { return function }
        var types: [SQLType] = []
        for argument in call.arguments { types.append(try bind(argument.value, scope).type) }
        throw FunctionRegistry.undefined(name, types).located(at: span)
    }

    /// Whether every row's frame is its whole partition.
    private static func isWhole(_ window: WindowSpecification) -> Bool {
        guard let frame = window.frame else { return window.orderBy.isEmpty }
        return frame.start == .unboundedPreceding && frame.end == .unboundedFollowing && frame.exclusion == .noOthers
    }

    /// - Throws: 42P20 or 42803 where no window function may stand.
    private func refuseMisplacedWindow(_ scope: ExpressionContext, at span: SourceSpan) throws(SQLError) {
        if scope.isInsideAggregate {
            throw SQLError(.groupingError, "aggregate function calls cannot contain window function calls", at: span)
        }
        if scope.isInsideWindowCall { throw SQLError(.windowingError, "window function calls cannot be nested", at: span) }
        if scope.isInsideWindow { throw SQLError(.windowingError, "window functions are not allowed in window definitions", at: span) }
        guard scope.clause.allowsWindows else {
            let isCondition = scope.clause == .filter || scope.clause == .having
            throw SQLError(
                .windowingError, "window functions are not allowed in \(scope.clause.rawValue)",
                hint: isCondition ? "Compute it in a subquery in FROM, and compare it outside." : nil, at: span)
        }
    }

    private func bindWindow(_ window: WindowSpecification, _ scope: ExpressionContext) throws(SQLError) -> PendingWindowCall.Window {
        if let frame = window.frame { try check(frame) }
        scope.isInsideWindow = true
        defer { scope.isInsideWindow = false }
        var partition: [BoundExpression] = []
        for expression in window.partitionBy {
            let bound = try settled(try bind(expression, scope))
            if !partition.contains(bound) { partition.append(bound) }
        }
        var order: [PendingWindowCall.Window.Key] = []
        for item in window.orderBy {
            let bound = try settled(try bind(item.expression, scope))
            let key = sortKey(0, item)
            guard !order.contains(where: { $0.expression == bound }) else { continue }
            order.append(.init(expression: bound, descending: key.descending, nullsFirst: key.nullsFirst))
        }
        return PendingWindowCall.Window(partition: partition, order: order)
    }

    // MARK: Named windows

    /// Takes up the definitions of a WINDOW clause; one that nothing uses must be right too.
    func bindWindowClause(_ windows: [NamedWindow], _ scope: ExpressionContext) throws(SQLError) {
        for window in windows {
            let name = window.name.name
            guard scope.namedWindows[name] == nil else {
                throw SQLError(.windowingError, "window \"\(name)\" is already defined", at: window.name.span.source)
            }
            let specification = try extended(window.specification, scope)
            _ = try bindWindow(specification, scope)
            scope.namedWindows[name] = specification
        }
    }

    private func namedWindow(_ name: Identifier, _ scope: ExpressionContext) throws(SQLError) -> WindowSpecification {
        guard let window = scope.namedWindows[name.name] else {
            throw SQLError(.undefinedObject, "window \"\(name.name)\" does not exist", at: name.span.source)
        }
        return window
    }

    /// A definition with what it takes from the window that it extends.
    private func extended(_ window: WindowSpecification, _ scope: ExpressionContext) throws(SQLError) -> WindowSpecification {
        guard let name = window.base else { return window }
        let base = try namedWindow(name, scope)
        func refuse(_ what: String, hint: String? = nil) -> SQLError {
            SQLError(
                .windowingError, "\(what) window \"\(name.name)\"\(hint == nil ? "" : " because it has a frame clause")", hint: hint,
                at: name.span.source)
        }
        if !window.partitionBy.isEmpty { throw refuse("cannot override PARTITION BY clause of") }
        if !window.orderBy.isEmpty, !base.orderBy.isEmpty { throw refuse("cannot override ORDER BY clause of") }
        if base.frame != nil { throw refuse("cannot copy", hint: "Omit the parentheses in this OVER clause.") }
        var merged = window
        merged.base = nil
        merged.partitionBy = base.partitionBy
        if window.orderBy.isEmpty { merged.orderBy = base.orderBy }
        return merged
    }

    /// - Throws: 42P20 for bounds in an order that no frame has.
    private func check(_ frame: WindowFrame) throws(SQLError) {
        func refuse(_ message: String) -> SQLError { SQLError(.windowingError, message, at: frame.span.source) }
        switch (frame.start, frame.end) {
        case (.unboundedFollowing, _): throw refuse("frame start cannot be UNBOUNDED FOLLOWING")
        case (_, .unboundedPreceding): throw refuse("frame end cannot be UNBOUNDED PRECEDING")
        case (.currentRow, .preceding): throw refuse("frame starting from current row cannot have preceding rows")
        case (.following, .preceding): throw refuse("frame starting from following row cannot have preceding rows")
        case (.following, .currentRow): throw refuse("frame starting from following row cannot end with current row")
        default: break
        }
    }
}
