import MillBase
import MillColumnar
import MillExpr
import MillSQL

/// Scalar expressions: the switch over what the parser made, and names.
extension Binder {
    func bind(_ expression: Expression, _ scope: ExpressionContext) throws(SQLError) -> BoundExpression {
        let span = expression.span.source
        switch expression.kind {
        case .literal(let literal): return try bind(literal, at: span)
        case .typedLiteral(let type, let text): return try bindTypedLiteral(type, text, at: span)
        case .interval(let text, let fields): return try bindInterval(text, fields, at: span)
        case .parameter(let number): return try bindParameter(number, at: span)
        case .column(let name): return try bindColumn(name, scope)
        case .unary(let symbol, let operand): return try bindUnary(symbol, operand, scope, at: span)
        case .binary(let left, let symbol, let right): return try bindBinary(left, symbol, right, scope, at: span)
        case .and(let operands): return .and(try bindLogical(operands, "AND", scope))
        case .or(let operands): return .or(try bindLogical(operands, "OR", scope))
        case .not(let operand): return .not(try bindLogical([operand], "NOT", scope)[0])
        case .isTest, .isDistinct, .between, .like, .inList, .quantified: return try bindPredicate(expression, scope)
        case .inQuery(let operand, let query, let negated): return try bindInQuery(operand, query, negated: negated, scope, at: span)
        case .exists(let query): return try bindExists(query, scope, at: span)
        case .subquery(let query): return try bindScalarSubquery(query, scope, at: span)
        case .caseWhen(let node): return try bindCase(node, scope)
        case .cast(let operand, let type): return try bindCast(operand, type, scope, at: span)
        case .collate(let operand, _): return try bind(operand, scope)
        case .atTimeZone(let operand, let zone):
            return try bindFunction("at_time_zone", [operand, zone], scope, at: span)
        case .call(let call): return try bindCall(call, scope, at: span)
        case .tryCast: throw unsupported("TRY_CAST", at: span)
        case .row: throw unsupported("a row as a value", at: span)
        case .arrayQuery(let query): return try bindArrayQuery(query, scope, at: span)
        case .element(let operand, let index): return try bindElement(of: operand, at: index, scope, at: span)
        case .array, .slice: throw unsupported("an array as a value", at: span)
        case .map: throw unsupported("a map as a value", at: span)
        case .field: throw unsupported("a field of a struct", at: span)
        case .defaultValue: throw SQLError(.syntaxError, "DEFAULT is not allowed in this context", at: span)
        }
    }

    // MARK: Names

    private func bindColumn(_ name: ObjectName, _ scope: ExpressionContext) throws(SQLError) -> BoundExpression {
        if let entry = try scope.scope.find(name) {
            for column in entry.expression.columnsUsed where scope.mentions[column] == nil { scope.mentions[column] = name }
            return entry.expression
        }
        if let entry = try scope.outer?.find(name) {
            if scope.isInsideAggregate {
                throw unsupported("a column of the query around as an aggregate's argument", at: name.span.source)
            }
            return entry.expression.remapped { StandIn.isOuter($0) ? $0 : StandIn.outer($0) }
        }
        // A name that only a query further out has: say so instead of denying that it exists.
        for further in enclosingScopes.dropLast() {
            if try further.find(name) != nil {
                throw unsupported(
                    "a reference across two levels of subqueries", hint: "Join the tables in the subquery between.", at: name.span.source)
            }
        }
        throw missingColumn(name, scope)
    }

    /// PostgreSQL's three ways of saying that a name means nothing here.
    private func missingColumn(_ name: ObjectName, _ scope: ExpressionContext) -> SQLError {
        let span = name.span.source
        if name.parts.count >= 2, !scope.scope.hasRelation(name), !(scope.outer?.hasRelation(name) ?? false) {
            let relation = name.parts[name.parts.count - 2].name
            return SQLError(.undefinedTable, "missing FROM-clause entry for table \"\(relation)\"", at: span)
        }
        let shown = name.parts.count >= 2 ? name.parts.map(\.name).joined(separator: ".") : "\"\(name.last.name)\""
        let hint = scope.scope.suggestion(for: name) ?? scope.outer?.suggestion(for: name)
        return SQLError(.undefinedColumn, "column \(shown) does not exist", hint: hint, at: span)
    }

    // MARK: Operators

    private func bindUnary(
        _ symbol: OperatorName, _ operand: Expression, _ scope: ExpressionContext, at span: SourceSpan
    ) throws(SQLError) -> BoundExpression {
        // A literal's own sign is part of it, so that the least bigint can be written.
        if symbol.symbol == "-", case .literal(.number(let text)) = operand.kind, !text.hasPrefix("-") { return try bind(Literal.number("-" + text), at: span) }
        let value = try bind(operand, scope)
        do {
            let resolved = try FunctionRegistry.resolveOperator(symbol.symbol, left: nil, right: value.type)
            return try call(resolved, [value], spans: [operand.span.source], at: span)
        } catch { throw error.located(at: symbol.span.source) }
    }

    private func bindBinary(
        _ left: Expression, _ symbol: OperatorName, _ right: Expression, _ scope: ExpressionContext, at span: SourceSpan
    ) throws(SQLError) -> BoundExpression {
        if case .row(let lefts) = left.kind, case .row(let rights) = right.kind {
            return try bindRowComparison(lefts, symbol, rights, scope, at: span)
        }
        return try bindOperator(symbol, try bind(left, scope), try bind(right, scope), spans: [left.span.source, right.span.source], at: span)
    }

    func bindOperator(
        _ symbol: OperatorName, _ left: BoundExpression, _ right: BoundExpression, spans: [SourceSpan], at span: SourceSpan
    ) throws(SQLError) -> BoundExpression {
        do {
            let resolved = try FunctionRegistry.resolveOperator(symbol.symbol, left: left.type, right: right.type)
            return try call(resolved, [left, right], spans: spans, at: span)
        } catch { throw error.located(at: symbol.span.source == SourceSpan(0, 0) ? span : symbol.span.source) }
    }

    /// `(a, b) = (c, d)` and `<>`; orderings of rows compare from the left.
    private func bindRowComparison(
        _ lefts: [Expression], _ symbol: OperatorName, _ rights: [Expression], _ scope: ExpressionContext, at span: SourceSpan
    ) throws(SQLError) -> BoundExpression {
        guard lefts.count == rights.count else { throw SQLError(.syntaxError, "unequal number of entries in row expressions", at: symbol.span.source) }
        guard symbol.symbol == "=" || symbol.symbol == "<>" else { throw unsupported("comparing rows by \(symbol.symbol)", at: symbol.span.source) }
        var parts: [BoundExpression] = []
        for (left, right) in zip(lefts, rights) { parts.append(try bindBinary(left, symbol, right, scope, at: span)) }
        guard parts.count > 1 else { return parts[0] }
        return symbol.symbol == "=" ? .and(parts) : .or(parts)
    }

    private func bindLogical(_ operands: [Expression], _ name: String, _ scope: ExpressionContext) throws(SQLError) -> [BoundExpression] {
        var bound: [BoundExpression] = []
        for operand in operands { bound.append(try requireBoolean(try bind(operand, scope), in: name, at: operand.span.source)) }
        return bound
    }

    private func bindCast(
        _ operand: Expression, _ name: TypeName, _ scope: ExpressionContext, at span: SourceSpan
    ) throws(SQLError) -> BoundExpression {
        if let value = try bindCatalogCast(operand, to: name, scope, at: span) { return value }
        let target = try type(of: name)
        let value = try coerce(try bind(operand, scope), to: target, .explicit, at: operand.span.source)
        guard target == .varchar, let length = try Self.length(of: name) else { return value }
        return try FunctionRegistry.resolve(name: "left", arguments: [.varchar, .int32]).call([value, .literal(.int(Int64(length)), .int32)])
    }

    /// `(regexp_match(text, pattern))[n]`: arrays are no values yet, but this one's elements are.
    private func bindElement(
        of operand: Expression, at index: Expression, _ scope: ExpressionContext, at span: SourceSpan
    ) throws(SQLError) -> BoundExpression {
        guard case .call(let call) = operand.kind, call.name.last.name == "regexp_match" else { throw unsupported("an array as a value", at: span) }
        return try bindFunction("regexp_match_group", call.arguments.map(\.value) + [index], scope, at: span, nameSpan: call.name.span.source)
    }

    // MARK: Branches

    private func bindCase(_ node: Case, _ scope: ExpressionContext) throws(SQLError) -> BoundExpression {
        let operand: BoundExpression? =
            if let operand = node.operand {
                try duplicating(node.branches.count, at: operand.span.source) { () throws(SQLError) in try bind(operand, scope) }
            } else { nil }
        var conditions: [BoundExpression] = []
        var results: [BoundExpression] = []
        var spans: [SourceSpan] = []
        for branch in node.branches {
            let condition = try bind(branch.condition, scope)
            let span = branch.condition.span.source
            if let operand {
                conditions.append(try bindOperator(OperatorName("="), operand, condition, spans: [span, span], at: span))
            } else {
                conditions.append(try requireBoolean(condition, in: "CASE/WHEN", at: span))
            }
            results.append(try bind(branch.result, scope))
            spans.append(branch.result.span.source)
        }
        if let otherwise = node.otherwise {
            results.append(try bind(otherwise, scope))
            spans.append(otherwise.span.source)
        }
        let (values, type) = try unify(results, spans: spans, of: "CASE")
        let branches = conditions.indices.map { BoundExpression.CaseBranch(conditions[$0], values[$0]) }
        return .caseWhen(branches, otherwise: node.otherwise == nil ? nil : values[values.count - 1], type)
    }
}
