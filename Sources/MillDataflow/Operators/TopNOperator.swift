import MillBase
package import MillColumnar
package import MillPlan
import MillState

/// The first rows of an order, kept under retraction: what ORDER BY ... LIMIT ... OFFSET of a view means at every epoch.
///
/// All rows are kept in an ordered multiset by (order key, whole row), so ties are cut the same way every time. At the end of an
/// epoch the rows at offset ..< offset + limit are read in order and compared with what was given out before: O(offset + limit)
/// per epoch with changes. A row's weight counts as that many places.
package final class TopNOperator: Operator {
    private let types: [SQLType]
    private let encoder: KeyEncoder
    private let keyColumns: [Int]
    private let limit: Int?
    private let offset: Int
    private let rows: StateTable
    private let ordered: OrderedTable
    private var emptied: [RowNumber] = []
    /// What is out now: row number -> weight given out. Numbers are stable while a row lives.
    private var shown: [RowNumber: Int64] = [:]
    private var isChanged = false
    private var output: [DeltaBatch] = []

    private let numbers = UnsafeMutablePointer<RowNumber>.allocate(capacity: Limits.batchRowsMax)
    private let hashes = UnsafeMutablePointer<UInt64>.allocate(capacity: Limits.batchRowsMax)
    private var inserted = Selection(capacity: Limits.batchRowsMax)

    package init(columns: [SQLType], order: [SortKey], limit: Int?, offset: Int) {
        types = columns
        // The order first, then every other column, so that the order is total over distinct rows.
        let rest = columns.indices.filter { index in !order.contains { $0.column == index } }
        keyColumns = order.map(\.column) + rest
        encoder = KeyEncoder(
            order: order.map { KeyOrder(columns[$0.column], descending: $0.descending, nullsFirst: $0.nullsFirst) } + rest.map { KeyOrder(columns[$0]) })
        self.limit = limit
        self.offset = offset
        rows = StateTable(columns: columns, payloadBytes: 8, equality: .representation)
        ordered = OrderedTable(payloadBytes: 8)
    }

    deinit {
        numbers.deallocate()
        hashes.deallocate()
    }

    package func push(_ batch: DeltaBatch, input: Int, errors: OperatorErrors) {
        isChanged = true
        RowHash.hash(batch.columns, count: batch.count, into: hashes)
        rows.findOrInsert(batch.columns, hashes: hashes, count: batch.count, rows: numbers, inserted: &inserted)
        let keyed = keyColumns.map { batch.columns[$0] }
        var key = KeyBuffer()
        for position in 0..<inserted.count {
            let row = Int(inserted.rows[position])
            setKey(&key, keyed, row)
            let place = ordered.findOrInsert(key.bytes)
            place.payload.storeBytes(of: UInt64(numbers[row]), as: UInt64.self)
        }
        for row in 0..<batch.count {
            let weight = rows.payload(numbers[row]).assumingMemoryBound(to: Int64.self)
            weight.pointee &+= batch.weight(row)
            if weight.pointee == 0 { emptied.append(numbers[row]) }
        }
    }

    /// The order key, then every other column, then what tells representations of one value apart: no two rows share a place.
    private func setKey(_ key: inout KeyBuffer, _ keyed: [Column], _ row: Int) {
        key.removeAll()
        encoder.encode(keyed, row: row, into: &key)
        for column in keyed { column.appendRepresentation(row: row, to: &key) }
    }

    package func closeEpoch(errors: OperatorErrors) {
        guard isChanged else { return }
        isChanged = false
        let wanted = window()
        var changes: [(RowNumber, Int64)] = []
        for (number, weight) in shown where wanted[number] != weight { changes.append((number, (wanted[number] ?? 0) - weight)) }
        for (number, weight) in wanted where shown[number] == nil { changes.append((number, weight)) }
        changes.sort { $0.0 < $1.0 }
        // Made before dead rows are freed: a retraction still needs its values.
        for start in stride(from: 0, to: changes.count, by: Limits.batchRowsMax) {
            let part = changes[start..<min(start + Limits.batchRowsMax, changes.count)]
            let columns = rows.gather(rows: part.map(\.0), count: part.count)
            output.append(DeltaBatch(columns: columns, count: part.count, weights: Weights(part.map(\.1))))
        }
        shown = wanted
        removeEmptied()
        output.reverse()
    }

    /// The rows at offset ..< offset + limit with how often each is there.
    private func window() -> [RowNumber: Int64] {
        var wanted: [RowNumber: Int64] = [:]
        var skip = Int64(offset)
        var left = limit.map { Int64($0) } ?? Int64.max
        guard left > 0 else { return wanted }
        ordered.scan { _, payload in
            let number = RowNumber(truncatingIfNeeded: payload.load(as: UInt64.self))
            var weight = max(rows.payload(number).load(as: Int64.self), 0)
            let skipped = min(skip, weight)
            skip -= skipped
            weight = min(weight - skipped, left)
            left -= weight
            if weight > 0 { wanted[number] = weight }
            return left > 0
        }
        return wanted
    }

    private func removeEmptied() {
        var key = KeyBuffer()
        for number in emptied where rows.storedHash(number) != 0 && rows.payload(number).load(as: Int64.self) == 0 {
            var one = number
            let values = rows.gather(rows: &one, count: 1)
            setKey(&key, keyColumns.map { values[$0] }, 0)
            _ = ordered.remove(key.bytes)
            rows.remove(number)
        }
        emptied.removeAll(keepingCapacity: true)
        rows.compactHeapIfWorthwhile()
    }

    package func next(errors: OperatorErrors) -> DeltaBatch? { output.popLast() }

    package func checkInvariants() -> [String] {
        var places = 0
        ordered.scan { _, _ in
            places += 1
            return true
        }
        ordered.checkInvariants()
        return rows.checkInvariants() + (places == rows.count ? [] : ["\(places) places for \(rows.count) rows"])
    }

    package var stateByteCount: Int { rows.byteCount + ordered.byteCount }
}
