package import MillBase
package import MillColumnar
package import MillExpr
import MillState

/// GROUP BY, SELECT DISTINCT and aggregates without groups.
///
/// Weights: a group exists while the weights of its rows sum to more than 0. Per epoch it gives at most one retraction of its
/// old output row and one insertion of its new one, and nothing when both are equal. Its keys look as in the row that made the
/// group, for as long as the group lives.
///
/// A group is a row of a `StateTable`: its key columns, then the payload
/// ```
/// offset  size  meaning
/// 0       4     place in `touched` plus 1; 0: not touched in this epoch
/// 8       8     sum of the weights of its rows
/// 16      ...   accumulators, in the order of the calls
/// ```
/// Per batch: hash the keys, find or insert all groups, then one loop per accumulator. At a group's first touch in an epoch its
/// payload is copied to `saved`, from which the retraction is made at the end.
package final class HashAggregateOperator: Operator {
    private let keys: [Int]
    private let keyTypes: [SQLType]
    private let calls: [Call]
    /// The FILTER conditions of the calls, each once.
    private let filters: [RowExpression]
    /// The calls with DISTINCT, those over one column together.
    private let distincts: [Distinct]
    private let table: StateTable
    private let payloadBytes: Int

    /// The groups that rows of this epoch belong to, and their payloads as they were before.
    private var touched: UnsafeMutablePointer<RowNumber>
    private var saved: UnsafeMutableRawPointer
    private var touchedCount = 0
    private var touchedCapacity = 1024
    /// The touched group to go on with while output is given; nil between epochs.
    private var position: Int?

    private let rows = UnsafeMutablePointer<RowNumber>.allocate(capacity: Limits.batchRowsMax)
    private let hashes = UnsafeMutablePointer<UInt64>.allocate(capacity: Limits.batchRowsMax)
    private let payloads = UnsafeMutablePointer<UnsafeMutableRawPointer>.allocate(capacity: Limits.batchRowsMax)
    private var inserted = Selection(capacity: Limits.batchRowsMax)

    private static let touchedOffset = 0
    private static let weightOffset = 8
    private static let accumulatorsOffset = 16

    private struct Call {
        let argument: RowExpression?
        /// Number of its condition in `filters`.
        let filter: Int?
        let isDistinct: Bool
        let accumulator: any Accumulator
        let offset: Int
    }

    private struct Distinct {
        let argument: RowExpression
        let values: DistinctFilter
        /// Numbers of its calls.
        let calls: [Int]
    }

    /// - Parameters:
    ///   - isAppendOnly: the input never takes a row back; MIN and MAX then need no multiset.
    ///   - ownsGlobalGroup: whether this worker gives the one row of an aggregate without keys, which is there from the start and
    ///     never goes.
    package init(keys: [Int], calls: [AggregateCall], input: Schema, isAppendOnly: Bool, ownsGlobalGroup: Bool) throws(SQLError) {
        self.keys = keys
        keyTypes = keys.map { input[$0].type }
        var offset = Self.accumulatorsOffset
        var built: [Call] = []
        var conditions: [BoundExpression] = []
        for call in calls {
            let accumulator = Self.accumulator(for: call, isAppendOnly: isAppendOnly)
            if let filter = call.filter, !conditions.contains(filter) { conditions.append(filter) }
            built.append(
                Call(
                    argument: try call.argument.map { (argument) throws(SQLError) in
                        RowExpression(try CompiledExpression(argument), operatorName: call.function.rawValue)
                    },
                    filter: call.filter.flatMap { conditions.firstIndex(of: $0) }, isDistinct: call.distinct && call.argument != nil,
                    accumulator: accumulator, offset: offset))
            offset += accumulator.byteCount
        }
        self.calls = built
        filters = try conditions.map { (condition) throws(SQLError) in
            RowExpression(try CompiledExpression(condition), operatorName: "filter of an aggregate")
        }
        distincts = Self.distincts(calls, built)
        payloadBytes = offset
        table = StateTable(columns: keyTypes, payloadBytes: offset)
        touched = .allocate(capacity: touchedCapacity)
        saved = .allocate(byteCount: touchedCapacity * offset, alignment: 8)
        if ownsGlobalGroup && keys.isEmpty { startGlobalGroup() }
    }

    deinit {
        touched.deallocate()
        saved.deallocate()
        rows.deallocate()
        hashes.deallocate()
        payloads.deallocate()
    }

    /// Calls over one column share its values. A computed argument may fail, and does so on the rows that its own call counts: it
    /// stays by itself.
    private static func distincts(_ calls: [AggregateCall], _ built: [Call]) -> [Distinct] {
        var groups: [(argument: BoundExpression, calls: [Int])] = []
        for (number, call) in calls.enumerated() where built[number].isDistinct {
            guard let argument = call.argument else { continue }
            if case .column = argument, let known = groups.firstIndex(where: { $0.argument == argument }) {
                groups[known].calls.append(number)
            } else {
                groups.append((argument, [number]))
            }
        }
        return groups.compactMap { group in
            built[group.calls[0]].argument.map {
                Distinct(argument: $0, values: DistinctFilter(group.argument.type, callCount: group.calls.count), calls: group.calls)
            }
        }
    }

    private static func accumulator(for call: AggregateCall, isAppendOnly: Bool) -> any Accumulator {
        let type = call.argument?.type ?? .int64
        switch call.function {
        case .count: return CountAccumulator()
        case .sum, .avg:
            if type.isFloat { return FloatSumAccumulator(type: call.type, isAverage: call.function == .avg) }
            let result = SumResult(type: call.type, isAverage: call.function == .avg)
            return type.isNumeric ? DecimalSumAccumulator(result) : IntegerSumAccumulator(result)
        case .min, .max:
            let isMax = call.function == .max
            return isAppendOnly
                ? AppendOnlyExtremumAccumulator(type: type, isMax: isMax) : OrderedExtremumAccumulator(type: type, kind: isMax ? .max : .min)
        case .singleValue: return OrderedExtremumAccumulator(type: type, kind: .single)
        case .boolAnd: return BooleanAccumulator(isAnd: true)
        case .boolOr: return BooleanAccumulator(isAnd: false)
        }
    }

    // MARK: Input

    package func push(_ batch: DeltaBatch, input: Int, errors: OperatorErrors) {
        var start = 0
        while start < batch.count {
            let end = min(start + Limits.batchRowsMax, batch.count)
            add(start == 0 && end == batch.count ? batch : batch.slice(start, end), errors)
            start = end
        }
    }

    private func add(_ batch: DeltaBatch, _ errors: OperatorErrors) {
        let count = batch.count
        let keyColumns = keys.map { batch.columns[$0] }
        RowHash.hash(keyColumns, count: count, into: hashes)
        table.findOrInsert(keyColumns, hashes: hashes, count: count, rows: rows, inserted: &inserted)
        let weights = batch.weights.map { UnsafePointer($0.values) }
        if touchedCount + count > touchedCapacity { growTouched(count) }
        touchedCount = touch(count, weights)
        let filtered = filters.map { counted(batch, weights, by: $0, errors) }
        for call in calls where !call.isDistinct {
            // The argument is only evaluated on rows that count, so that its errors are those of counted rows.
            let source = call.filter.map { DeltaBatch(columns: batch.columns, count: count, weights: filtered[$0]) } ?? batch
            withExtendedLifetime(source) {
                let values = call.argument?.evaluate(source, errors)
                call.accumulator.update(groupRows(count, call), values: values, weights: source.weights.map { UnsafePointer($0.values) })
            }
        }
        for distinct in distincts { update(distinct, batch, filtered, errors) }
    }

    private func groupRows(_ count: Int, _ call: Call) -> GroupRows {
        GroupRows(payloads: payloads, numbers: rows, count: count, offset: call.offset)
    }

    /// The weights of the rows that pass a FILTER, 0 for the others.
    private func counted(_ batch: DeltaBatch, _ weights: UnsafePointer<Int64>?, by filter: RowExpression, _ errors: OperatorErrors) -> Weights {
        let passes = filter.evaluate(batch, errors)
        // A missing answer has a zero byte.
        let flags = UnsafePointer(passes.values(UInt8.self))
        let result = Weights(count: batch.count)
        let target = result.values
        for index in 0..<batch.count { target[index] = flags[index] == 0 ? 0 : weights?[index] ?? 1 }
        return result
    }

    private func update(_ distinct: Distinct, _ batch: DeltaBatch, _ filtered: [Weights], _ errors: OperatorErrors) {
        let own = distinct.calls.map { calls[$0].filter.map { filtered[$0] } ?? batch.weights }
        let source = own.count == 1 && own[0] != nil ? DeltaBatch(columns: batch.columns, count: batch.count, weights: own[0]) : batch
        let values = distinct.argument.evaluate(source, errors)
        let changes = own.map { Weights(copying: $0, count: batch.count) }
        let groups = groupRows(batch.count, calls[distinct.calls[0]])
        distinct.values.apply(groups, values: values, weights: changes)
        let counted = distinct.calls.contains { calls[$0].accumulator.readsValues } ? distinct.values.countedValues(groups) : nil
        withExtendedLifetime(changes) {
            for (place, number) in distinct.calls.enumerated() {
                calls[number].accumulator.update(groupRows(batch.count, calls[number]), values: counted, weights: changes[place].values)
            }
        }
    }

    /// Notes the payload of each row's group, adds the row's weight, and saves groups that are touched for the first time in this
    /// epoch; there is room for all.
    /// - Returns: how many groups are touched now.
    private func touch(_ count: Int, _ weights: UnsafePointer<Int64>?) -> Int {
        let (touched, saved, payloadBytes) = (touched, saved, payloadBytes)
        var touchedCount = touchedCount
        for index in 0..<count {
            let payload = table.payload(rows[index])
            payloads[index] = payload
            if payload.load(as: UInt32.self) == 0 {
                (saved + touchedCount &* payloadBytes).copyMemory(from: payload, byteCount: payloadBytes)
                touched[touchedCount] = rows[index]
                touchedCount &+= 1
                payload.storeBytes(of: UInt32(truncatingIfNeeded: touchedCount), as: UInt32.self)
            }
            (payload + Self.weightOffset).assumingMemoryBound(to: Int64.self).pointee &+= weights?[index] ?? 1
        }
        return touchedCount
    }

    private func growTouched(_ more: Int) {
        touchedCapacity = max(touchedCount + more, 2 * touchedCapacity)
        let numbers = UnsafeMutablePointer<RowNumber>.allocate(capacity: touchedCapacity)
        numbers.update(from: touched, count: touchedCount)
        touched.deallocate()
        touched = numbers
        let larger = UnsafeMutableRawPointer.allocate(byteCount: touchedCapacity * payloadBytes, alignment: 8)
        larger.copyMemory(from: saved, byteCount: touchedCount * payloadBytes)
        saved.deallocate()
        saved = larger
    }

    /// The group of an aggregate without keys: weight 1 of its own keeps it alive. Its saved copy has weight 0, so the first
    /// epoch inserts its row and takes nothing back.
    private func startGlobalGroup() {
        RowHash.hash([], count: 1, into: hashes)
        table.findOrInsert([], hashes: hashes, count: 1, rows: rows, inserted: &inserted)
        touchedCount = touch(1, nil)
    }

    // MARK: Output

    package func closeEpoch(errors: OperatorErrors) {
        for start in stride(from: 0, to: touchedCount, by: Limits.batchRowsMax) {
            let count = min(touchedCount - start, Limits.batchRowsMax)
            for index in 0..<count { payloads[index] = table.payload(touched[start + index]) }
            for call in calls {
                call.accumulator.refresh(GroupRows(payloads: payloads, numbers: touched + start, count: count, offset: call.offset))
            }
        }
        position = 0
    }

    package func next(errors: OperatorErrors) -> DeltaBatch? {
        while let start = position {
            guard start < touchedCount else {
                finishEpoch()
                return nil
            }
            let end = min(touchedCount, start + Limits.batchRowsMax / 2)
            position = end
            if let batch = output(start, end, errors) { return batch }
        }
        return nil
    }

    private func output(_ start: Int, _ end: Int, _ errors: OperatorErrors) -> DeltaBatch? {
        var numbers: [RowNumber] = []
        var payloads: [UnsafeMutableRawPointer] = []
        var weights: [Int64] = []
        numbers.reserveCapacity(2 * (end - start))
        payloads.reserveCapacity(2 * (end - start))
        weights.reserveCapacity(2 * (end - start))
        var hasRetraction = false
        for index in start..<end {
            let old = saved + index * payloadBytes
            let new = table.payload(touched[index])
            let lived = old.load(fromByteOffset: Self.weightOffset, as: Int64.self) > 0
            let lives = new.load(fromByteOffset: Self.weightOffset, as: Int64.self) > 0
            if lived, lives, same(old, new) { continue }
            if lived {
                numbers.append(touched[index])
                payloads.append(old)
                weights.append(-1)
                hasRetraction = true
            }
            if lives {
                numbers.append(touched[index])
                payloads.append(new)
                weights.append(1)
            }
        }
        guard !numbers.isEmpty else { return nil }
        var columns = table.gather(rows: numbers, count: numbers.count)
        let keyCount = columns.count
        var failures: [(Int, SQLError, Int)] = []
        for (number, call) in calls.enumerated() {
            var failed: [(Int, SQLError)] = []
            columns.append(call.accumulator.output(payloads, offset: call.offset, errors: &failed))
            failures += failed.map { ($0.0, $0.1, number) }
        }
        if !failures.isEmpty {
            let keyBatch = DeltaBatch(columns: Array(columns.prefix(keyCount)), count: numbers.count, weights: Weights(weights))
            for (row, error, _) in failures { errors.report(error, operatorName: "aggregate", batch: keyBatch, row: row) }
        }
        let batch = DeltaBatch(columns: columns, count: numbers.count, weights: hasRetraction ? Weights(weights) : nil)
        return hasRetraction ? withoutEqualPairs(batch, numbers, keyCount) : batch
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
            kept.rows[kept.count] = UInt32(truncatingIfNeeded: row)
            kept.count += 1
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
        for distinct in distincts { distinct.values.removeEmptied() }
        for index in 0..<touchedCount {
            let number = touched[index]
            let payload = table.payload(number)
            payload.storeBytes(of: 0, as: UInt32.self)
            guard payload.load(fromByteOffset: Self.weightOffset, as: Int64.self) == 0 else { continue }
            for call in calls { call.accumulator.release(number, payload + call.offset) }
            table.remove(number)
        }
        touchedCount = 0
        position = nil
        table.compactHeapIfWorthwhile()
        for call in calls where call.accumulator.wantsCompaction {
            var states: [UnsafeMutableRawPointer] = []
            table.forEachRow { states.append(table.payload($0) + call.offset) }
            call.accumulator.compact(states)
        }
    }

    package func checkInvariants() -> [String] {
        var broken = table.checkInvariants()
        table.forEachRow { number in
            let weight = table.payload(number).load(fromByteOffset: Self.weightOffset, as: Int64.self)
            if weight <= 0 { broken.append("group \(number) has the weight \(weight)") }
        }
        if touchedCount > 0 { broken.append("\(touchedCount) groups are still marked as touched") }
        return broken + distincts.flatMap { $0.values.checkInvariants() }
    }

    package var stateByteCount: Int {
        table.byteCount + touchedCapacity * (payloadBytes + 4) + calls.reduce(0) { $0 + $1.accumulator.outsideByteCount }
            + distincts.reduce(0) { $0 + $1.values.byteCount }
    }
}
