package import MillBase
package import MillColumnar
package import MillExpr
package import MillPlan
package import MillState
package import MillStore

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// GROUP BY partition and session over input that is only added to: one state a session, merged when a row joins two.
///
/// Per batch: find the partitions, then each row's session in turn (extended, begun or joined with its neighbour), then one loop per
/// accumulator. Per epoch a session gives at most one retraction of its old output row and one insertion of its new one, whatever
/// number of rows it has (`TouchedGroups`).
///
/// When two sessions become one within a batch, the later one's state so far is merged at once, and the batch's rows that went
/// to it are added to the session that it has become part of. Its row stays until the end of the epoch for its retraction.
///
/// Without a watermark sessions are never closed: a row of any time may still come. With one (`SessionClosing`) a session goes when
/// no row that is not late can belong to it any more.
package final class SessionAggregateOperator: Operator {
    private let window: SessionWindow
    /// Output columns before the calls.
    private let keys: [Key]
    private let calls: RunningCalls
    private let mergers: [(accumulator: any MergeableAccumulator, offset: Int)]
    private let store: SessionStore
    private let payloadBytes: Int

    private var touched: TouchedGroups
    private var closing: SessionClosing?
    /// Sessions that became part of another within the batch in work.
    private var joined: [RowNumber: RowNumber] = [:]

    private let partitionRows = UnsafeMutablePointer<RowNumber>.allocate(capacity: Limits.batchRowsMax)
    private let rows = UnsafeMutablePointer<RowNumber>.allocate(capacity: Limits.batchRowsMax)
    private let hashes = UnsafeMutablePointer<UInt64>.allocate(capacity: Limits.batchRowsMax)
    private let payloads = UnsafeMutablePointer<UnsafeMutableRawPointer>.allocate(capacity: Limits.batchRowsMax)
    private var inserted = Selection(capacity: Limits.batchRowsMax)

    private enum Key {
        /// A column of the partition, by its place in it.
        case partition(Int)
        case start
        case end
    }

    /// - Parameter keys: columns of the window's output, each of its partition and one or both of the bounds.
    /// - Throws: XX000 for a call whose states cannot be merged, which the planner does not put here.
    package init(
        _ window: SessionWindow, keys: [Int], calls: [AggregateCall], input: Schema, closing: SessionClosing? = nil
    ) throws(SQLError) {
        self.window = window
        self.closing = closing
        self.keys = keys.map { column in
            if let place = window.partition.firstIndex(of: column) { .partition(place) } else { column == input.count ? .start : .end }
        }
        let running = try RunningCalls(calls, isAppendOnly: true, offset: SessionStore.payloadBytes)
        guard let mergers = running.mergers else { throw SQLError(.internalError, "an aggregate of sessions cannot be merged") }
        self.calls = running
        self.mergers = mergers
        payloadBytes = SessionStore.payloadBytes + running.byteCount
        store = SessionStore(partition: window.partition.map { input[$0].type }, gapMicros: window.gapMicros, extraBytes: running.byteCount,
            payloadStrings: running.stringOffsets, stringsOwner: running)
        touched = TouchedGroups(payloadBytes: payloadBytes)
    }

    deinit {
        partitionRows.deallocate()
        rows.deallocate()
        hashes.deallocate()
        payloads.deallocate()
    }

    // MARK: Input

    package func push(_ batch: DeltaBatch, input: Int, errors: OperatorErrors) {
        batch.forEachPart { part in
            guard let onTime = closing == nil ? part : closing?.onTime(part) else { return }
            add(onTime, errors)
        }
    }

    package func openEpoch(_ watermarks: [WatermarkStep]) { closing?.step = watermarks[0] }

    private func add(_ batch: DeltaBatch, _ errors: OperatorErrors) {
        let count = batch.count
        let columns = window.partition.map { batch.columns[$0] }
        RowHash.hash(columns, count: count, into: hashes)
        store.partitions.findOrInsert(columns, hashes: hashes, count: count, rows: partitionRows, inserted: &inserted)
        // A row touches its session, and the next one when it joins both.
        touched.reserve(2 * count)
        assign(EventTimes(batch.columns[window.timeColumn]), count)
        if !joined.isEmpty {
            for index in 0..<count { while let target = joined[rows[index]] { rows[index] = target } }
            joined.removeAll(keepingCapacity: true)
        }
        for index in 0..<count { payloads[index] = store.session(rows[index]).payload }
        calls.update(GroupRows(payloads: payloads, numbers: rows, count: count, offset: 0), batch, errors)
    }

    /// Finds the session of each row.
    private func assign(_ times: EventTimes, _ count: Int) {
        let (store, gap, rows, partitionRows) = (store, window.gapMicros, rows, partitionRows)
        for index in 0..<count {
            let partition = partitionRows[index]
            guard let time = times.micros(index) else {
                rows[index] = placeTimeless(partition)
                continue
            }
            let latest = store.latest(of: partition)
            if latest != 0 {
                let session = store.session(latest &- 1)
                let last = session.last.pointee
                if time >= session.first.pointee, time &- last <= gap {
                    if session.payload.load(as: UInt32.self) == 0 { touch(latest &- 1) }
                    if time > last { session.last.pointee = time }
                    rows[index] = latest &- 1
                    continue
                }
            }
            rows[index] = place(time, partition)
        }
    }

    /// The session of a row that does not simply go on with the latest: an earlier one, one that the row joins with the next, or a new one.
    private func place(_ time: Int64, _ partition: RowNumber) -> RowNumber {
        let (before, after) = store.neighbours(of: time, in: partition)
        let reached = after.flatMap { store.session($0).first.pointee - time <= window.gapMicros ? $0 : nil }
        if let before, time - store.session(before).last.pointee <= window.gapMicros {
            touch(before)
            if let reached {
                touch(reached)
                join(before, with: reached)
            } else {
                let last = store.session(before).last
                last.pointee = max(last.pointee, time)
            }
            return before
        }
        guard let reached else { return begin(time, partition) }
        touch(reached)
        store.extend(reached, backTo: time)
        return reached
    }

    private func placeTimeless(_ partition: RowNumber) -> RowNumber {
        guard let session = store.timelessSession(of: partition) else { return begin(SessionStore.timeless, partition) }
        touch(session)
        return session
    }

    private func begin(_ time: Int64, _ partition: RowNumber) -> RowNumber {
        let number = store.begin(at: time, in: partition)
        closing?.begin(number, at: time)
        touch(number)
        // It was not there before.
        Session(payload: touched.saved(touched.count - 1)).end()
        return number
    }

    private func join(_ number: RowNumber, with next: RowNumber) {
        let (target, source) = (store.session(number).payload, store.session(next).payload)
        for (accumulator, offset) in mergers {
            accumulator.merge(GroupState(number: next, state: source + offset), into: GroupState(number: number, state: target + offset))
        }
        store.join(number, with: next)
        joined[next] = number
    }

    private func touch(_ number: RowNumber) { touched.touch(number, store.session(number).payload, of: store.sessions) }

    // MARK: Output

    package func closeEpoch(errors: OperatorErrors) {
        touched.close(calls, of: store.sessions)
        closing?.close(store, gapMicros: window.gapMicros)
    }

    package func next(errors: OperatorErrors) -> DeltaBatch? {
        guard touched.isGivingOut else { return nil }
        if closing?.emitsOnClose == true {
            if let part = closing?.nextPart() { return output(closed: part, errors) }
            finishEpoch()
            return nil
        }
        while let part = touched.nextPart() {
            if let batch = output(part, errors) { return batch }
        }
        finishEpoch()
        return nil
    }

    private func output(_ part: Range<Int>, _ errors: OperatorErrors) -> DeltaBatch? {
        var sessions: [UnsafeMutableRawPointer] = []
        var weights: [Int64] = []
        sessions.reserveCapacity(2 * part.count)
        weights.reserveCapacity(2 * part.count)
        for index in part {
            let old = Session(payload: touched.saved(index))
            let new = store.session(touched.number(index))
            // The mark aside, equal bytes are equal output.
            if old.isLive, new.isLive, memcmp(old.payload + 8, new.payload + 8, payloadBytes - 8) == 0 { continue }
            if old.isLive {
                sessions.append(old.payload)
                weights.append(-1)
            }
            if new.isLive {
                sessions.append(new.payload)
                weights.append(1)
            }
        }
        guard !sessions.isEmpty else { return nil }
        let keyColumns = columns(of: sessions)
        let columns = keyColumns + calls.output(sessions, keys: keyColumns, weights: weights, errors)
        return DeltaBatch(columns: columns, count: sessions.count, weights: weights.contains(-1) ? Weights(weights) : nil)
    }

    /// The rows of sessions that close.
    private func output(closed numbers: [RowNumber], _ errors: OperatorErrors) -> DeltaBatch {
        let sessions = numbers.map { store.session($0).payload }
        let keyColumns = columns(of: sessions)
        let values = calls.output(sessions, keys: keyColumns, weights: Array(repeating: 1, count: numbers.count), errors)
        return DeltaBatch(columns: keyColumns + values, count: numbers.count)
    }

    private func columns(of sessions: [UnsafeMutableRawPointer]) -> [Column] {
        let partitions = sessions.map { Session(payload: $0).partition }
        return keys.map { key in
            switch key {
            case .partition(let place): store.partitions.gather(place, rows: partitions, count: partitions.count)
            case .start: bounds(sessions) { $0.first.pointee }
            case .end: bounds(sessions) { $0.last.pointee + window.gapMicros }
            }
        }
    }

    private func bounds(_ sessions: [UnsafeMutableRawPointer], _ bound: (Session) -> Int64) -> Column {
        let column = Column(window.boundType, uninitialized: sessions.count)
        let values = column.values(Int64.self)
        for (index, payload) in sessions.enumerated() {
            let session = Session(payload: payload)
            if session.first.pointee == SessionStore.timeless { column.setNull(index) } else { values[index] = bound(session) }
        }
        return column
    }

    private func finishEpoch() {
        for index in 0..<touched.count {
            let number = touched.number(index)
            let session = store.session(number)
            session.payload.storeBytes(of: 0, as: UInt32.self)
            if session.isLive { continue }
            calls.release(number, session.payload)
            store.free(number)
        }
        touched.clear()
        closing?.removeClosed { number in
            store.sessions.prepareToWrite(number)
            calls.release(number, store.session(number).payload)
            store.close(number)
        }
        calls.compact(store.sessions)
    }

    package func checkInvariants() -> [String] {
        store.checkInvariants() + (touched.count > 0 ? ["\(touched.count) sessions are still marked as touched"] : [])
    }

    package func adopt(from other: SessionAggregateOperator, _ share: StateShare) throws(StateCorruption) {
        try store.adopt(from: other.store, share, by: share.inputs[0].among(window.partition)) { theirs, ours in
            calls.adopt(GroupMove.of(theirs, in: other.store.sessions, to: ours, in: store.sessions), from: other.calls)
        }
    }

    package var tables: [any DurableTable] { store.tables + calls.tables }

    package func finishRestore() {
        calls.finishRestore(store.sessions)
        closing?.rebuild(store)
    }

    package var stateByteCount: Int { store.byteCount + touched.byteCount + calls.outsideByteCount + (closing?.byteCount ?? 0) }
}
