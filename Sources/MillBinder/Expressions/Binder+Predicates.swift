import MillBase
import MillColumnar
import MillExpr
import MillSQL

/// IS, BETWEEN, LIKE, IN lists and quantified comparisons.
extension Binder {
    func bindPredicate(_ expression: Expression, _ scope: ExpressionContext) throws(SQLError) -> BoundExpression {
        let span = expression.span.source
        switch expression.kind {
        case .isTest(let operand, let test, let negated): return try bindTest(operand, test, negated: negated, scope)
        case .isDistinct(let left, let right, let negated):
            let values = try bindComparable(left, right, scope, at: span)
            let same = BoundExpression.isNotDistinct(values.0, values.1)
            return negated ? same : .not(same)
        case .between(let node): return try bindBetween(node, scope, at: span)
        case .like(let node): return try bindLike(node, scope, at: span)
        case .inList(let operand, let elements, let negated):
            if case .row(let lefts) = operand.kind { return try bindRowInList(lefts, elements, negated: negated, scope, at: span) }
            return try bindInList(operand, elements, negated: negated, scope, at: span)
        case .quantified(let node): return try bindQuantified(node, scope, at: span)
        default: throw SQLError(.internalError, "not a predicate", at: span)
        }
    }

    private func bindTest(_ operand: Expression, _ test: IsTest, negated: Bool, _ scope: ExpressionContext) throws(SQLError) -> BoundExpression {
        let value = try bind(operand, scope)
        func signed(_ result: BoundExpression) -> BoundExpression { negated ? .not(result) : result }
        switch test {
        case .null: return signed(.isNull(try settled(value)))
        case .unknown: return signed(.isNull(try requireBoolean(value, in: "IS UNKNOWN", at: operand.span.source)))
        case .true: return signed(.isNotDistinct(try requireBoolean(value, in: "IS TRUE", at: operand.span.source), .literal(.boolean(true), .boolean)))
        case .false: return signed(.isNotDistinct(try requireBoolean(value, in: "IS FALSE", at: operand.span.source), .literal(.boolean(false), .boolean)))
        }
    }

    /// Two operands in the types that `=` would compare them in.
    private func bindComparable(
        _ left: Expression, _ right: Expression, _ scope: ExpressionContext, at span: SourceSpan
    ) throws(SQLError) -> (BoundExpression, BoundExpression) {
        let a = try bind(left, scope)
        let b = try bind(right, scope)
        if a.type == .unknown, b.type == .unknown { return (try settled(a), try settled(b)) }
        let equality = try bindOperator(OperatorName("="), a, b, spans: [left.span.source, right.span.source], at: span)
        guard case .call(_, let operands, _, _) = equality, operands.count == 2 else { return (a, b) }
        return (operands[0], operands[1])
    }

    private func bindBetween(_ node: Between, _ scope: ExpressionContext, at span: SourceSpan) throws(SQLError) -> BoundExpression {
        let times = node.symmetric ? 2 : 1
        let value = try duplicating(2 * times, at: span) { () throws(SQLError) in try bind(node.operand, scope) }
        let low = try duplicating(times, at: span) { () throws(SQLError) in try bind(node.low, scope) }
        let high = try duplicating(times, at: span) { () throws(SQLError) in try bind(node.high, scope) }
        let operandSpan = node.operand.span.source
        func compare(_ symbol: String, _ bound: BoundExpression, _ boundSpan: SourceSpan) throws(SQLError) -> BoundExpression {
            try bindOperator(OperatorName(symbol), value, bound, spans: [operandSpan, boundSpan], at: span)
        }
        func inside(_ a: (BoundExpression, SourceSpan), _ b: (BoundExpression, SourceSpan)) throws(SQLError) -> BoundExpression {
            node.negated
                ? .or([try compare("<", a.0, a.1), try compare(">", b.0, b.1)])
                : .and([try compare(">=", a.0, a.1), try compare("<=", b.0, b.1)])
        }
        let bounds = ((low, node.low.span.source), (high, node.high.span.source))
        let straight = try inside(bounds.0, bounds.1)
        guard node.symmetric else { return straight }
        let swapped = try inside(bounds.1, bounds.0)
        return node.negated ? .and([straight, swapped]) : .or([straight, swapped])
    }

    private func bindLike(_ node: Like, _ scope: ExpressionContext, at span: SourceSpan) throws(SQLError) -> BoundExpression {
        let name: String
        switch node.kind {
        case .like: name = node.negated ? "not_like" : "like"
        case .ilike: name = node.negated ? "not_ilike" : "ilike"
        case .similarTo: throw unsupported("SIMILAR TO", hint: "Use LIKE or a regular expression with the operator ~.", at: span)
        }
        return try bindFunction(name, [node.operand, node.pattern] + (node.escape.map { [$0] } ?? []), scope, at: span)
    }

    // MARK: IN

    /// A list of literals becomes one look-up; anything else comparisons joined by OR.
    private func bindInList(
        _ operand: Expression, _ elements: [Expression], negated: Bool, _ scope: ExpressionContext, at span: SourceSpan
    ) throws(SQLError) -> BoundExpression {
        // Elements that are no literals are compared one by one.
        let isLiteral = elements.allSatisfy { if case .literal = $0.kind { true } else { false } }
        let value = try duplicating(isLiteral ? 1 : elements.count, at: span) { () throws(SQLError) in try bind(operand, scope) }
        var bound: [BoundExpression] = []
        for element in elements { bound.append(try bind(element, scope)) }
        return try isIn(value, bound, negated: negated, spans: [operand.span.source] + elements.map(\.span.source), at: span)
    }

    private func isIn(
        _ value: BoundExpression, _ elements: [BoundExpression], negated: Bool, spans: [SourceSpan], at span: SourceSpan
    ) throws(SQLError) -> BoundExpression {
        let (values, _) = try unify([value] + elements, spans: spans, of: "IN")
        var scalars: [Scalar] = []
        var isLiteral = true
        for element in values.dropFirst() {
            guard case .literal(let scalar, _) = element else {
                isLiteral = false
                break
            }
            if !scalars.contains(scalar) { scalars.append(scalar) }
        }
        if isLiteral { return .inList(values[0], scalars, negated: negated) }
        var comparisons: [BoundExpression] = []
        for (index, element) in values.dropFirst().enumerated() {
            let elementSpan = spans[index + 1]
            comparisons.append(
                try bindOperator(OperatorName(negated ? "<>" : "="), values[0], element, spans: [spans[0], elementSpan], at: span))
        }
        if comparisons.count == 1 { return comparisons[0] }
        return negated ? .and(comparisons) : .or(comparisons)
    }

    /// `(a, b) IN ((1, 2), (3, 4))`.
    private func bindRowInList(
        _ lefts: [Expression], _ elements: [Expression], negated: Bool, _ scope: ExpressionContext, at span: SourceSpan
    ) throws(SQLError) -> BoundExpression {
        var rows: [BoundExpression] = []
        for element in elements {
            guard case .row(let rights) = element.kind, rights.count == lefts.count else {
                throw SQLError(.syntaxError, "unequal number of entries in row expressions", at: element.span.source)
            }
            var parts: [BoundExpression] = []
            for (left, right) in zip(lefts, rights) {
                parts.append(
                    try bindOperator(
                        OperatorName("="),
                        try duplicating(elements.count, at: span) { () throws(SQLError) in try bind(left, scope) },
                        try bind(right, scope), spans: [left.span.source, right.span.source], at: span))
            }
            rows.append(parts.count == 1 ? parts[0] : .and(parts))
        }
        let result = rows.count == 1 ? rows[0] : BoundExpression.or(rows)
        return negated ? .not(result) : result
    }

    // MARK: ANY and ALL

    /// `= ANY` and `<> ALL` over an array literal, an ARRAY[...], a parameter or a subquery are IN and NOT IN; other operators over a
    /// written array are comparisons joined by OR or AND.
    private func bindQuantified(_ node: Quantified, _ scope: ExpressionContext, at span: SourceSpan) throws(SQLError) -> BoundExpression {
        let symbol = node.operation.symbol
        switch node.operand {
        case .query(let query):
            if symbol == "=", !node.isAll { return try bindInQuery(node.left, query, negated: false, scope, at: span) }
            if symbol == "<>", node.isAll { return try bindInQuery(node.left, query, negated: true, scope, at: span) }
            throw unsupported("\(symbol) \(node.isAll ? "ALL" : "ANY") over a subquery", hint: "Compare with the subquery's min or max.", at: span)
        case .array(let array):
            if let contained = try bindContained(node, in: array, scope, at: span) { return contained }
            let left = try bind(node.left, scope)
            guard let elements = try arrayElements(array, scope) else {
                _ = try settled(left)
                return .literal(.null, .boolean)
            }
            guard !elements.isEmpty else { return .literal(.boolean(node.isAll), .boolean) }
            let spans = [node.left.span.source] + elements.map { _ in array.span.source }
            if symbol == "=", !node.isAll { return try isIn(left, elements, negated: false, spans: spans, at: span) }
            if symbol == "<>", node.isAll { return try isIn(left, elements, negated: true, spans: spans, at: span) }
            var comparisons: [BoundExpression] = []
            for element in elements {
                comparisons.append(try bindOperator(node.operation, left, element, spans: [node.left.span.source, array.span.source], at: span))
            }
            if comparisons.count == 1 { return comparisons[0] }
            return node.isAll ? .and(comparisons) : .or(comparisons)
        }
    }

    /// The elements of an array that the statement writes out or is given: `ARRAY[a, b]`, `'{a,b}'::text[]`, `'{a,b}'`, `$1`.
    /// - Returns: nil for a NULL array, and for a parameter whose value is not known yet.
    private func arrayElements(_ array: Expression, _ scope: ExpressionContext) throws(SQLError) -> [BoundExpression]? {
        let span = array.span.source
        switch array.kind {
        case .array(let elements):
            var bound: [BoundExpression] = []
            for element in elements { bound.append(try bind(element, scope)) }
            return bound
        case .literal(.string(let text)): return try arrayLiteral(text, at: span)
        case .literal(.null): return nil
        case .parameter(let number):
            switch try bindParameter(number, at: span) {
            case .literal(.string(let text), _): return try arrayLiteral(text, at: span)
            // There is no array type: an array comes as its text.
            case .parameter(let number, .unknown): parameters[number - 1] = .varchar
            case .literal(.null, _), .parameter(_, .varchar): break
            default: throw SQLError(.wrongObjectType, "op ANY/ALL (array) requires array on right side", at: span)
            }
            return nil
        case .cast(let operand, let name):
            guard case .array(let elementName) = name.kind else { break }
            let elementType = try type(of: elementName)
            guard let elements = try arrayElements(operand, scope) else { return nil }
            var bound: [BoundExpression] = []
            for element in elements { bound.append(try coerce(element, to: elementType, .explicit, at: span)) }
            return bound
        default: break
        }
        throw unsupported("ANY or ALL over an array that is not written out", at: span)
    }

    private func arrayLiteral(_ text: String, at span: SourceSpan) throws(SQLError) -> [BoundExpression] {
        do { return try ArrayText.elements(text).map { .literal($0.map(Scalar.string) ?? .null, .unknown) } } catch {
            throw error.located(at: span)
        }
    }
}
