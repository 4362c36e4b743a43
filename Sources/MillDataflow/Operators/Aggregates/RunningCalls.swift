import MillBase
import MillColumnar
import MillExpr
import MillState

/// The calls of one aggregate made ready: arguments and filters compiled, and where each accumulator lies in a group's payload.
///
/// What an operator of groups has in common with another, whatever makes its groups. Conditions of FILTER are evaluated once for all
/// calls, and the distinct values of a column are kept once.
final class RunningCalls {
    private let calls: [Call]
    /// The FILTER conditions of the calls, each once.
    private let filters: [RowExpression]
    /// The calls with DISTINCT, those over one column together.
    private let distincts: [Distinct]
    /// Bytes of all accumulators, which lie one after the other.
    let byteCount: Int

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
    ///   - offset: where the first accumulator lies in a group's payload.
    ///   - closes: groups may go before their rows are taken back.
    init(_ calls: [AggregateCall], isAppendOnly: Bool, offset first: Int, closes: Bool = false) throws(SQLError) {
        var offset = first
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
        distincts = Self.distincts(calls, built, closes)
        byteCount = offset - first
    }

    /// Calls over one column share its values. A computed argument may fail, and does so on the rows that its own call counts: it
    /// stays by itself.
    private static func distincts(_ calls: [AggregateCall], _ built: [Call], _ closes: Bool) -> [Distinct] {
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
                Distinct(argument: $0, values: DistinctFilter(group.argument.type, callCount: group.calls.count, closes: closes), calls: group.calls)
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
                ? AppendOnlyExtremumAccumulator(type: type, isMax: isMax)
                : OrderedExtremumAccumulator(type: type, kind: isMax ? .max : .min)
        case .singleValue: return OrderedExtremumAccumulator(type: type, kind: .single)
        case .boolAnd: return BooleanAccumulator(isAnd: true)
        case .boolOr: return BooleanAccumulator(isAnd: false)
        }
    }

    /// What merges two groups, one for each call with its offset; nil when a call cannot be merged.
    var mergers: [(accumulator: any MergeableAccumulator, offset: Int)]? {
        var mergers: [(accumulator: any MergeableAccumulator, offset: Int)] = []
        for call in calls {
            guard !call.isDistinct, let accumulator = call.accumulator as? any MergeableAccumulator else { return nil }
            mergers.append((accumulator, call.offset))
        }
        return mergers
    }

    // MARK: Input

    /// Adds the rows of a batch to their groups.
    func update(_ groups: GroupRows, _ batch: DeltaBatch, _ errors: OperatorErrors) {
        let weights = batch.weights.map { UnsafePointer($0.values) }
        let filtered = filters.map { counted(batch, weights, by: $0, errors) }
        for call in calls where !call.isDistinct {
            // The argument is only evaluated on rows that count, so that its errors are those of counted rows.
            let source = call.filter.map { DeltaBatch(columns: batch.columns, count: batch.count, weights: filtered[$0]) } ?? batch
            withExtendedLifetime(source) {
                let values = call.argument?.evaluate(source, errors)
                call.accumulator.update(groups.at(call.offset), values: values, weights: source.weights.map { UnsafePointer($0.values) })
            }
        }
        for distinct in distincts { update(distinct, groups, batch, filtered, errors) }
    }

    /// The weights of the rows that pass a FILTER, 0 for the others.
    private func counted(_ batch: DeltaBatch, _ weights: UnsafePointer<Int64>?, by filter: RowExpression, _ errors: OperatorErrors)
        -> Weights
    {
        let passes = filter.evaluate(batch, errors)
        // A missing answer has a zero byte.
        let flags = UnsafePointer(passes.values(UInt8.self))
        let result = Weights(count: batch.count)
        let target = result.values
        for index in 0..<batch.count { target[index] = flags[index] == 0 ? 0 : weights?[index] ?? 1 }
        return result
    }

    private func update(_ distinct: Distinct, _ groups: GroupRows, _ batch: DeltaBatch, _ filtered: [Weights], _ errors: OperatorErrors) {
        let own = distinct.calls.map { calls[$0].filter.map { filtered[$0] } ?? batch.weights }
        let source = own.count == 1 && own[0] != nil ? DeltaBatch(columns: batch.columns, count: batch.count, weights: own[0]) : batch
        let values = distinct.argument.evaluate(source, errors)
        let changes = own.map { Weights(copying: $0, count: batch.count) }
        distinct.values.apply(groups, values: values, weights: changes)
        let counted = distinct.calls.contains { calls[$0].accumulator.readsValues } ? distinct.values.countedValues(groups) : nil
        withExtendedLifetime(changes) {
            for (place, number) in distinct.calls.enumerated() {
                calls[number].accumulator.update(groups.at(calls[number].offset), values: counted, weights: changes[place].values)
            }
        }
    }

    // MARK: Output

    /// Brings the cached outputs up to date for groups that changed.
    func refresh(_ groups: GroupRows) {
        for call in calls { call.accumulator.refresh(groups.at(call.offset)) }
    }

    /// One output column per call; what cannot be expressed is NULL, and reported with the row of `keys`.
    func output(_ payloads: [UnsafeMutableRawPointer], keys: [Column], weights: [Int64], _ errors: OperatorErrors) -> [Column] {
        var columns: [Column] = []
        var failed: [(Int, SQLError)] = []
        for call in calls { columns.append(call.accumulator.output(payloads, offset: call.offset, errors: &failed)) }
        if !failed.isEmpty {
            let keyBatch = DeltaBatch(columns: keys, count: payloads.count, weights: Weights(weights))
            for (row, error) in failed { errors.report(error, operatorName: "aggregate", batch: keyBatch, row: row) }
        }
        return columns
    }

    // MARK: State

    /// At the end of an epoch, before the numbers of dead groups are free for others.
    func removeEmptied() {
        for distinct in distincts { distinct.values.removeEmptied() }
    }

    /// The group is gone, or its state is part of another's.
    func release(_ group: UInt32, _ payload: UnsafeMutableRawPointer) {
        for call in calls { call.accumulator.release(group, payload + call.offset) }
        for distinct in distincts { distinct.values.release(group) }
    }

    /// Rewrites what the accumulators hold outside the groups, where that is worthwhile. Between epochs only.
    func compact(_ groups: StateTable) {
        for call in calls where call.accumulator.wantsCompaction {
            var states: [UnsafeMutableRawPointer] = []
            // The rows stay what they are; only the memory of their strings is another.
            groups.settle()
            groups.forEachRow { states.append(groups.preparedPayload($0) + call.offset) }
            call.accumulator.compact(states)
        }
    }

    /// Where in a group's payload strings lie.
    var stringOffsets: [Int] { calls.compactMap { call in call.accumulator.stringOffset.map { call.offset + $0 } } }

    /// What is kept outside the groups, always in the same order.
    var tables: [any DurableTable] { calls.flatMap { $0.accumulator.tables } + distincts.map(\.values.table) }

    /// After all tables have come back: the groups' strings are kept by who may replace them.
    func finishRestore(_ groups: StateTable) {
        for call in calls { call.accumulator.finishRestore(groups.heap) }
        for distinct in distincts { distinct.values.list() }
    }

    /// Takes over what the same calls elsewhere keep of groups outside their payloads, but for distinct values.
    func adopt(_ groups: [GroupMove], from other: RunningCalls) {
        for (call, twin) in zip(calls, other.calls) { call.accumulator.adopt(groups.map { $0.at(call.offset) }, fromTwin: twin.accumulator) }
    }

    /// Takes over the distinct values of groups that have come from elsewhere.
    func adoptDistincts(_ groups: MovedRows, from other: RunningCalls) {
        for (distinct, twin) in zip(distincts, other.distincts) { distinct.values.adopt(groups, from: twin.values) }
    }

    func checkInvariants() -> [String] { distincts.flatMap { $0.values.checkInvariants() } }

    /// Bytes of state outside the groups' payloads.
    var outsideByteCount: Int {
        calls.reduce(0) { $0 + $1.accumulator.outsideByteCount } + distincts.reduce(0) { $0 + $1.values.byteCount }
    }
}
