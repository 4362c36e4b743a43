import MillBase
package import MillColumnar
package import MillPlan
package import MillState
package import MillStore

/// row_number, rank and dense_rank, and the first rows of an order: OVER, grouped top-N, keep-last and LIMIT in views.
///
/// Every row has numbers in its partition: how many rows stand before it, and its rank and dense rank among the values of the order
/// key. They go out as columns, or decide what goes out (the cut), or both. The order is total: after the order key come all
/// other columns, so that ties are cut and numbered the same way every time. A row of weight w is w rows numbered in sequence.
///
/// State: the rows, each with its weight and the numbers given out for it, and an ordered table of keys (partition, order key, the
/// rest) -> row. Invariants between epochs: every weight is positive; the rows with numbers are the first ones of each partition,
/// all of them if nothing is cut off; the numbers are those of the order.
///
/// Algorithm: rows change their weights as they come and are noted. At the end of an epoch the noted rows are sorted, and from each
/// a walk goes up its partition, with the numbers of the row before it to start from. A walk ends at a row that was not noted and
/// keeps its numbers: what follows keeps them too, as far as the next noted row. So an epoch costs O(log n) for each row that came
/// and O(1) for each row whose numbers changed. Behind the cut rows have no numbers, and no walk goes far there.
///
/// Over append-only input a row behind the cut never gets before it again: it is forgotten, and one that would stand there from
/// the start is mostly not taken in. The state is then what the cut keeps.
///
/// With a watermark of a partition column (`KeyClosing`) a row of a closed partition is late, and the rows of partitions go, though they stay given
/// out, at the end of the epoch that closes them.
package final class RankOperator: Operator {
    let functions: [RankFunction]
    let cut: Cut?
    /// Whether rows behind the cut leave the state.
    let forgets: Bool
    private let keys: RankKeys
    /// Without an index: a row is found by its key.
    let rows: StateTable
    /// Key -> `RankPlace`.
    let ordered: OrderedTable
    private var closing: KeyClosing?

    /// Rows that came in this epoch, and their keys.
    var noted: [RankNote] = []
    private var notedKeys = KeyBuffer()
    /// nil while rows come in.
    var walk: RankWalk?
    /// Rows that are gone when this epoch is over, and their keys.
    private var leavers: [RankLeaver] = []
    private var leavingKeys = KeyBuffer()

    private let numbers = UnsafeMutablePointer<RowNumber>.allocate(capacity: Limits.batchRowsMax)
    private var inserted = Selection(capacity: Limits.batchRowsMax)
    /// Rows without an index have no hash but one that says that they live.
    private let hashes = UnsafeMutablePointer<UInt64>.allocate(capacity: Limits.batchRowsMax)

    /// - Parameter isAppendOnly: the input never takes a row back.
    package init(
        columns: [SQLType], window: Window, functions: [RankFunction], cut: Cut?, isAppendOnly: Bool, closing: KeyClosing? = nil
    ) {
        self.closing = closing
        self.functions = functions
        self.cut = cut
        forgets = isAppendOnly && cut?.limit != nil
        keys = RankKeys(columns: columns, window: window)
        rows = StateTable(columns: columns, payloadBytes: MemoryLayout<RankState>.size, indexed: false)
        ordered = OrderedTable(payloadBytes: MemoryLayout<RankPlace>.size)
        hashes.initialize(repeating: 1, count: Limits.batchRowsMax)
    }

    deinit {
        numbers.deallocate()
        hashes.deallocate()
    }

    @inline(__always) func state(_ row: RowNumber) -> UnsafePointer<RankState> {
        rows.payload(row).assumingMemoryBound(to: RankState.self)
    }

    @inline(__always) func writableState(_ row: RowNumber) -> UnsafeMutablePointer<RankState> {
        rows.writablePayload(row).assumingMemoryBound(to: RankState.self)
    }

    /// Valid until the next row comes in.
    func notedKey(_ note: RankNote) -> UnsafeRawBufferPointer { notedKeys.slice(note.start, note.end) }

    // MARK: Input

    package func push(_ batch: DeltaBatch, input: Int, errors: OperatorErrors) {
        batch.forEachPart { part in
            guard let onTime = closing == nil ? part : closing?.onTime(part) else { return }
            add(forgets && cut?.function == .rowNumber ? withoutHopeless(onTime) : onTime)
        }
    }

    package func openEpoch(_ watermarks: [WatermarkStep]) { closing?.step = watermarks[0] }

    private func add(_ batch: DeltaBatch) {
        // Most rows are new; the others give their places back below.
        rows.append(batch.columns, hashes: hashes, count: batch.count, rows: numbers)
        let lanes = keys.lanes(batch.columns)
        var key = KeyBuffer()
        inserted.count = 0
        for index in 0..<batch.count {
            let ends = lanes.encode(index, into: &key)
            let (payload, isNew) = ordered.findOrInsert(key.bytes)
            var row = numbers[index]
            if isNew {
                inserted.append(index)
                payload.storeBytes(of: RankPlace(row: row, orderEnd: UInt32(truncatingIfNeeded: ends.order)), as: RankPlace.self)
            } else {
                rows.remove(row)
                row = payload.load(as: RankPlace.self).row
            }
            let state = writableState(row)
            state.pointee.weight &+= batch.weight(index)
            guard !state.pointee.isNoted else { continue }
            state.pointee.isNoted = true
            let start = notedKeys.count
            notedKeys.append(key.bytes)
            noted.append(RankNote(row: row, head: key.head(from: 0), start: start, end: notedKeys.count, partitionEnd: ends.partition))
        }
        closing?.note(inserted, of: batch.columns, numbers)
    }

    /// The batch without rows that would stand behind the cut: the row before them has the last number already.
    private func withoutHopeless(_ batch: DeltaBatch) -> DeltaBatch {
        let last = cut?.last ?? .max
        let lanes = keys.lanes(batch.columns)
        var key = KeyBuffer()
        var kept = Selection(capacity: batch.count)
        for row in 0..<batch.count {
            let partitionEnd = lanes.encodeOrder(row, into: &key)
            let before = predecessor(of: key.bytes, partitionEnd: partitionEnd).map { state($0.place.row).pointee.numbers }
            if let before, before.weight > 0, before.end > last { continue }
            kept.append(row)
        }
        return kept.count == batch.count ? batch : batch.gather(kept.rows, count: kept.count)
    }

    /// The row before a key in its partition; its key is valid until the next row comes in.
    func predecessor(of key: UnsafeRawBufferPointer, partitionEnd: Int) -> (key: UnsafeRawBufferPointer, place: RankPlace)? {
        var found: (UnsafeRawBufferPointer, RankPlace)?
        ordered.scan(from: UnsafeRawBufferPointer(rebasing: key[..<partitionEnd]), to: key, descending: true) { key, payload in
            found = (key, payload.load(as: RankPlace.self))
            return false
        }
        return found
    }

    // MARK: Epoch's end

    package func closeEpoch(errors: OperatorErrors) {
        noted.sort { $0.head != $1.head ? $0.head < $1.head : KeyHead.compare(notedKey($0), notedKey($1)) < 0 }
        walk = RankWalk()
    }

    package func next(errors: OperatorErrors) -> DeltaBatch? {
        guard walk != nil else { return nil }
        if let batch = nextChanges() { return batch }
        finishEpoch()
        return nil
    }

    func leave(_ row: RowNumber, _ key: UnsafeRawBufferPointer) {
        let start = leavingKeys.count
        leavingKeys.append(key)
        leavers.append(RankLeaver(row: row, start: start, end: leavingKeys.count))
    }

    private func finishEpoch() {
        for note in noted { writableState(note.row).pointee.isNoted = false }
        for leaver in leavers {
            _ = ordered.remove(leavingKeys.slice(leaver.start, leaver.end))
            rows.remove(leaver.row)
        }
        noted.removeAll(keepingCapacity: true)
        notedKeys.removeAll()
        leavers.removeAll(keepingCapacity: true)
        leavingKeys.removeAll()
        walk = nil
        removeClosed()
        rows.compactHeapIfWorthwhile()
    }

    private func removeClosed() {
        guard closing != nil else { return }
        var closed: [RowNumber] = []
        closing?.close(rows)
        closing?.removeClosed { closed.append($0) }
        var key = KeyBuffer()
        for start in stride(from: 0, to: closed.count, by: Limits.batchRowsMax) {
            let part = Array(closed[start..<min(start + Limits.batchRowsMax, closed.count)])
            let lanes = keys.lanes(rows.gather(rows: part, count: part.count))
            for (index, row) in part.enumerated() {
                _ = lanes.encode(index, into: &key)
                _ = ordered.remove(key.bytes)
                rows.remove(row)
            }
        }
        closing?.rebuildIfWorthwhile(rows)
    }

    package func finishRestore() { closing?.rebuild(rows) }

    package func checkInvariants() -> [String] {
        ordered.checkInvariants()
        var broken = rows.checkInvariants()
        var places = 0
        ordered.scan { _, payload in
            places += 1
            let row = payload.load(as: RankPlace.self).row
            let state = state(row).pointee
            if state.weight <= 0 { broken.append("row \(row) has the weight \(state.weight)") }
            if state.isNoted { broken.append("row \(row) is still noted") }
            if state.numbers.weight != state.weight, cut == nil || state.numbers.weight != 0 {
                broken.append("row \(row) has numbers for \(state.numbers.weight)")
            }
            return true
        }
        return places == rows.count ? broken : broken + ["\(places) places for \(rows.count) rows"]
    }

    package func adopt(from other: RankOperator, _ share: StateShare) throws(StateCorruption) {
        try share.forEachBatch(of: other.rows, by: share.inputs[0]) { (theirs) throws(StateCorruption) in
            let ours = try rows.adopt(theirs, of: other.rows)
            let lanes = keys.lanes(rows.gather(rows: ours, count: ours.count))
            var key = KeyBuffer()
            for (index, row) in ours.enumerated() {
                let ends = lanes.encode(index, into: &key)
                let (payload, isNew) = ordered.findOrInsert(key.bytes)
                guard isNew else { throw .onSeveralWorkers }
                payload.storeBytes(of: RankPlace(row: row, orderEnd: UInt32(truncatingIfNeeded: ends.order)), as: RankPlace.self)
            }
        }
    }

    /// Distinct rows held.
    package var rowCount: Int { rows.count }

    package var tables: [any DurableTable] { [rows, ordered] }

    package var stateByteCount: Int { rows.byteCount + ordered.byteCount + (closing?.byteCount ?? 0) }
}
