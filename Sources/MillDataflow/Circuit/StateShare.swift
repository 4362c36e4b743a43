import MillBase
import MillColumnar
package import MillPlan
package import MillState

/// Which rows of a state that another number of workers made are this worker's: those for whose keys the exchange before the node sends
/// rows here.
package struct StateShare: Sendable {
    let here: WorkerIndex
    let workers: Int
    /// How each input of the node is distributed, in the input's columns.
    let inputs: [Distribution]

    /// Calls `body` with the numbers of a table's rows that are this worker's, a batch at a time.
    ///
    /// - Parameter distribution: of the rows, in the table's columns.
    /// - Throws: what `body` throws, and when the distribution is `any`: then nobody knows whose rows they are.
    func forEachBatch(
        of table: StateTable, by distribution: Distribution, _ body: ([RowNumber]) throws(StateCorruption) -> Void
    ) throws(StateCorruption) {
        switch distribution {
        case .any: throw StateCorruption("the plan does not say which worker has which rows")
        case .single: if here.number == 0 { try table.forEachBatch(body) }
        case .hash(let columns):
            var hashes = [UInt64](repeating: 0, count: Limits.batchRowsMax)
            try table.forEachBatch { (rows) throws(StateCorruption) in
                RowHash.hash(columns.map { table.gather($0, rows: rows, count: rows.count) }, count: rows.count, into: &hashes)
                let mine = rows.indices.filter { ExchangeOperator.owner(of: hashes[$0], workers: workers) == here.number }
                if !mine.isEmpty { try body(mine.map { rows[$0] }) }
            }
        }
    }
}
