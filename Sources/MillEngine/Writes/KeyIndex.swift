import MillBase
import MillCatalog
import MillColumnar
import MillState

/// Numbers distinct keys of a table's rows, from 0, in the order in which they are first seen. Keys are equal by value.
final class KeyIndex {
    private let key: [Int]
    /// Each key's number, plus one; a state table's own follow its order of insertion, which is not that of the rows where hashes collide.
    private let table: StateTable
    private var count: Int64 = 0

    init(_ table: CatalogObject) {
        key = table.rowKey
        self.table = StateTable(columns: key.map { table.columns[$0].type }, payloadBytes: 8)
    }

    /// The numbers of the keys of a batch's rows; the table's columns come first in it.
    func numbers(of batch: DeltaBatch) -> [Int] {
        var numbers: [Int] = []
        batch.forEachPart { part in
            let keys = key.map { part.columns[$0] }
            var rows = [RowNumber](repeating: 0, count: part.count)
            var inserted = Selection(capacity: part.count)
            withUnsafeTemporaryAllocation(of: UInt64.self, capacity: part.count) { hashes in
                rows.withUnsafeMutableBufferPointer { rows in
                    guard let base = hashes.baseAddress, let first = rows.baseAddress else { return }
                    RowHash.hash(keys, count: part.count, into: base)
                    table.findOrInsert(keys, hashes: base, count: part.count, rows: first, inserted: &inserted)
                }
            }
            numbers += rows.map { row in
                let number = table.preparedPayload(row).assumingMemoryBound(to: Int64.self)
                if number.pointee == 0 {
                    count += 1
                    number.pointee = count
                }
                return Int(number.pointee) - 1
            }
        }
        return numbers
    }
}

extension DeltaBatch {
    /// Distinct keys of rows in which the table's columns come first, without weights.
    static func keys(of rows: [DeltaBatch], _ table: CatalogObject) -> [DeltaBatch] {
        let keys = rows.map { batch in DeltaBatch(columns: table.rowKey.map { batch.columns[$0] }, count: batch.count) }
        // No weight is below zero, so none adds up to nothing.
        return consolidate(keys, by: .values).map { DeltaBatch(columns: $0.columns, count: $0.count) }
    }

    /// The rows taken away instead of added.
    var negated: DeltaBatch {
        let weights = Weights(count: count)
        for row in 0..<count { weights.values[row] = -weight(row) }
        return DeltaBatch(columns: columns, count: count, weights: weights)
    }

    /// Some columns of each row, each row once.
    func plain(columns range: Range<Int>) -> DeltaBatch { DeltaBatch(columns: Array(columns[range]), count: count) }
}
