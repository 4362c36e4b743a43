import MillBase
package import MillColumnar
package import MillPlan
package import MillState

/// SESSION under retraction: each row once, with the bounds of the session that it is in at this epoch.
///
/// Keeps all rows with a time, as a multiset, and their order by (partition, time, row number). A row without a time has NULL bounds
/// whatever the others are: it is passed on and not kept. A row's payload:
/// ```
/// offset  size  meaning
/// 0       4     1: changed in this epoch
/// 4       4     row number of its partition
/// 8       8     weight
/// 16      8     weight that is out, 0 for none
/// 24      16    start and end that it is out with
/// ```
/// At the end of an epoch the changes are taken in the order of partition and time. A change reaches no farther than the rows around
/// it that are at most a gap from each other, rows that have just gone included: all sessions that were there, and all that are there
/// now, lie whole in such a run or whole outside. Each run is read once, from its first row on; a row whose bounds or weight are
/// not what is out gives its retraction and its insertion. So a session that grows or splits costs its rows, as its output does.
package final class SessionWindowOperator: Operator {
    private let window: SessionWindow
    private let rows: StateTable
    /// Payload: how many rows of `rows` a partition has.
    private let partitions: StateTable
    /// (partition, time, row number), without payload.
    private let ordered = OrderedTable(payloadBytes: 0)
    private var changes: [Change] = []

    /// The part of the last batch that has no times, to be passed on.
    private var timeless: DeltaBatch?
    /// Where output goes on; nil between epochs.
    private var walk: Walk?

    private let numbers = UnsafeMutablePointer<RowNumber>.allocate(capacity: Limits.batchRowsMax)
    private let partitionRows = UnsafeMutablePointer<RowNumber>.allocate(capacity: Limits.batchRowsMax)
    private let hashes = UnsafeMutablePointer<UInt64>.allocate(capacity: Limits.batchRowsMax)
    private var inserted = Selection(capacity: Limits.batchRowsMax)
    private var insertedPartitions = Selection(capacity: Limits.batchRowsMax)

    private static let partitionOffset = 4
    private static let weightOffset = 8
    private static let shownOffset = 16
    private static let startOffset = 24
    private static let endOffset = 32

    /// A place in `ordered`.
    private struct Change: Comparable {
        var partition: RowNumber
        var time: Int64
        var row: RowNumber

        static func < (a: Change, b: Change) -> Bool { (a.partition, a.time, a.row) < (b.partition, b.time, b.row) }
    }

    private struct Walk {
        /// The change to go on with, and within its run the row to go on with.
        var change = 0
        var row: Change?
        /// Bounds of the present session; rows behind its last time begin another.
        var start: Int64 = 0
        var last = Int64.min
    }

    package init(_ window: SessionWindow, input: [SQLType]) {
        self.window = window
        rows = StateTable(columns: input, payloadBytes: 40, equality: .representation)
        partitions = StateTable(columns: window.partition.map { input[$0] }, payloadBytes: 8)
    }

    deinit {
        numbers.deallocate()
        partitionRows.deallocate()
        hashes.deallocate()
    }

    // MARK: Input

    package func push(_ batch: DeltaBatch, input: Int, errors: OperatorErrors) {
        let times = EventTimes(batch.columns[window.timeColumn])
        var timed: [UInt32] = []
        var others: [UInt32] = []
        for row in 0..<batch.count {
            if times.micros(row) != nil { timed.append(UInt32(row)) } else { others.append(UInt32(row)) }
        }
        timeless = others.isEmpty ? nil : withoutBounds(batch.gather(others, count: others.count))
        let kept = others.isEmpty ? batch : batch.gather(timed, count: timed.count)
        for start in stride(from: 0, to: kept.count, by: Limits.batchRowsMax) {
            let end = min(start + Limits.batchRowsMax, kept.count)
            keep(start == 0 && end == kept.count ? kept : kept.slice(start, end))
        }
    }

    private func withoutBounds(_ batch: DeltaBatch) -> DeltaBatch {
        let missing = Column(window.boundType, uninitialized: batch.count)
        for row in 0..<batch.count { missing.setNull(row) }
        return DeltaBatch(columns: batch.columns + [missing, missing], count: batch.count, weights: batch.weights)
    }

    /// Changes the weights of rows that have times.
    private func keep(_ batch: DeltaBatch) {
        let times = EventTimes(batch.columns[window.timeColumn])
        let columns = window.partition.map { batch.columns[$0] }
        RowHash.hash(columns, count: batch.count, into: hashes)
        partitions.findOrInsert(columns, hashes: hashes, count: batch.count, rows: partitionRows, inserted: &insertedPartitions)
        RowHash.hash(batch.columns, count: batch.count, into: hashes)
        rows.findOrInsert(batch.columns, hashes: hashes, count: batch.count, rows: numbers, inserted: &inserted)
        var key = KeyBuffer()
        for position in 0..<inserted.count {
            let index = Int(inserted.rows[position])
            guard let time = times.micros(index) else { continue }
            let partition = partitionRows[index]
            rows.preparedPayload(numbers[index]).storeBytes(of: partition, toByteOffset: Self.partitionOffset, as: RowNumber.self)
            partitions.writablePayload(partition).assumingMemoryBound(to: Int64.self).pointee += 1
            Self.set(&key, Change(partition: partition, time: time, row: numbers[index]))
            _ = ordered.findOrInsert(key.bytes)
        }
        for index in 0..<batch.count {
            let payload = rows.writablePayload(numbers[index])
            payload.assumingMemoryBound(to: Int64.self)[1] &+= batch.weight(index)
            guard payload.load(as: UInt32.self) == 0, let time = times.micros(index) else { continue }
            payload.storeBytes(of: 1, as: UInt32.self)
            changes.append(Change(partition: partitionRows[index], time: time, row: numbers[index]))
        }
    }

    private static func set(_ key: inout KeyBuffer, _ place: Change) {
        key.removeAll()
        withUnsafeBytes(of: place.partition.bigEndian) { key.append($0) }
        withUnsafeBytes(of: (UInt64(bitPattern: place.time) ^ 1 << 63).bigEndian) { key.append($0) }
        withUnsafeBytes(of: place.row.bigEndian) { key.append($0) }
    }

    private static func place(_ key: UnsafeRawBufferPointer) -> Change {
        Change(
            partition: RowNumber(bigEndian: key.loadUnaligned(as: RowNumber.self)),
            time: Int64(bitPattern: UInt64(bigEndian: key.loadUnaligned(fromByteOffset: 4, as: UInt64.self)) ^ 1 << 63),
            row: RowNumber(bigEndian: key.loadUnaligned(fromByteOffset: 12, as: RowNumber.self)))
    }

    // MARK: Output

    package func closeEpoch(errors: OperatorErrors) {
        changes.sort()
        walk = Walk()
    }

    package func next(errors: OperatorErrors) -> DeltaBatch? {
        if let batch = timeless {
            timeless = nil
            return batch
        }
        guard var walk else { return nil }
        var output = Output()
        while walk.change < changes.count, output.count <= Limits.batchRowsMax - 2 {
            let first = walk.row ?? runStart(changes[walk.change])
            readRun(from: first, &walk, &output)
        }
        self.walk = walk
        if output.count > 0 { return batch(output) }
        finishEpoch()
        return nil
    }

    /// Rows to give out.
    private struct Output {
        var numbers: [RowNumber] = []
        var weights: [Int64] = []
        var starts: [Int64] = []
        var ends: [Int64] = []
        var count: Int { numbers.count }

        mutating func append(_ number: RowNumber, _ weight: Int64, _ start: Int64, _ end: Int64) {
            numbers.append(number)
            weights.append(weight)
            starts.append(start)
            ends.append(end)
        }
    }

    /// The first row of the run that a change is in.
    private func runStart(_ change: Change) -> Change {
        var first = change
        var key = KeyBuffer()
        Self.set(&key, change)
        ordered.scan(to: key.bytes, descending: true) { key, _ in
            let place = Self.place(key)
            guard place.partition == first.partition, first.time - place.time <= window.gapMicros else { return false }
            first = place
            return true
        }
        return first
    }

    /// Reads a run to its end, or until the output is full; then `walk.row` says where to go on.
    private func readRun(from first: Change, _ walk: inout Walk, _ output: inout Output) {
        var key = KeyBuffer()
        Self.set(&key, first)
        if walk.row == nil { walk.last = .min }
        walk.row = nil
        var previous = first
        ordered.scan(from: key.bytes) { key, _ in
            let place = Self.place(key)
            guard place.partition == first.partition, place.time - previous.time <= window.gapMicros else { return false }
            guard output.count <= Limits.batchRowsMax - 2 else {
                walk.row = place
                return false
            }
            previous = place
            read(place, &walk, &output)
            return true
        }
        guard walk.row == nil else { return }
        while walk.change < changes.count, changes[walk.change] <= previous { walk.change += 1 }
    }

    /// Gives what has changed of one row.
    private func read(_ place: Change, _ walk: inout Walk, _ output: inout Output) {
        let payload = rows.writablePayload(place.row)
        let values = payload.assumingMemoryBound(to: Int64.self)
        let weight = values[Self.weightOffset / 8]
        let shown = values[Self.shownOffset / 8]
        let (start, end) = (values[Self.startOffset / 8], values[Self.endOffset / 8])
        guard weight > 0 else {
            if shown != 0 { output.append(place.row, -shown, start, end) }
            values[Self.shownOffset / 8] = 0
            return
        }
        if place.time > walk.last {
            walk.start = place.time
            walk.last = sessionEnd(place)
        }
        let newEnd = walk.last + window.gapMicros
        if shown != 0, start == walk.start, end == newEnd {
            if weight != shown { output.append(place.row, weight - shown, start, end) }
        } else {
            if shown != 0 { output.append(place.row, -shown, start, end) }
            output.append(place.row, weight, walk.start, newEnd)
        }
        values[Self.shownOffset / 8] = weight
        values[Self.startOffset / 8] = walk.start
        values[Self.endOffset / 8] = newEnd
    }

    /// The last time of the session that begins with a row.
    private func sessionEnd(_ first: Change) -> Int64 {
        var last = first.time
        var key = KeyBuffer()
        Self.set(&key, first)
        ordered.scan(from: key.bytes) { key, _ in
            let place = Self.place(key)
            guard place.partition == first.partition, place.time - last <= window.gapMicros else { return false }
            if rows.payload(place.row).load(fromByteOffset: Self.weightOffset, as: Int64.self) > 0 { last = place.time }
            return true
        }
        return last
    }

    private func batch(_ output: Output) -> DeltaBatch {
        let starts = Column(window.boundType, uninitialized: output.count)
        let ends = Column(window.boundType, uninitialized: output.count)
        for index in 0..<output.count {
            starts.values(Int64.self)[index] = output.starts[index]
            ends.values(Int64.self)[index] = output.ends[index]
        }
        let columns = rows.gather(rows: output.numbers, count: output.count) + [starts, ends]
        let isPlain = output.weights.allSatisfy { $0 == 1 }
        return DeltaBatch(columns: columns, count: output.count, weights: isPlain ? nil : Weights(output.weights))
    }

    private func finishEpoch() {
        var key = KeyBuffer()
        for change in changes {
            let payload = rows.preparedPayload(change.row)
            payload.storeBytes(of: 0, as: UInt32.self)
            guard payload.load(fromByteOffset: Self.weightOffset, as: Int64.self) == 0 else { continue }
            Self.set(&key, change)
            _ = ordered.remove(key.bytes)
            rows.remove(change.row)
            let count = partitions.writablePayload(change.partition).assumingMemoryBound(to: Int64.self)
            count.pointee -= 1
            if count.pointee == 0 { partitions.remove(change.partition) }
        }
        changes.removeAll(keepingCapacity: true)
        walk = nil
        rows.compactHeapIfWorthwhile()
        partitions.compactHeapIfWorthwhile()
    }

    package func checkInvariants() -> [String] {
        ordered.checkInvariants()
        var broken = rows.checkInvariants() + partitions.checkInvariants()
        rows.forEachRow { number in
            let values = rows.payload(number).assumingMemoryBound(to: Int64.self)
            let (weight, shown) = (values[Self.weightOffset / 8], values[Self.shownOffset / 8])
            if weight <= 0 || weight != shown { broken.append("row \(number) has the weight \(weight), and \(shown) is out") }
        }
        if ordered.count != rows.count { broken.append("\(ordered.count) places for \(rows.count) rows") }
        return broken
    }

    /// The rows come in once more: they get the bounds that they had.
    package func adopt(from other: SessionWindowOperator, _ share: StateShare) throws(StateCorruption) {
        let slice = StateTableSlice(columns: Array(other.rows.layout.columns.indices))
        try share.forEachBatch(of: other.rows, by: share.inputs[0]) { (theirs) throws(StateCorruption) in
            for batch in slice.batches(of: other.rows, rows: theirs, weightOffset: Self.weightOffset) { keep(batch) }
        }
        let errors = OperatorErrors()
        closeEpoch(errors: errors)
        while next(errors: errors) != nil {}
    }

    package var tables: [any DurableTable] { [rows, partitions, ordered] }

    package var stateByteCount: Int { rows.byteCount + partitions.byteCount + ordered.byteCount }
}
