import MillBase
package import MillColumnar
package import MillPlan
package import MillState
package import MillStore

/// The first rows of each partition over append-only input: a cut by row number that keeps few, such as the last version of a key or
/// the ten highest bids of an auction. With any numbers, or without.
///
/// What `RankOperator` does for such a cut, without an ordered table: rows never go, so of a partition only its first rows can ever
/// matter, and a row that stands behind the last of them is dropped after one comparison. The order is the same: rows are compared by
/// the first bytes of their order keys, and by all of their columns where these agree. A row of weight w is w rows.
///
/// State: partitions, each with the last of its first rows; a list of those before it, in order; and the columns of all of these rows in
/// a table without an index. Between epochs a partition's rows have the numbers of their places.
///
/// Algorithm: a row that comes finds its place among its partition's; if there are enough, the last one makes way. Rows that make way
/// while their batch is taken in are never stored. At the end of an epoch each touched partition gives out how its rows' numbers differ
/// from those given out before: at most two changes for each row that the cut keeps.
///
/// With a watermark of a partition column (`KeyClosing`) a row of a closed partition is late, and partitions go with their rows, which stay given
/// out, at the end of the epoch that closes them.
package final class FirstRowsOperator: Operator {
    /// The most rows that a partition may keep.
    package static let rowsMax = 128

    private let partition: [Int]
    private let keys: RankKeys
    private let functions: [RankFunction]
    /// Whether rows of equal order keys have a number in common.
    private let numbersPeers: Bool
    /// How many rows a partition keeps, and how many of them are not shown.
    private let last: Int
    private let offset: Int

    private let partitions: StateTable
    private let lists: FirstRowsLists
    private let rows: StateTable
    private var closing: KeyClosing?
    private var touched: [RowNumber] = []
    /// The touched partition to go on with while output is given; nil while rows come in.
    private var position: Int?

    private let numbers = UnsafeMutablePointer<RowNumber>.allocate(capacity: Limits.batchRowsMax)
    private let hashes = UnsafeMutablePointer<UInt64>.allocate(capacity: Limits.batchRowsMax)
    private var inserted = Selection(capacity: Limits.batchRowsMax)
    /// Rows that still are in the batch only: where there, and their numbers.
    private var arriving = Arriving()
    private var key = KeyBuffer()
    private var pair = KeyPair()

    private struct Arriving: ~Copyable {
        let places = UnsafeMutablePointer<UInt32>.allocate(capacity: Limits.batchRowsMax)
        let rows = UnsafeMutablePointer<RowNumber>.allocate(capacity: Limits.batchRowsMax)
        var count = 0

        deinit {
            places.deallocate()
            rows.deallocate()
        }
    }

    /// What a partition's row carries.
    private struct Partition {
        var last: FirstRow
        /// 0 before its first row.
        var count: UInt8
        var isTouched: Bool
        /// Of the rows before the last one; meaningless when there are none.
        var list: RowNumber
        /// The latest of the rows that made way and were given out, one higher; 0 for none.
        var gone: UInt32
    }

    /// What a row carries.
    private struct Link {
        /// Of an arriving row its place among them, of one that made way the one that did before; one higher, 0 for none.
        var next: UInt32
        /// What was given out for a row that made way.
        var shown: FirstRowNumbers
    }

    /// Whether a cut over append-only input is one for this operator.
    package static func takes(_ cut: Cut) -> Bool { cut.function == .rowNumber && (1...Int64(rowsMax)).contains(cut.last) }

    /// - Parameter cut: one that it takes.
    package init(columns: [SQLType], window: Window, functions: [RankFunction], cut: Cut, closing: KeyClosing? = nil) {
        self.closing = closing
        precondition(Self.takes(cut), "a cut keeps few rows")
        partition = window.partition
        keys = RankKeys(columns: columns, window: window)
        self.functions = functions
        numbersPeers = functions.contains { $0 != .rowNumber }
        last = Int(cut.last)
        offset = cut.offset
        partitions = StateTable(columns: partition.map { columns[$0] }, payloadBytes: MemoryLayout<Partition>.size)
        lists = FirstRowsLists(countMax: last - 1)
        rows = StateTable(columns: columns, payloadBytes: MemoryLayout<Link>.size, indexed: false)
    }

    deinit {
        numbers.deallocate()
        hashes.deallocate()
    }

    /// For reading, or for changing once it is marked as touched.
    @inline(__always) private func partition(_ number: RowNumber) -> UnsafeMutablePointer<Partition> {
        partitions.preparedPayload(number).assumingMemoryBound(to: Partition.self)
    }

    /// For reading, or for changing once the row is prepared.
    @inline(__always) private func link(_ row: RowNumber) -> UnsafeMutablePointer<Link> {
        rows.preparedPayload(row).assumingMemoryBound(to: Link.self)
    }

    // MARK: Input

    package func push(_ batch: DeltaBatch, input: Int, errors: OperatorErrors) {
        batch.forEachPart { part in
            guard let onTime = closing == nil ? part : closing?.onTime(part) else { return }
            add(onTime)
        }
    }

    package func openEpoch(_ watermarks: [WatermarkStep]) { closing?.step = watermarks[0] }

    private func add(_ batch: DeltaBatch) {
        let partitionColumns = partition.map { batch.columns[$0] }
        RowHash.hash(partitionColumns, count: batch.count, into: hashes)
        partitions.findOrInsert(partitionColumns, hashes: hashes, count: batch.count, rows: numbers, inserted: &inserted)
        closing?.note(inserted, of: partitionColumns, numbers)
        let lanes = keys.lanes(batch.columns)
        for index in 0..<batch.count {
            let partition = partition(numbers[index])
            let incoming = Incoming(columns: batch.columns, index: index, head: lanes.head(index, using: &key))
            var copies = batch.weight(index)
            while copies > 0, partition.pointee.count < last || isBefore(incoming, partition.pointee.last) {
                if arriving.count == Limits.batchRowsMax { store(batch) }
                if !partition.pointee.isTouched {
                    partitions.prepareToWrite(numbers[index])
                    partition.pointee.isTouched = true
                    touched.append(numbers[index])
                }
                insert(incoming, into: partition)
                copies -= 1
            }
        }
        store(batch)
    }

    /// A row of the batch that is taken in.
    private struct Incoming {
        let columns: [Column]
        let index: Int
        let head: (UInt64, UInt64)
    }

    /// Whether an incoming row stands before another one, which equal ones do not.
    @inline(__always) private func isBefore(_ incoming: borrowing Incoming, _ other: FirstRow) -> Bool {
        incoming.head != other.head ? incoming.head < other.head : isBefore(incoming, other.row)
    }

    /// The same for rows of equal heads.
    @inline(never) private func isBefore(_ incoming: borrowing Incoming, _ other: RowNumber) -> Bool {
        let (columns, index) = (incoming.columns, incoming.index)
        let place = Int(link(other).pointee.next) - 1
        if place >= 0 {
            let otherIndex = Int(arriving.places[place])
            return keys.compare({ columns[$0].value(index) }, { columns[$0].value(otherIndex) }, using: &pair) < 0
        }
        return keys.compare({ columns[$0].value(index) }, { rows.value(other, $0) }, using: &pair) < 0
    }

    /// Puts a row of the batch in its place. If the partition has enough rows, its last one stands behind that, and makes way.
    private func insert(_ incoming: borrowing Incoming, into partition: UnsafeMutablePointer<Partition>) {
        let others = Int(partition.pointee.count) - 1
        if others + 1 == last {
            let row = FirstRow(head: incoming.head, row: takeOver(from: partition, incoming.index))
            guard others > 0 else { return partition.pointee.last = row }
            let list = lists.rows(partition.pointee.list, count: others)
            if isBefore(incoming, list[others - 1]) {
                lists.prepareToWrite(partition.pointee.list, count: others)
                partition.pointee.last = list[others - 1]
                FirstRowsLists.insert(row, into: list, at: place(of: incoming, in: list, count: others - 1), count: others)
            } else {
                partition.pointee.last = row
            }
            return
        }
        let row = FirstRow(head: incoming.head, row: arrive(incoming.index))
        partition.pointee.count += 1
        guard others >= 0 else { return partition.pointee.last = row }
        partition.pointee.list = lists.grown(partition.pointee.list, count: others)
        let list = lists.rows(partition.pointee.list, count: others + 1)
        if isBefore(incoming, partition.pointee.last) {
            FirstRowsLists.insert(row, into: list, at: place(of: incoming, in: list, count: others), count: others + 1)
        } else {
            list[others] = partition.pointee.last
            partition.pointee.last = row
        }
    }

    /// Behind how many of the rows of a list an incoming one stands.
    private func place(of incoming: borrowing Incoming, in list: UnsafeMutablePointer<FirstRow>, count: Int) -> Int {
        var low = 0
        var high = count
        while low < high {
            let middle = (low + high) / 2
            if isBefore(incoming, list[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }

    /// A number for a row of the batch.
    private func arrive(_ index: Int) -> RowNumber {
        let row = rows.append(hash: 1)
        arriving.places[arriving.count] = UInt32(truncatingIfNeeded: index)
        arriving.rows[arriving.count] = row
        arriving.count += 1
        link(row).pointee.next = UInt32(truncatingIfNeeded: arriving.count)
        return row
    }

    /// A number for a row of the batch in place of a partition's last row, which is the same number where that has only arrived.
    private func takeOver(from partition: UnsafeMutablePointer<Partition>, _ index: Int) -> RowNumber {
        let leaving = partition.pointee.last
        let link = link(leaving.row)
        if link.pointee.next != 0 {
            arriving.places[Int(link.pointee.next) - 1] = UInt32(truncatingIfNeeded: index)
            return leaving.row
        }
        if leaving.shown.row == 0 {
            rows.remove(leaving.row)
        } else {
            rows.prepareToWrite(leaving.row)
            link.pointee = Link(next: partition.pointee.gone, shown: leaving.shown)
            partition.pointee.gone = leaving.row + 1
        }
        return arrive(index)
    }

    /// Copies the columns of arriving rows out of their batch.
    private func store(_ batch: DeltaBatch) {
        guard arriving.count > 0 else { return }
        rows.write(batch.gather(arriving.places, count: arriving.count).columns, count: arriving.count, rows: arriving.rows)
        for index in 0..<arriving.count { link(arriving.rows[index]).pointee.next = 0 }
        arriving.count = 0
    }

    // MARK: Epoch's end

    package func closeEpoch(errors: OperatorErrors) { position = 0 }

    package func next(errors: OperatorErrors) -> DeltaBatch? {
        guard var next = position else { return nil }
        var changes = Changes()
        while next < touched.count, changes.rows.count <= Limits.batchRowsMax - 2 * last {
            give(partition(touched[next]), &changes)
            next += 1
        }
        position = next
        defer { for row in changes.gone { rows.remove(row) } }
        guard !changes.rows.isEmpty else {
            finishEpoch()
            return nil
        }
        return batch(changes)
    }

    /// Rows to give out, each with its numbers and a weight.
    private struct Changes {
        var rows: [RowNumber] = []
        var numbers: [FirstRowNumbers] = []
        var weights: [Int64] = []
        /// Rows to forget when the others are given out.
        var gone: [RowNumber] = []

        init() {
            rows.reserveCapacity(Limits.batchRowsMax)
            numbers.reserveCapacity(Limits.batchRowsMax)
            weights.reserveCapacity(Limits.batchRowsMax)
        }

        mutating func append(_ row: RowNumber, _ number: FirstRowNumbers, _ weight: Int64) {
            rows.append(row)
            numbers.append(number)
            weights.append(weight)
        }
    }

    private func give(_ partition: UnsafeMutablePointer<Partition>, _ changes: inout Changes) {
        var gone = partition.pointee.gone
        while gone != 0 {
            let row = gone - 1
            let link = link(row).pointee
            if isVisible(link.shown) { changes.append(row, link.shown, -1) }
            changes.gone.append(row)
            gone = link.next
        }
        let others = Int(partition.pointee.count) - 1
        var before: FirstRow?
        if others > 0 {
            lists.prepareToWrite(partition.pointee.list, count: others)
            let list = lists.rows(partition.pointee.list, count: others)
            for index in 0..<others {
                give(&list[index], behind: before, &changes)
                before = list[index]
            }
        }
        give(&partition.pointee.last, behind: before, &changes)
        partition.pointee.gone = 0
        partition.pointee.isTouched = false
    }

    /// Gives a row its numbers, with those that the row before it has by now.
    @inline(__always) private func give(_ row: inout FirstRow, behind before: FirstRow?, _ changes: inout Changes) {
        var isPeer = false
        if numbersPeers, let before { isPeer = arePeers(before, row) }
        let numbers = (before?.shown ?? FirstRowNumbers()).following(isPeer: isPeer)
        let (wasVisible, isVisible) = (isVisible(row.shown), isVisible(numbers))
        if !wasVisible || !isVisible || functions.contains(where: { row.shown[$0] != numbers[$0] }) {
            if wasVisible { changes.append(row.row, row.shown, -1) }
            if isVisible { changes.append(row.row, numbers, 1) }
        }
        row.shown = numbers
    }

    private func isVisible(_ numbers: FirstRowNumbers) -> Bool { numbers.row > offset }

    /// Whether two stored rows of a partition have equal order keys.
    private func arePeers(_ left: FirstRow, _ right: FirstRow) -> Bool {
        left.head == right.head && keys.compareOrder({ rows.value(left.row, $0) }, { rows.value(right.row, $0) }, using: &pair) == 0
    }

    private func batch(_ changes: Changes) -> DeltaBatch {
        let count = changes.rows.count
        let columns = functions.map { function -> Column in
            let column = Column(.int64, uninitialized: count)
            let values = column.values(Int64.self)
            for index in 0..<count { values[index] = Int64(changes.numbers[index][function]) }
            return column
        }
        let isInsertOnly = changes.weights.allSatisfy { $0 == 1 }
        return DeltaBatch(
            columns: rows.gather(rows: changes.rows, count: count) + columns, count: count,
            weights: isInsertOnly ? nil : Weights(changes.weights))
    }

    private func finishEpoch() {
        touched.removeAll(keepingCapacity: true)
        position = nil
        closing?.close(partitions)
        closing?.removeClosed { remove(partition: $0) }
        closing?.rebuildIfWorthwhile(partitions)
        partitions.compactHeapIfWorthwhile()
        rows.compactHeapIfWorthwhile()
    }

    private func remove(partition number: RowNumber) {
        let partition = partition(number).pointee
        let others = Int(partition.count) - 1
        if others > 0 {
            let list = lists.rows(partition.list, count: others)
            for index in 0..<others { rows.remove(list[index].row) }
            lists.remove(partition.list, count: others)
        }
        if others >= 0 { rows.remove(partition.last.row) }
        partitions.remove(number)
    }

    package func finishRestore() { closing?.rebuild(partitions) }

    package func checkInvariants() -> [String] {
        var broken = partitions.checkInvariants() + lists.checkInvariants() + rows.checkInvariants()
        var places = 0
        partitions.forEachRow { number in
            let partition = partition(number).pointee
            let others = Int(partition.count) - 1
            if others < 0 || others >= last || partition.isTouched || partition.gone != 0 {
                broken.append("partition \(number) is in the middle of an epoch")
            }
            places += others + 1
            let before = others > 0 ? (0..<others).map { lists.rows(partition.list, count: others)[$0] } : []
            for (index, row) in (before + [partition.last]).enumerated() where row.shown.row != index + 1 || link(row.row).pointee.next != 0
            {
                broken.append("row \(row.row) of partition \(number) was given out as \(row.shown.row), not as \(index + 1)")
            }
            for (left, right) in zip(before, before.dropFirst() + [partition.last]) where right.head < left.head {
                broken.append("row \(right.row) of partition \(number) stands before row \(left.row)")
            }
        }
        return places == rows.count ? broken : broken + ["\(places) places for \(rows.count) rows"]
    }

    /// The rows come in once more: they get the places and numbers that they had.
    package func adopt(from other: FirstRowsOperator, _ share: StateShare) throws(StateCorruption) {
        try share.forEachBatch(of: other.rows, by: share.inputs[0]) { (rows) throws(StateCorruption) in
            add(DeltaBatch(columns: other.rows.gather(rows: rows, count: rows.count), count: rows.count))
        }
        let errors = OperatorErrors()
        closeEpoch(errors: errors)
        while next(errors: errors) != nil {}
    }

    /// Rows held.
    package var rowCount: Int { rows.count }

    package var tables: [any DurableTable] { [partitions, rows] + lists.durableTables }

    package var stateByteCount: Int { partitions.byteCount + lists.byteCount + rows.byteCount + (closing?.byteCount ?? 0) }
}
