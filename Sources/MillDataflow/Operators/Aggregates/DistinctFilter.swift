import MillBase
import MillColumnar
import MillState

/// DISTINCT inside an aggregate: turns the weights of rows into the weights of distinct values per group.
///
/// A value counts once while the weights of its rows in the group sum to more than 0. State: (group's row number, value) ->
/// sum of weights.
final class DistinctFilter {
    private let table: StateTable
    private var emptied: [RowNumber] = []
    private let rows = UnsafeMutablePointer<RowNumber>.allocate(capacity: Limits.batchRowsMax)
    private let hashes = UnsafeMutablePointer<UInt64>.allocate(capacity: Limits.batchRowsMax)
    private var inserted = Selection(capacity: Limits.batchRowsMax)

    init(_ type: SQLType) { table = StateTable(columns: [.int64, type], payloadBytes: 8) }

    deinit {
        rows.deallocate()
        hashes.deallocate()
    }

    var byteCount: Int { table.byteCount }

    func checkInvariants() -> [String] { table.checkInvariants() }

    /// Replaces each row's weight by the change in its value's presence: +1, -1 or 0. NULL values keep weight 0.
    /// - Returns: the values as they were when they were counted: 1.00 may take back what 1.0 has brought.
    func apply(_ groups: GroupRows, values: Column, weights: UnsafeMutablePointer<Int64>) -> Column {
        let groupColumn = Column(.int64, uninitialized: groups.count)
        for index in 0..<groups.count { groupColumn.values(Int64.self)[index] = Int64(groups.numbers[index]) }
        let columns = [groupColumn, values]
        RowHash.hash(columns, count: groups.count, into: hashes)
        table.findOrInsert(columns, hashes: hashes, count: groups.count, rows: rows, inserted: &inserted)
        for index in 0..<groups.count {
            let sum = table.payload(rows[index]).assumingMemoryBound(to: Int64.self)
            let before = sum.pointee
            let after = before &+ (values.isNull(index) ? 0 : weights[index])
            sum.pointee = after
            weights[index] = (after > 0 ? 1 : 0) - (before > 0 ? 1 : 0)
            if after == 0 { emptied.append(rows[index]) }
        }
        return table.gather(1, rows: rows, count: groups.count)
    }

    /// At the end of an epoch, before the numbers of dead groups are free for others.
    func removeEmptied() {
        for number in emptied where table.storedHash(number) != 0 && table.payload(number).load(as: Int64.self) == 0 { table.remove(number) }
        emptied.removeAll(keepingCapacity: true)
        table.compactHeapIfWorthwhile()
    }
}
