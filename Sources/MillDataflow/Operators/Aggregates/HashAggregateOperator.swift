package import MillBase
package import MillColumnar
package import MillExpr
import MillPlan
package import MillState
package import MillStore

/// GROUP BY, SELECT DISTINCT and aggregates without groups.
///
/// Weights: a group exists while the weights of its rows sum to more than 0. Per epoch it gives at most one retraction of its
/// old output row and one insertion of its new one, and nothing when both are equal. Its keys look as in the row that made the
/// group, for as long as the group lives.
///
/// A group is a row of a `StateTable`: its key columns, then the payload
/// ```
/// offset  size  meaning
/// 0       4     the mark of `touched`; 0: not touched in this epoch
/// 8       8     sum of the weights of its rows
/// 16      ...   accumulators, in the order of the calls
/// ```
/// Per batch: hash the keys, find or insert all groups, then one loop per accumulator.
///
/// With a watermark of a key column (`KeyClosing`) a row of a closed group is late, and groups go at the end of the epoch that closes
/// them: after their last output, which in a view with EMIT ON WINDOW CLOSE is their only one.
package final class HashAggregateOperator: Operator {
    private let keys: [Int]
    private let keyTypes: [SQLType]
    private let calls: RunningCalls
    private let table: StateTable
    private let payloadBytes: Int
    private let ownsGlobalGroup: Bool
    private var touched: TouchedGroups
    private var closing: KeyClosing?

    private let rows = UnsafeMutablePointer<RowNumber>.allocate(capacity: Limits.batchRowsMax)
    private let hashes = UnsafeMutablePointer<UInt64>.allocate(capacity: Limits.batchRowsMax)
    private let payloads = UnsafeMutablePointer<UnsafeMutableRawPointer>.allocate(capacity: Limits.batchRowsMax)
    private var inserted = Selection(capacity: Limits.batchRowsMax)

    private static let weightOffset = 8
    private static let accumulatorsOffset = 16

    /// - Parameters:
    ///   - isAppendOnly: the input never takes a row back; MIN and MAX then need no multiset.
    ///   - ownsGlobalGroup: whether this worker gives the one row of an aggregate without keys, which is there from the start and
    ///     never goes.
    package init(
        keys: [Int], calls: [AggregateCall], input: Schema, isAppendOnly: Bool, ownsGlobalGroup: Bool, closing: KeyClosing? = nil
    ) throws(SQLError) {
        self.keys = keys
        self.closing = closing
        keyTypes = keys.map { input[$0].type }
        self.calls = try RunningCalls(calls, isAppendOnly: isAppendOnly, offset: Self.accumulatorsOffset, closes: closing != nil)
        payloadBytes = Self.accumulatorsOffset + self.calls.byteCount
        table = StateTable(columns: keyTypes, payloadBytes: payloadBytes, payloadStrings: self.calls.stringOffsets, stringsOwner: self.calls)
        touched = TouchedGroups(payloadBytes: payloadBytes)
        self.ownsGlobalGroup = ownsGlobalGroup
    }

    deinit {
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
        guard count > 0 else { return }
        let weights = batch.weights.map { UnsafePointer($0.values) }
        touched.reserve(count)
        if keys.isEmpty {
            findGlobalGroup()
            touchGlobalGroup(&touched, count, weights)
        } else {
            let keyColumns = keys.map { batch.columns[$0] }
            RowHash.hash(keyColumns, count: count, into: hashes)
            table.findOrInsert(keyColumns, hashes: hashes, count: count, rows: rows, inserted: &inserted)
            closing?.note(inserted, of: keyColumns, rows)
            touch(&touched, count, weights)
        }
        calls.update(GroupRows(payloads: payloads, numbers: rows, count: count, offset: 0), batch, errors)
    }

    /// Notes the payload of each row's group, touches the group and adds the row's weight; there is room for all.
    private func touch(_ touched: inout TouchedGroups, _ count: Int, _ weights: UnsafePointer<Int64>?) {
        for index in 0..<count {
            let payload = table.preparedPayload(rows[index])
            payloads[index] = payload
            touched.touch(rows[index], payload, of: table)
            (payload + Self.weightOffset).assumingMemoryBound(to: Int64.self).pointee &+= weights?[index] ?? 1
        }
    }

    /// The same where all rows, one at least, are of the group that `rows` begins with.
    private func touchGlobalGroup(_ touched: inout TouchedGroups, _ count: Int, _ weights: UnsafePointer<Int64>?) {
        touch(&touched, 1, weights)
        var weight: Int64 = 0
        for index in 1..<count {
            (rows[index], payloads[index]) = (rows[0], payloads[0])
            weight &+= weights?[index] ?? 1
        }
        (payloads[0] + Self.weightOffset).assumingMemoryBound(to: Int64.self).pointee &+= weight
    }

    private func findGlobalGroup() {
        RowHash.hash([], count: 1, into: hashes)
        table.findOrInsert([], hashes: hashes, count: 1, rows: rows, inserted: &inserted)
    }

    /// The group of an aggregate without keys: weight 1 of its own keeps it alive. Its saved copy has weight 0, so the first
    /// epoch inserts its row and takes nothing back.
    package func begin() {
        guard ownsGlobalGroup, keys.isEmpty else { return }
        findGlobalGroup()
        touch(&touched, 1, nil)
    }

    // MARK: Output

    package func closeEpoch(errors: OperatorErrors) {
        touched.close(calls, of: table)
        closing?.close(table) { [table] number in
            table.payload(number).load(fromByteOffset: Self.weightOffset, as: Int64.self) > 0
        }
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
        var numbers: [RowNumber] = []
        var payloads: [UnsafeMutableRawPointer] = []
        var weights: [Int64] = []
        numbers.reserveCapacity(2 * part.count)
        payloads.reserveCapacity(2 * part.count)
        weights.reserveCapacity(2 * part.count)
        var hasRetraction = false
        for index in part {
            let number = touched.number(index)
            let old = touched.saved(index)
            let new = table.preparedPayload(number)
            let lived = old.load(fromByteOffset: Self.weightOffset, as: Int64.self) > 0
            let lives = new.load(fromByteOffset: Self.weightOffset, as: Int64.self) > 0
            if lived, lives, same(old, new) { continue }
            if lived {
                numbers.append(number)
                payloads.append(old)
                weights.append(-1)
                hasRetraction = true
            }
            if lives {
                numbers.append(number)
                payloads.append(new)
                weights.append(1)
            }
        }
        guard !numbers.isEmpty else { return nil }
        var columns = table.gather(rows: numbers, count: numbers.count)
        let keyCount = columns.count
        columns += calls.output(payloads, keys: columns, weights: weights, errors)
        let batch = DeltaBatch(columns: columns, count: numbers.count, weights: hasRetraction ? Weights(weights) : nil)
        return hasRetraction ? withoutEqualPairs(batch, numbers, keyCount) : batch
    }

    /// The rows of groups that close.
    private func output(closed numbers: [RowNumber], _ errors: OperatorErrors) -> DeltaBatch {
        let columns = table.gather(rows: numbers, count: numbers.count)
        let payloads = numbers.map { table.preparedPayload($0) }
        let values = calls.output(payloads, keys: columns, weights: Array(repeating: 1, count: numbers.count), errors)
        return DeltaBatch(columns: columns + values, count: numbers.count)
    }

    /// Without the retractions that the next row inserts again: another accumulator, but the same output. nil: nothing is left.
    private func withoutEqualPairs(_ batch: DeltaBatch, _ numbers: [RowNumber], _ keyCount: Int) -> DeltaBatch? {
        var kept = Selection(capacity: batch.count)
        var row = 0
        while row < batch.count {
            let isPair = row + 1 < batch.count && numbers[row] == numbers[row + 1]
            if isPair, batch.columns[keyCount...].allSatisfy({ $0.equals(row, $0, row + 1, by: .representation) }) {
                row += 2
                continue
            }
            kept.append(row)
            row += 1
        }
        if kept.count == batch.count { return batch }
        return kept.count == 0 ? nil : batch.gather(kept.rows, count: kept.count)
    }

    /// Whether all accumulators are the same bytes: then so is the output, which need not be made.
    private func same(_ a: UnsafeMutableRawPointer, _ b: UnsafeMutableRawPointer) -> Bool {
        let words = (payloadBytes - Self.accumulatorsOffset) / 8
        let left = (a + Self.accumulatorsOffset).assumingMemoryBound(to: UInt64.self)
        let right = (b + Self.accumulatorsOffset).assumingMemoryBound(to: UInt64.self)
        for word in 0..<words where left[word] != right[word] { return false }
        return true
    }

    private func finishEpoch() {
        calls.removeEmptied()
        for index in 0..<touched.count {
            let number = touched.number(index)
            let payload = table.preparedPayload(number)
            payload.storeBytes(of: 0, as: UInt32.self)
            guard payload.load(fromByteOffset: Self.weightOffset, as: Int64.self) == 0 else { continue }
            calls.release(number, payload)
            table.remove(number)
        }
        touched.clear()
        closing?.removeClosed { number in
            calls.release(number, table.writablePayload(number))
            table.remove(number)
        }
        closing?.rebuildIfWorthwhile(table)
        table.compactHeapIfWorthwhile()
        calls.compact(table)
    }

    package func checkInvariants() -> [String] {
        var broken = table.checkInvariants()
        table.forEachRow { number in
            let weight = table.payload(number).load(fromByteOffset: Self.weightOffset, as: Int64.self)
            if weight <= 0 { broken.append("group \(number) has the weight \(weight)") }
        }
        if touched.count > 0 { broken.append("\(touched.count) groups are still marked as touched") }
        return broken + calls.checkInvariants()
    }

    // MARK: State of another number of workers

    package func adopt(from other: HashAggregateOperator, _ share: StateShare) throws(StateCorruption) {
        guard share.inputs[0].fits(keys) else { return try adoptParts(from: other, share) }
        var moved = MovedRows(from: other.table)
        try share.forEachBatch(of: other.table, by: share.inputs[0].among(keys)) { (theirs) throws(StateCorruption) in
            let ours = try table.adopt(theirs, of: other.table)
            calls.adopt(GroupMove.of(theirs, in: other.table, to: ours, in: table), from: other.calls)
            moved.note(theirs, as: ours)
        }
        calls.adoptDistincts(moved, from: other.calls)
    }

    /// Of groups of which each worker keeps a part, over input that is never taken back. What was given out of a part stays true for ever
    /// with who puts the parts together, so all begin anew. What is given out at a group's close only is added to one worker's part.
    private func adoptParts(from other: HashAggregateOperator, _ share: StateShare) throws(StateCorruption) {
        guard closing?.emitsOnClose == true else { return }
        guard let mergers = calls.mergers else { throw StateCorruption("parts of groups that cannot be put together") }
        let copy = UnsafeMutableRawPointer.allocate(byteCount: payloadBytes, alignment: 8)
        defer { copy.deallocate() }
        try share.forEachBatch(of: other.table, by: .hash(Array(keys.indices))) { (theirs) throws(StateCorruption) in
            let columns = other.table.gather(rows: theirs, count: theirs.count)
            RowHash.hash(columns, count: theirs.count, into: hashes)
            table.findOrInsert(columns, hashes: hashes, count: theirs.count, rows: rows, inserted: &inserted)
            for (index, their) in theirs.enumerated() {
                // No group has this number.
                let part = GroupMove(
                    from: GroupState(number: their, state: other.table.preparedPayload(their)),
                    to: GroupState(number: StateTable.notFound, state: copy))
                copy.copyMemory(from: part.from.state, byteCount: payloadBytes)
                calls.adopt([part], from: other.calls)
                payloads[index] = table.writablePayload(rows[index])
                for (accumulator, offset) in mergers {
                    accumulator.merge(part.at(offset).to, into: GroupState(number: rows[index], state: payloads[index] + offset))
                }
                calls.release(part.to.number, copy)
                (payloads[index] + Self.weightOffset).assumingMemoryBound(to: Int64.self).pointee
                    &+= copy.load(fromByteOffset: Self.weightOffset, as: Int64.self)
            }
            calls.refresh(GroupRows(payloads: payloads, numbers: rows, count: theirs.count, offset: 0))
        }
    }

    package var tables: [any DurableTable] { [table] + calls.tables }

    package func finishRestore() {
        calls.finishRestore(table)
        closing?.rebuild(table)
    }

    package var stateByteCount: Int {
        table.byteCount + touched.byteCount + calls.outsideByteCount + (closing?.byteCount ?? 0)
    }
}
