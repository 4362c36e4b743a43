package import MillBase
package import MillExpr

/// Functions and casts whose answer lies in the catalog: `pg_get_viewdef(oid)`, `'orders'::regclass`.
///
/// A kernel sees columns and nothing else. So these calls are settled while the statement is bound: an implementation
/// makes of each an expression of ordinary operators in which what the catalog says now is written out, a literal where
/// the arguments are constant, a CASE over the known identifiers where they are columns. Plans then need no catalog, and
/// the statement sees one state of it. What lives on, a view, must not keep today's answer: there such calls are refused.
package protocol CatalogFunctions: Sendable {
    /// Whether a call of this name is one of them, whatever its arguments.
    func contains(_ name: String) -> Bool

    /// What the call means now. Bare literals among the arguments may be of type unknown.
    /// - Throws: 42883 for arguments that it does not take, and the function's own errors for constant ones.
    func call(_ name: String, _ arguments: [BoundExpression]) throws(SQLError) -> BoundExpression

    /// The number of the object that a text names.
    /// - Throws: 42P01, 42704, 42883 or 3F000 for a constant name of nothing.
    func identifier(of name: BoundExpression, _ kind: RegisteredName) throws(SQLError) -> BoundExpression

    /// The name, as text, of the object that a number stands for.
    func name(of identifier: BoundExpression, _ kind: RegisteredName) throws(SQLError) -> BoundExpression
}

/// PostgreSQL's types for the numbers of named objects.
package enum RegisteredName: String, Sendable {
    case regclass, regtype, regnamespace, regproc, regrole
}
