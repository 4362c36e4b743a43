package import MillBase
package import MillColumnar
package import MillExpr
package import MillPlan
package import MillState
package import MillStore

/// Equality joins of every kind, both inputs kept, with a residual condition as part of what counts as a match.
///
/// A delta of one side is joined with what the other side holds, then is part of its own side: over an epoch every pair is made
/// exactly once, with the product of the weights. Rows that must also appear without a match (outer, semi and anti joins) keep
/// `matches`, the sum of the weights of the rows they match. With [c] being 1 when c holds and 0 otherwise, such a row of weight
/// w is in the output with weight w * [matches = 0] (padded or anti) or w * [matches != 0] (semi). Whenever w or matches
/// changes, the change of that product goes out, so the sum is right whatever the order, and also while counts are below zero in the middle of an
/// epoch.
///
/// `next` makes at most a batch of candidate pairs, then the rows whose padding changed through them.
package final class HashJoinOperator: Operator {
    private let kind: JoinKind
    private let sides: [JoinSide]
    private let residual: RowExpression?
    private let schemas: [[SQLType]]
    private let emitsPairs: Bool
    /// Per side, whether its rows also appear by whether they match.
    private let tracks: [Bool]
    private let closing: JoinClosing?

    // The batch in work: which side it came from, and how far it is.
    private var batch: DeltaBatch?
    private var own = 0
    private var batchRow = 0
    /// The next candidate of `batchRow` + 1; 0: the chain is done.
    private var candidate: UInt32 = 0
    private let firsts = UnsafeMutablePointer<UInt32>.allocate(capacity: Limits.batchRowsMax)
    private var isNew = [Bool](repeating: false, count: Limits.batchRowsMax)
    private var unmatched: [UnmatchedChanges]

    private var pairRows = Selection(capacity: Limits.batchRowsMax)
    private let pairNumbers = UnsafeMutablePointer<RowNumber>.allocate(capacity: Limits.batchRowsMax)

    /// Rows of one side to give out without a partner, with the change of their weight in the output.
    private struct UnmatchedChanges {
        var numbers: [RowNumber] = []
        var weights: [Int64] = []
    }

    package init(
        _ kind: JoinKind, left: StreamNode, right: StreamNode, leftKeys: [Int], rightKeys: [Int], residual: BoundExpression?,
        closing: JoinClosing? = nil
    ) throws(SQLError) {
        self.closing = closing
        self.kind = kind
        self.residual = try residual.map { (residual) throws(SQLError) in
            RowExpression(try CompiledExpression(residual), operatorName: "join condition")
        }
        schemas = [left.schema.map(\.type), right.schema.map(\.type)]
        let tracks =
            switch kind {
            case .inner: [false, false]
            case .left, .semi, .anti: [true, false]
            case .right: [false, true]
            case .full: [true, true]
            }
        self.tracks = tracks
        func side(_ number: Int, _ input: StreamNode, _ keys: [Int]) -> JoinSide {
            JoinSide(
                columns: input.schema.map(\.type), keyColumns: keys, isAppendOnly: input.properties.appendOnly,
                closing: closing?.side(number, keys, keepsBroken: tracks[number]))
        }
        sides = [side(0, left, leftKeys), side(1, right, rightKeys)]
        emitsPairs = kind != .semi && kind != .anti
        unmatched = [UnmatchedChanges(), UnmatchedChanges()]
    }

    deinit {
        firsts.deallocate()
        pairNumbers.deallocate()
    }

    package func push(_ batch: DeltaBatch, input: Int, errors: OperatorErrors) {
        precondition(batch.count <= Limits.batchRowsMax, "a batch has at most \(Limits.batchRowsMax) rows")
        own = input
        batchRow = 0
        candidate = 0
        guard let onTime = sides[input].onTime(batch),
            let kept = tracks[input] ? onTime : withWholeKeys(onTime, sides[input].keyColumns + (closing?.timeColumns(input) ?? []))
        else { return }
        self.batch = kept
        sides[own].add(kept)
        sides[1 - own].firsts(of: kept, keyColumns: sides[own].keyColumns, into: firsts)
        if tracks[own] { sides[own].markNew(&isNew, count: kept.count) }
        candidate = firsts[0]
    }

    /// Without the rows that can match nothing; nil when none is left.
    private func withWholeKeys(_ batch: DeltaBatch, _ keys: [Int]) -> DeltaBatch? {
        guard keys.contains(where: { batch.columns[$0].validity != nil }) else { return batch.count > 0 ? batch : nil }
        var whole = Selection(capacity: batch.count)
        for row in 0..<batch.count where !keys.contains(where: { batch.columns[$0].isNull(row) }) {
            whole.append(row)
        }
        if whole.count == batch.count { return batch }
        return whole.count == 0 ? nil : batch.gather(whole.rows, count: whole.count)
    }

    package func next(errors: OperatorErrors) -> DeltaBatch? {
        while let batch {
            for side in 0...1 where !unmatched[side].numbers.isEmpty { return takeUnmatched(side) }
            guard batchRow < batch.count else {
                self.batch = nil
                return nil
            }
            if let pairs = makePairs(batch, errors) { return pairs }
        }
        return nil
    }

    // MARK: Pairs

    /// Collects candidates up to a batch, keeps those that pass the residual, notes what changes for unmatched rows.
    private func makePairs(_ batch: DeltaBatch, _ errors: OperatorErrors) -> DeltaBatch? {
        let firstRow = batchRow
        collectPairs(batch.count, sides[1 - own])
        let result = pairRows.count > 0 ? joined(batch, errors) : nil
        if tracks[own] { noteOwnUnmatched(batch, from: firstRow, to: batchRow) }
        return result
    }

    /// The next candidates of the batch's rows, at most a batch of them.
    private func collectPairs(_ rowCount: Int, _ other: JoinSide) {
        var (row, candidate, count) = (batchRow, candidate, 0)
        let rows = pairRows.rows
        while row < rowCount, count < Limits.batchRowsMax {
            if candidate == 0 {
                row &+= 1
                if row < rowCount { candidate = firsts[row] }
                continue
            }
            rows[count] = UInt32(truncatingIfNeeded: row)
            pairNumbers[count] = candidate &- 1
            count &+= 1
            candidate = other.next(after: candidate &- 1)
        }
        (batchRow, self.candidate, pairRows.count) = (row, candidate, count)
    }

    private func joined(_ batch: DeltaBatch, _ errors: OperatorErrors) -> DeltaBatch? {
        let other = sides[1 - own]
        var columns: [Column] = []
        let weights = Weights(count: pairRows.count)
        var plain = true
        var uncountable: Int?
        let (rows, target) = (pairRows.rows, weights.values)
        for pair in 0..<pairRows.count {
            let (own, met) = (batch.weight(Int(rows[pair])), other.weight(pairNumbers[pair]))
            let (weight, overflow) = own.multipliedReportingOverflow(by: met)
            target[pair] = weight
            plain = plain && weight == 1 && !overflow
            if overflow {
                // The same either way, so that a retraction takes back what was given.
                target[pair] = (own < 0) == (met < 0) ? .max : -.max
                uncountable = pair
            }
        }
        if emitsPairs || residual != nil {
            let ownColumns = batch.columns.map { $0.gather(pairRows.rows, count: pairRows.count) }
            let otherColumns = other.rows.gather(rows: pairNumbers, count: pairRows.count)
            columns = own == 0 ? ownColumns + otherColumns : otherColumns + ownColumns
        }
        let pairs = DeltaBatch(columns: columns, count: pairRows.count, weights: plain ? nil : weights)
        if let uncountable { errors.report(Self.tooManyRows, operatorName: "join", batch: pairs, row: uncountable) }
        guard let residual else {
            if tracks[0] || tracks[1] { for pair in 0..<pairRows.count { noteMatch(batch, pair) } }
            return emitsPairs ? withoutZeros(pairs) : nil
        }
        let passing = Selection(whereTrue: residual.evaluate(pairs, errors))
        if tracks[0] || tracks[1] { for position in 0..<passing.count { noteMatch(batch, Int(passing.rows[position])) } }
        guard emitsPairs, passing.count > 0 else { return nil }
        return withoutZeros(passing.count == pairs.count ? pairs : pairs.gather(passing.rows, count: passing.count))
    }

    private static let tooManyRows = SQLError(.numericValueOutOfRange, "a join has a row more often than a bigint can count")

    private func withoutZeros(_ batch: DeltaBatch) -> DeltaBatch? {
        guard let weights = batch.weights else { return batch }
        var kept = Selection(capacity: batch.count)
        for row in 0..<batch.count where weights.values[row] != 0 {
            kept.append(row)
        }
        if kept.count == batch.count { return batch }
        return kept.count == 0 ? nil : batch.gather(kept.rows, count: kept.count)
    }

    // MARK: Rows that appear by whether they match

    private func noteMatch(_ batch: DeltaBatch, _ pair: Int) {
        let row = Int(pairRows.rows[pair])
        let number = pairNumbers[pair]
        // A row that was there already has its matches; only a new one counts them now.
        if tracks[own], isNew[row] { sides[own].addMatches(sides[1 - own].weight(number), to: sides[own].numbers[row]) }
        guard tracks[1 - own] else { return }
        let before = sides[1 - own].matches(number)
        sides[1 - own].addMatches(batch.weight(row), to: number)
        note(1 - own, number, (appears(before &+ batch.weight(row)) - appears(before)) &* sides[1 - own].weight(number))
    }

    /// The batch's own rows whose candidates have all been seen.
    private func noteOwnUnmatched(_ batch: DeltaBatch, from first: Int, to end: Int) {
        for row in first..<min(end, batch.count) {
            let number = sides[own].numbers[row]
            note(own, number, appears(sides[own].matches(number)) &* batch.weight(row))
        }
    }

    @inline(__always) private func appears(_ matches: Int64) -> Int64 { (matches != 0) == (kind == .semi) ? 1 : 0 }

    @inline(__always) private func note(_ side: Int, _ number: RowNumber, _ weight: Int64) {
        guard weight != 0 else { return }
        unmatched[side].numbers.append(number)
        unmatched[side].weights.append(weight)
    }

    /// Up to a batch of rows without a partner, padded with NULLs for an outer join.
    private func takeUnmatched(_ side: Int) -> DeltaBatch {
        let count = min(unmatched[side].numbers.count, Limits.batchRowsMax)
        let numbers = Array(unmatched[side].numbers.suffix(count))
        let weights = Array(unmatched[side].weights.suffix(count))
        unmatched[side].numbers.removeLast(count)
        unmatched[side].weights.removeLast(count)
        let columns = sides[side].rows.gather(rows: numbers, count: count)
        guard emitsPairs else { return DeltaBatch(columns: columns, count: count, weights: Weights(weights)) }
        let padding = schemas[1 - side].map { Column.constant(.null, $0, count: count) }
        return DeltaBatch(columns: side == 0 ? columns + padding : padding + columns, count: count, weights: Weights(weights))
    }

    package func closeEpoch(errors: OperatorErrors) {
        for side in sides {
            side.removeEmptied()
            side.removeClosed()
        }
    }

    package func openEpoch(_ watermarks: [WatermarkStep]) {
        guard let closing else { return }
        for (side, step) in closing.steps(watermarks).enumerated() { sides[side].openEpoch(step) }
    }

    package func adopt(from other: HashJoinOperator, _ share: StateShare) throws(StateCorruption) {
        for side in 0...1 { try sides[side].adopt(from: other.sides[side], share, by: share.inputs[side]) }
    }

    package func finishRestore() { for side in sides { side.finishRestore() } }

    package func checkInvariants() -> [String] { sides.flatMap { $0.checkInvariants() } }

    package var tables: [any DurableTable] { sides.flatMap { $0.tables } }

    package var stateByteCount: Int { sides.reduce(0) { $0 + $1.byteCount } }
}
