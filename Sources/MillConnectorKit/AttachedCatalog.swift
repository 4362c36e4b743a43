package import MillBase
package import MillColumnar

/// A catalog of tables that lie elsewhere, for queries that name them: `catalog.namespace.table`.
///
/// Calls block; they are made off the workers. Threading: any thread.
package protocol AttachedCatalog: Sendable {
    /// Looks for a table and fixes which state of it is read.
    /// - Parameter version: nil for the newest.
    /// - Returns: the same table with its snapshot, and its columns; nil when there is no such table.
    /// - Throws: 42704 for a state that it does not have, 0A000 for what cannot be read, 08xxx and 28000 for a catalog that does not answer.
    func describe(_ table: CatalogTable, _ version: TableState?) throws(SQLError) -> (table: CatalogTable, columns: [Field])?
    /// Opens a table that was described.
    /// - Parameters:
    ///   - columns: which of its columns the batches have, in that order.
    ///   - bounds: what rows are wanted: others may come all the same.
    func scan(_ table: CatalogTable, columns: [Int], where bounds: [ScanBound]) throws(SQLError) -> any TableScan
    /// All namespaces, at any depth, with dots between their levels.
    func namespaces() throws(SQLError) -> [String]
    /// - Returns: nil when there is no such namespace.
    func tables(in namespace: [String]) throws(SQLError) -> [String]?
}

/// Which state of a table a query asks for.
package enum TableState: Hashable, Sendable {
    /// As it was at a time, in microseconds since 1970.
    case time(micros: Int64)
    case snapshot(Int64)
    /// A branch or a tag.
    case reference(String)
}

/// Reads a table once, from its start to its end. One thread.
package protocol TableScan: AnyObject {
    /// The next rows, at most `Limits.batchRowsMax`; nil after the last one.
    func next() throws(SQLError) -> DeltaBatch?
}

/// A condition on one column that every wanted row meets. Values are of the column's type.
package struct ScanBound: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        /// At least the first and at most the second; nil is no bound.
        case between(Scalar?, Scalar?)
        /// Any of these; none of them is NULL, and there may be none.
        case oneOf([Scalar])
        case isNull
        case isNotNull
    }

    package var column: Int
    package var kind: Kind

    package init(_ column: Int, _ kind: Kind) { (self.column, self.kind) = (column, kind) }
}
