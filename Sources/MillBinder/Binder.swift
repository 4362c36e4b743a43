package import MillBase
package import MillCatalog
package import MillColumnar
import MillExpr
import MillPlan
import MillSQL

/// Gives every name and type of a statement its meaning: syntax tree and catalog in, `BoundQuery` out.
///
/// One binder serves one statement: it collects the types of the statement's parameters and the objects it reads. Views
/// are expanded, common tables inlined (the stream planner shares equal parts again), subqueries in expressions become
/// joins, implicit casts become explicit.
///
/// Invariants: a bound plan has no type `unknown`, no column out of range, and every error carries a SQLSTATE and, where
/// the statement's text is to blame, a span.
///
/// Depth: every pass recurses as deep as the syntax tree, which the parser bounds at `Parser.heightMax`.
package final class Binder {
    let catalog: any CatalogReader
    let context: BinderContext
    /// Types of the parameters as far as they are known.
    var parameters: [SQLType?]
    /// The WITH tables in sight, innermost last.
    var commonTables: [[String: CommonRelation]] = []
    /// Relations that the statement names and the catalog does not know: files, tables of other catalogs.
    var foreignRelationCount: UInt32 = 0
    /// The names of the queries around the subquery being bound, outermost first.
    var enclosingScopes: [Scope] = []
    /// Relations that the plan reads so far, inlined ones counted every time.
    var relationCount = 0
    /// Something stands for the statement's moment, its session, or an answer of the catalog's functions, or hangs on which catalogs are attached.
    var isOfTheMoment = false
    /// How often the expression being bound will stand in the result: `x BETWEEN a AND b` compares x twice.
    var copies = 1
    /// Objects that the statement names, in the order of their first mention. A view's own inputs are not among them.
    package internal(set) var dependencies: [ObjectID] = []

    /// Whether what was bound is good for every statement of the same text, whoever sends it and when, while the catalog is what it was.
    package var isLasting: Bool { !isOfTheMoment && foreignRelationCount == 0 && parameters.isEmpty }

    package init(catalog: any CatalogReader, context: BinderContext) {
        self.catalog = catalog
        self.context = context
        parameters = context.parameterTypes
    }

    /// The types of `$1`, `$2`, ... after binding.
    /// - Throws: 42P18 for one whose context says nothing.
    package func parameterTypes() throws(SQLError) -> [SQLType] {
        var types: [SQLType] = []
        for (index, type) in parameters.enumerated() {
            guard let type, type != .unknown else {
                throw SQLError(.indeterminateDatatype, "could not determine data type of parameter $\(index + 1)")
            }
            types.append(type)
        }
        return types
    }

    func depend(on object: CatalogObject) {
        if !dependencies.contains(object.id) { dependencies.append(object.id) }
    }

    /// Relations in one plan at most: WITH tables and views that name each other twice double with every step.
    private static let relationsMax = 2000
    /// Copies of one expression at most: nested BETWEENs double with every level.
    private static let copiesMax = 4096

    /// Counts what a mention of a relation adds to the plan.
    /// - Throws: 54001 when the plan would be too large.
    func count(relations: Int, at span: SourceSpan?) throws(SQLError) {
        relationCount += relations
        guard relationCount <= Binder.relationsMax else {
            throw SQLError(
                .statementTooComplex, "the query reads more than \(Binder.relationsMax) relations",
                hint: "Make a materialized view of a part that is used often.", at: span)
        }
    }

    /// Binds an operand that will stand in the result `times` times.
    /// - Throws: 54001 when nesting multiplies it too far.
    func duplicating<Result>(
        _ times: Int, at span: SourceSpan, _ bind: () throws(SQLError) -> Result
    ) throws(SQLError) -> Result {
        let before = copies
        defer { copies = before }
        copies *= max(times, 1)
        guard copies <= Binder.copiesMax else {
            throw SQLError(.statementTooComplex, "the expression is nested too deep", hint: "Compute its inner part in a subquery.", at: span)
        }
        return try bind()
    }

    /// An error about a construct that is known and not there.
    func unsupported(_ what: String, hint: String? = nil, at span: SourceSpan?) -> SQLError {
        SQLError(.featureNotSupported, "\(what) is not supported", hint: hint, at: span)
    }

    /// Fills in the parameter types that were found after an expression was bound.
    func settlingParameters(_ plan: LogicalPlan) -> LogicalPlan {
        guard !parameters.isEmpty else { return plan }
        return plan.rewriting { node in
            node.mappingExpressions { expression in
                expression.rewriting { part in
                    guard case .parameter(let number, .unknown) = part, let type = self.parameters[number - 1] else { return part }
                    return .parameter(number, type)
                }
            }
        }
    }
}

/// A WITH table: bound once, inlined wherever it is named.
struct CommonRelation {
    var plan: LogicalPlan
    var names: [String]
    /// Relations that the plan reads.
    var relationCount: Int
}
