package import MillBase
import MillColumnar

/// What the binder puts around the value of a correlated scalar subquery.
enum SubqueryKernels {
    static func make(_ name: String) -> Kernel? {
        guard name == "is_one_row" else { return nil }
        return { columns, count, frame in
            Loops.tryUnary(columns, count, .boolean, frame) { (rows: Int64) throws(SQLError) -> UInt8? in
                guard rows <= 1 else { throw .moreThanOneRow }
                return 1
            }
        }
    }
}

extension FunctionRegistry {
    /// `is_one_row` is true of one row, NULL of NULL, and error 21000 of more: where a row wants the subquery's value, so that groups that no
    /// row asks for may have many.
    static let subquerySignatures = """
        is_one_row(int8) -> bool
        """
}

extension SQLError {
    package static let moreThanOneRow = SQLError(.cardinalityViolation, "more than one row returned by a subquery used as an expression")
}
