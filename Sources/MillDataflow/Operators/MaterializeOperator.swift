package import MillBase
package import MillColumnar
package import MillState

/// The root of a view or table: keeps its rows as a multiset, row -> weight, and gives the deltas on to whoever reads them.
///
/// Rows are hashed by the materialize key (a unique key when one is known), so they lie with their key's owner and a look-up
/// by key is one probe; equality is over all columns, by representation, so a retraction and an insertion of one key may come in any order.
/// Between epochs every stored weight is positive.
package final class MaterializeOperator: Operator {
    package let table: StateTable
    package let key: [Int]
    private var output: DeltaBatch?
    /// Rows whose weight was 0 at some moment of this epoch.
    private var emptied: [RowNumber] = []
    private let hashes = UnsafeMutablePointer<UInt64>.allocate(capacity: Limits.batchRowsMax)

    /// Where in a row's payload its weight is.
    package static let weightOffset = 0

    package init(columns: [SQLType], key: [Int]) {
        table = StateTable(columns: columns, payloadBytes: 8, equality: .representation)
        self.key = key
    }

    deinit {
        hashes.deallocate()
    }

    package func push(_ batch: DeltaBatch, input: Int, errors: OperatorErrors) {
        batch.forEachPart { add($0) }
        output = batch
    }

    private func add(_ batch: DeltaBatch) {
        RowHash.hash(key.map { batch.columns[$0] }, count: batch.count, into: hashes)
        let weights = batch.weights.map { UnsafePointer($0.values) }
        table.add(batch.columns, key: key, hashes: hashes, count: batch.count, weights: weights, emptied: &emptied)
    }

    package func next(errors: OperatorErrors) -> DeltaBatch? {
        defer { output = nil }
        return output
    }

    package func closeEpoch(errors: OperatorErrors) {
        for number in emptied {
            // A row may be listed twice, or have come back; a freed row's hash is 0.
            guard table.storedHash(number) != 0, table.payload(number).load(as: Int64.self) == 0 else { continue }
            table.remove(number)
        }
        emptied.removeAll(keepingCapacity: true)
        table.compactHeapIfWorthwhile()
    }

    package var tables: [any DurableTable] { [table] }

    package func adopt(from other: MaterializeOperator, _ share: StateShare) throws(StateCorruption) {
        try share.forEachBatch(of: other.table, by: share.inputs[0]) { (rows) throws(StateCorruption) in
            _ = try table.adopt(rows, of: other.table)
        }
    }

    package var stateByteCount: Int { table.byteCount }

    package func checkInvariants() -> [String] {
        var broken = table.checkInvariants()
        table.forEachRow { number in
            let weight = table.payload(number).load(as: Int64.self)
            if weight <= 0 { broken.append("row \(number) has the weight \(weight)") }
        }
        return broken
    }
}
