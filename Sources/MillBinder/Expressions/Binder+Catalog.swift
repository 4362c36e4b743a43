import MillBase
import MillCatalog
import MillColumnar
import MillExpr
import MillPlan
import MillSQL

/// What queries of the system relations need beyond other queries: catalog functions, `::regclass`, and arrays, which the
/// system relations hold in their text form.
extension Binder {
    // MARK: Functions

    /// The call of a catalog function; nil when `name` is none.
    func bindCatalogCall(
        _ name: String, _ call: FunctionCall, _ scope: ExpressionContext, at span: SourceSpan
    ) throws(SQLError) -> BoundExpression? {
        guard let functions = context.catalogFunctions, functions.contains(name) else { return nil }
        try requireStatement("function \(name)", at: call.name.span.source)
        var arguments: [BoundExpression] = []
        for argument in call.arguments { arguments.append(try bind(argument.value, scope)) }
        let answer: BoundExpression
        do { answer = try functions.call(name, arguments) } catch { throw error.located(at: span) }
        // Parameters take the types that the answer has them in; text where it does not depend on them.
        for case .parameter(let number, .unknown) in arguments where parameters[number - 1] == nil {
            parameters[number - 1] = answer.typeOfParameter(number) ?? .varchar
        }
        return answer
    }

    private func requireStatement(_ what: String, at span: SourceSpan) throws(SQLError) {
        guard case .statement = context.purpose else {
            throw unsupported("\(what) in a view", hint: "Use it in the SELECT that reads the view.", at: span)
        }
        isOfTheMoment = true
    }

    // MARK: Registered names

    /// Casts to and from `regclass` and its kin; nil for every other cast.
    ///
    /// A text becomes the object's number. A number becomes the object's name, unless a cast to a number stands around it:
    /// there is no type that is a number and prints as a name.
    func bindCatalogCast(
        _ operand: Expression, to target: TypeName, _ scope: ExpressionContext, at span: SourceSpan
    ) throws(SQLError) -> BoundExpression? {
        guard let functions = context.catalogFunctions else { return nil }
        let result: BoundExpression
        if let kind = Self.registeredName(target) {
            try requireStatement("type \(kind.rawValue)", at: span)
            let value = try bind(operand, scope)
            do {
                if value.type.isInteger { return try functions.name(of: try coerce(value, to: .int32, .explicit, at: span), kind) }
                return try functions.identifier(of: try coerce(value, to: .varchar, .explicit, at: span), kind)
            } catch { throw error.located(at: operand.span.source) }
        }
        guard case .cast(let inner, let middle) = operand.kind, let kind = Self.registeredName(middle) else { return nil }
        try requireStatement("type \(kind.rawValue)", at: span)
        let type = try type(of: target)
        let value = try bind(inner, scope)
        do {
            if value.type.isInteger {
                guard type == .varchar else { return try coerce(value, to: type, .explicit, at: span) }
                return try functions.name(of: try coerce(value, to: .int32, .explicit, at: span), kind)
            }
            let identifier = try functions.identifier(of: try coerce(value, to: .varchar, .explicit, at: span), kind)
            result = type == .varchar ? try functions.name(of: identifier, kind) : identifier
        } catch { throw error.located(at: inner.span.source) }
        return try coerce(result, to: type, .explicit, at: span)
    }

    private static func registeredName(_ type: TypeName) -> RegisteredName? {
        guard case .named(let name, let modifiers) = type.kind, modifiers.isEmpty else { return nil }
        guard name.parts.count == 1 || name.parts[name.parts.count - 2].name == "pg_catalog" else { return nil }
        return RegisteredName(rawValue: name.last.name)
    }

    // MARK: Arrays as text

    /// `x = ANY (array)` and `x <> ALL (array)` where the array is a text that the query computes; nil for other operators.
    func bindContained(
        _ node: Quantified, in array: Expression, _ scope: ExpressionContext, at span: SourceSpan
    ) throws(SQLError) -> BoundExpression? {
        switch array.kind {
        case .column, .call, .subquery, .arrayQuery: break
        default: return nil
        }
        guard (node.operation.symbol == "=" && !node.isAll) || (node.operation.symbol == "<>" && node.isAll) else { return nil }
        let elements = try bind(array, scope)
        guard elements.type == .varchar else {
            throw SQLError(.wrongObjectType, "op ANY/ALL (array) requires array on right side", at: array.span.source)
        }
        let value = try coerce(try bind(node.left, scope), to: .varchar, .explicit, at: node.left.span.source)
        let contains = try catalogKernel("array_contains", [elements, value])
        return node.isAll ? .not(contains) : contains
    }

    /// `ARRAY(SELECT ...)` over system relations, as the array's text. Of at most one row: with more it is error 21000,
    /// because no aggregate makes arrays.
    func bindArrayQuery(_ query: Query, _ scope: ExpressionContext, at span: SourceSpan) throws(SQLError) -> BoundExpression {
        let value = try bindScalarSubquery(query, scope, at: span)
        guard case .column(let index, _) = value, var pending = scope.subqueries.last, pending.query.readsSystemRelationsOnly else {
            throw unsupported("an array as a value", at: span)
        }
        let element = try coerce(.column(0, pending.type), to: .varchar, .explicit, at: span)
        pending.query = .project(
            LogicalProject(input: pending.query, expressions: [try catalogKernel("array_of", [element])], names: ["array"]))
        pending.type = .varchar
        scope.subqueries[scope.subqueries.count - 1] = pending
        return .coalesce([.column(index, .varchar), .literal(.string("{}"), .varchar)], .varchar)
    }

    /// `unnest(column)` and `pg_options_to_table(column)` in FROM, of a column of the system relations that holds an array: a join
    /// with the relation that lists the elements of all these arrays.
    func bindArrayTable(_ function: TableFunction, outer: Scope?) throws(SQLError) -> FromItem {
        let call = function.call
        let name = call.name.last.name
        guard call.arguments.count == 1, case .column(let column) = call.arguments[0].value.kind, Self.arrayColumns.contains(column.last.name),
            let elements = catalog.object(schema: "pg_catalog", name: Self.arrayElements)
        else { throw unsupported("\(name) of this argument", at: call.name.span.source) }
        let context = ExpressionContext(scope: Scope(), outer: outer, clause: .tableFunction)
        let array = try bind(call.arguments[0].value, context)
        let scan = LogicalPlan.scan(
            LogicalScan(
                relation: RelationReference(id: elements.id, name: elements.name, kind: .system), columns: Array(elements.columns.indices),
                schema: elements.schema))
        let span = function.span.source
        let same = try bindOperator(OperatorName("="), .column(0, .varchar), array, spans: [span, span], at: span)
        let filtered = LogicalPlan.filter(LogicalFilter(input: scan, predicate: same))
        var names = [function.alias?.name.name ?? "unnest"]
        var columns = [BoundExpression.column(2, .varchar)]
        if name == "pg_options_to_table" {
            names = ["option_name", "option_value"]
            columns = try [1, 2].map { (part: Int64) throws(SQLError) in
                try catalogKernel("split_part", [.column(2, .varchar), .literal(.string("="), .varchar), .literal(.int(part), .int32)])
            }
        }
        if function.withOrdinality {
            names.append("ordinality")
            columns.append(.column(1, .int64))
        }
        let plan = LogicalPlan.project(LogicalProject(input: filtered, expressions: columns, names: names))
        return try aliased(plan, names: names, function.alias?.name, function.alias?.columns ?? [], defaultName: .init(name: name, schema: nil))
    }

    /// The relation `(array, position, element)` of the elements of all arrays in system relations.
    package static let arrayElements = "pg_array_elements"
    /// The columns of system relations whose arrays `arrayElements` lists.
    package static let arrayColumns: Set<String> = [
        "conkey", "confkey", "indkey", "indclass", "indcollation", "indoption", "reloptions", "attoptions", "polroles", "stxkeys",
        "fdwoptions", "srvoptions", "ftoptions", "umoptions", "attfdwoptions", "evttags",
    ]

    private func catalogKernel(_ name: String, _ arguments: [BoundExpression]) throws(SQLError) -> BoundExpression {
        try FunctionRegistry.resolve(name: name, arguments: arguments.map(\.type)).call(arguments)
    }
}

extension BoundExpression {
    fileprivate func typeOfParameter(_ number: Int) -> SQLType? {
        if case .parameter(number, let type) = self { return type == .unknown ? nil : type }
        return children.lazy.compactMap { $0.typeOfParameter(number) }.first
    }
}

extension LogicalPlan {
    /// Whether every relation that it reads is one that the engine makes when asked.
    var readsSystemRelationsOnly: Bool {
        if case .scan(let node) = self { return node.relation.kind == .system }
        return inputs.allSatisfy(\.readsSystemRelationsOnly)
    }
}
