import MillBase
import MillColumnar
import MillExpr
import MillPlan
import MillSQL

/// Subqueries inside expressions: bound here, joined to the plan by `SubqueryJoin`.
extension Binder {
    func bindScalarSubquery(_ query: Query, _ context: ExpressionContext, at span: SourceSpan) throws(SQLError) -> BoundExpression {
        let plan = try bindInner(query, context, at: span)
        guard plan.schema.count == 1 else { throw SQLError(.syntaxError, "subquery must return only one column", at: span) }
        return context.add(PendingSubquery(kind: .scalar, query: plan, type: plan.schema[0].type, span: span))
    }

    func bindExists(_ query: Query, _ context: ExpressionContext, at span: SourceSpan) throws(SQLError) -> BoundExpression {
        context.add(try pendingExists(query, context, at: span))
    }

    func bindInQuery(
        _ operand: Expression, _ query: Query, negated: Bool, _ context: ExpressionContext, at span: SourceSpan
    ) throws(SQLError) -> BoundExpression {
        let value = context.add(try pendingIn(operand, query, context, at: span))
        return negated ? .not(value) : value
    }

    func pendingExists(_ query: Query, _ context: ExpressionContext, at span: SourceSpan) throws(SQLError) -> PendingSubquery {
        PendingSubquery(kind: .exists, query: try bindInner(query, context, at: span), type: .boolean, span: span)
    }

    /// Operands and the subquery's columns are cast to the types that `=` compares them in.
    func pendingIn(_ operand: Expression, _ query: Query, _ context: ExpressionContext, at span: SourceSpan) throws(SQLError) -> PendingSubquery {
        let operands = if case .row(let values) = operand.kind { values } else { [operand] }
        let plan = try bindInner(query, context, at: span)
        let schema = plan.schema
        guard schema.count == operands.count else {
            throw SQLError(.syntaxError, "subquery has too \(schema.count > operands.count ? "many" : "few") columns", at: span)
        }
        var values: [BoundExpression] = []
        var columns: [BoundExpression] = []
        for (index, operand) in operands.enumerated() {
            let value = try duplicating(2, at: operand.span.source) { () throws(SQLError) in try bind(operand, context) }
            let equality = try bindOperator(
                OperatorName("=", operand.span), value, .column(index, schema[index].type), spans: [operand.span.source, span], at: span)
            guard case .call(_, let sides, _, _) = equality, sides.count == 2 else { throw unsupported("IN over these types", at: span) }
            values.append(sides[0])
            columns.append(sides[1])
        }
        let isPlain = columns.enumerated().allSatisfy { $1 == .column($0, schema[$0].type) }
        let typed = isPlain ? plan : .project(LogicalProject(input: plan, expressions: columns, names: schema.map(\.name)))
        return PendingSubquery(kind: .isIn(values), query: typed, type: .boolean, span: span)
    }

    func bindInner(_ query: Query, _ context: ExpressionContext, at span: SourceSpan) throws(SQLError) -> LogicalPlan {
        guard context.clause.allowsSubqueries, !context.isInsideAggregate else {
            let place = context.isInsideAggregate ? "an aggregate's argument" : context.clause.rawValue
            throw unsupported("a subquery in \(place)", hint: "Compute it in a subquery of FROM.", at: span)
        }
        enclosingScopes.append(context.scope)
        defer { enclosingScopes.removeLast() }
        return try relation(try bindQuery(query, outer: context.scope))
    }
}
