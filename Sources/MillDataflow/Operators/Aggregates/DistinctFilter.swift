import MillBase
import MillColumnar
import MillState

/// DISTINCT inside aggregates: turns the weights of rows into the weights of distinct values per group, for one or several calls
/// over the same values that differ in which rows they count.
///
/// For a call a value counts once while the weights of its rows in the group sum to more than 0. State: (group's row number, value)
/// -> a sum of weights for each call. Where groups go with values still in them, as those do that a watermark closes, the values of
/// each group are listed in memory, so that they go with it.
final class DistinctFilter {
    let table: StateTable
    private let callCount: Int
    private var emptied: [RowNumber] = []
    /// By group the rows of its values, some of them gone or another's by now; nil when no group goes before its values.
    private var rowsOfGroups: [RowNumber: [RowNumber]]?
    private var listedCount = 0
    private let rows = UnsafeMutablePointer<RowNumber>.allocate(capacity: Limits.batchRowsMax)
    private let hashes = UnsafeMutablePointer<UInt64>.allocate(capacity: Limits.batchRowsMax)
    private var inserted = Selection(capacity: Limits.batchRowsMax)

    init(_ type: SQLType, callCount: Int, closes: Bool) {
        self.callCount = callCount
        if closes { rowsOfGroups = [:] }
        table = StateTable(columns: [.int64, type], payloadBytes: 8 * callCount)
    }

    deinit {
        rows.deallocate()
        hashes.deallocate()
    }

    var byteCount: Int { table.byteCount }

    func checkInvariants() -> [String] { table.checkInvariants() }

    /// Replaces, in the weights of each call, each row's weight by the change in its value's presence: +1, -1 or 0. NULL values have
    /// weight 0.
    func apply(_ groups: GroupRows, values: Column, weights: [Weights]) {
        let groupColumn = Column(.int64, uninitialized: groups.count)
        let numbers = groupColumn.values(Int64.self)
        for index in 0..<groups.count { numbers[index] = Int64(groups.numbers[index]) }
        let columns = [groupColumn, values]
        RowHash.hash(columns, count: groups.count, into: hashes)
        table.findOrInsert(columns, hashes: hashes, count: groups.count, rows: rows, inserted: &inserted)
        if rowsOfGroups != nil {
            for position in 0..<inserted.count {
                let index = Int(inserted.rows[position])
                rowsOfGroups?[groups.numbers[index], default: []].append(rows[index])
            }
            listedCount += inserted.count
        }
        for (call, weights) in weights.enumerated() { count(values, weights.values, call, groups.count) }
        noteEmptied(groups.count)
    }

    private func count(_ values: Column, _ weights: UnsafeMutablePointer<Int64>, _ call: Int, _ rowCount: Int) {
        for index in 0..<rowCount {
            let sum = table.writablePayload(rows[index]).assumingMemoryBound(to: Int64.self) + call
            let before = sum.pointee
            let after = before &+ (values.isNull(index) ? 0 : weights[index])
            sum.pointee = after
            weights[index] = (after > 0 ? 1 : 0) &- (before > 0 ? 1 : 0)
        }
    }

    private func noteEmptied(_ rowCount: Int) {
        for index in 0..<rowCount where isEmpty(rows[index]) { emptied.append(rows[index]) }
    }

    private func isEmpty(_ row: RowNumber) -> Bool {
        let sums = table.payload(row).assumingMemoryBound(to: Int64.self)
        for call in 0..<callCount where sums[call] != 0 { return false }
        return true
    }

    /// After `apply`: the values as they were when they were counted. 1.00 may take back what 1.0 has brought.
    func countedValues(_ groups: GroupRows) -> Column { table.gather(1, rows: rows, count: groups.count) }

    /// At the end of an epoch, before the numbers of dead groups are free for others.
    func removeEmptied() {
        for number in emptied where table.storedHash(number) != 0 && isEmpty(number) { table.remove(number) }
        emptied.removeAll(keepingCapacity: true)
        if rowsOfGroups != nil, listedCount > 2 * table.count + 65_536 { list() }
        table.compactHeapIfWorthwhile()
    }

    /// The group goes, with all its values.
    func release(_ group: RowNumber) {
        guard let listed = rowsOfGroups?.removeValue(forKey: group) else { return }
        listedCount -= listed.count
        for row in listed where table.storedHash(row) != 0 && self.group(of: row) == group { table.remove(row) }
    }

    /// Takes over the values of groups that have come from where `other` serves them.
    func adopt(_ groups: MovedRows, from other: DistinctFilter) {
        other.table.forEachBatch { all in
            let theirs = all.filter { groups[other.group(of: $0)] != nil }
            guard !theirs.isEmpty else { return }
            let groupColumn = Column(.int64, uninitialized: theirs.count)
            let numbers = groupColumn.values(Int64.self)
            for (index, row) in theirs.enumerated() { numbers[index] = groups[other.group(of: row)].map { Int64($0) } ?? 0 }
            let columns = [groupColumn, other.table.gather(1, rows: theirs, count: theirs.count)]
            RowHash.hash(columns, count: theirs.count, into: hashes)
            table.findOrInsert(columns, hashes: hashes, count: theirs.count, rows: rows, inserted: &inserted)
            for (index, row) in theirs.enumerated() {
                table.writablePayload(rows[index]).copyMemory(from: other.table.payload(row), byteCount: 8 * callCount)
            }
        }
    }

    /// Lists the values of all groups anew.
    func list() {
        guard rowsOfGroups != nil else { return }
        var lists: [RowNumber: [RowNumber]] = [:]
        table.forEachRow { row in lists[group(of: row), default: []].append(row) }
        rowsOfGroups = lists
        listedCount = table.count
    }

    private func group(of row: RowNumber) -> RowNumber {
        RowNumber(truncatingIfNeeded: table.value(row, 0).unsafelyUnwrapped.load(as: Int64.self))
    }
}
