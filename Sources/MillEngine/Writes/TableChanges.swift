import MillBase
import MillCatalog
import MillColumnar
import MillDataflow
import MillState

/// What a transaction does to one table: the rows it takes away and those it adds, consolidated, and found by the table's key.
///
/// Threading: changed by the statements of one session, one at a time; nobody changes it once the transaction is ordered among the others.
final class TableChanges: @unchecked Sendable {
    /// The columns that tell the table's rows apart.
    let key: [Int]
    private let rows: StateTable
    private var emptied: [RowNumber] = []

    init(_ table: CatalogObject) {
        key = table.rowKey
        rows = StateTable(columns: table.columns.map(\.type), payloadBytes: 8, equality: .representation)
    }

    func add(_ batches: [DeltaBatch]) {
        for batch in batches {
            batch.forEachPart { part in
                withUnsafeTemporaryAllocation(of: UInt64.self, capacity: part.count) { hashes in
                    guard let base = hashes.baseAddress else { return }
                    RowHash.hash(key.map { part.columns[$0] }, count: part.count, into: base)
                    rows.add(
                        part.columns, key: key, hashes: base, count: part.count, weights: part.weights.map { UnsafePointer($0.values) }, emptied: &emptied)
                }
            }
        }
        for number in emptied {
            // A row may be listed twice, or have come back; a freed row's hash is 0.
            guard rows.storedHash(number) != 0, weight(number) == 0 else { continue }
            rows.remove(number)
        }
        emptied.removeAll()
    }

    private func weight(_ number: RowNumber) -> Int64 {
        rows.payload(number).load(fromByteOffset: MaterializeOperator.weightOffset, as: Int64.self)
    }

    var isEmpty: Bool { rows.count == 0 }

    /// All rows with their weights.
    var batches: [DeltaBatch] {
        rows.snapshot().batches(columns: Array(rows.layout.columns.indices), weightOffset: MaterializeOperator.weightOffset)
    }

    /// Those whose key is among those of some batches of key columns.
    func rows(underKeys keys: [DeltaBatch]) -> [DeltaBatch] { keys.flatMap { rows.rows(underKeys: $0, in: key) } }
}
