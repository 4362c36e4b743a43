import MillBase
import MillColumnar
import MillPlan
import MillState

/// How far the output of an epoch is: which noted rows have had their numbers, and what waits to go out.
///
/// Keys are those of the operator's tables, which stay as they are until all is out.
struct RankWalk {
    /// The first noted row that no walk has met.
    var next = 0
    /// The key to go on at; nil when the next walk begins at a noted row.
    var position: UnsafeRawBufferPointer?
    /// The partition walked through, as the first bytes of its keys.
    var partition = UnsafeRawBufferPointer(start: nil, count: 0)
    /// The last row's numbers, with its partition and order key.
    var before = RankNumbers()
    var beforeOrder = UnsafeRawBufferPointer(start: nil, count: 0)

    var changes: [RankChange] = []
    /// Rows that the changes are.
    var rowCount = 0
}

/// Rows to give out: `count` of them with row numbers in sequence from `numbers.row` on, or one if row numbers are not shown.
struct RankChange {
    var row: RowNumber
    var numbers: RankNumbers
    var count: Int64
    var weight: Int64
}

extension RankOperator {
    /// The next rows that changed; nil when there are none left.
    func nextChanges() -> DeltaBatch? {
        guard var walk else { return nil }
        // The operator's copy is let go, so that arrays are changed in place.
        self.walk = nil
        defer { self.walk = walk }
        while walk.rowCount < Limits.batchRowsMax {
            if let position = walk.position {
                goOn(&walk, from: position)
            } else {
                guard walk.next < noted.count else { break }
                begin(&walk, at: noted[walk.next])
            }
        }
        return walk.rowCount == 0 ? nil : batch(&walk)
    }

    /// Begins a walk at a noted row, unless it stands behind the cut and so before no row with numbers.
    private func begin(_ walk: inout RankWalk, at note: RankNote) {
        let key = notedKey(note)
        walk.before = RankNumbers()
        if let before = predecessor(of: key, partitionEnd: note.partitionEnd) {
            walk.before = state(before.place.row).pointee.numbers
            guard walk.before.weight > 0 else {
                walk.next += 1
                if forgets || state(note.row).pointee.weight == 0 { leave(note.row, key) }
                return
            }
            walk.beforeOrder = UnsafeRawBufferPointer(rebasing: before.key[..<Int(before.place.orderEnd)])
        }
        walk.partition = UnsafeRawBufferPointer(rebasing: key[..<note.partitionEnd])
        walk.position = key
    }

    /// Numbers rows from a key on, until the walk ends or there is a batch of changes.
    private func goOn(_ walk: inout RankWalk, from position: UnsafeRawBufferPointer) {
        walk.position = nil
        let partition = walk.partition
        ordered.scan(from: position) { key, payload in
            guard key.count >= partition.count, KeyHead.compare(UnsafeRawBufferPointer(rebasing: key[..<partition.count]), partition) == 0
            else { return false }
            guard walk.rowCount < Limits.batchRowsMax else {
                walk.position = key
                return false
            }
            return visit(key, payload.load(as: RankPlace.self), &walk)
        }
    }

    /// Gives one row its numbers; false when the walk ends with it.
    private func visit(_ key: UnsafeRawBufferPointer, _ place: RankPlace, _ walk: inout RankWalk) -> Bool {
        let state = state(place.row)
        let isNoted = state.pointee.isNoted
        if isNoted { walk.next += 1 }
        let old = state.pointee.numbers
        var new = RankNumbers()
        if state.pointee.weight > 0 {
            let order = UnsafeRawBufferPointer(rebasing: key[..<Int(place.orderEnd)])
            let isPeer = walk.before.weight > 0 && KeyHead.compare(walk.beforeOrder, order) == 0
            walk.before = walk.before.following(weight: state.pointee.weight, isPeer: isPeer)
            walk.beforeOrder = order
            if cut.map({ walk.before[$0.function] <= $0.last }) ?? true { new = walk.before }
        }
        if old != new {
            writableState(place.row).pointee.numbers = new
            give(place.row, old, new, &walk)
        }
        if new.weight == 0, forgets || state.pointee.weight == 0 { leave(place.row, key) }
        return isNoted || old != new
    }

    // MARK: Changes

    /// What changes outside when a row's numbers do: of equal rows with other numbers only these.
    private func give(_ row: RowNumber, _ old: RankNumbers, _ new: RankNumbers, _ walk: inout RankWalk) {
        let gone = visible(old)
        let there = visible(new)
        let isSame = functions.allSatisfy { $0 == .rowNumber || old[$0] == new[$0] }
        if functions.contains(.rowNumber) {
            guard isSame, gone.overlaps(there) else {
                change(row, old, gone, -1, &walk)
                return change(row, new, there, 1, &walk)
            }
            for rest in gone.without(there) { change(row, old, rest, -1, &walk) }
            for rest in there.without(gone) { change(row, new, rest, 1, &walk) }
        } else if isSame {
            append(RankChange(row: row, numbers: new, count: 1, weight: Int64(there.count) - Int64(gone.count)), &walk)
        } else {
            append(RankChange(row: row, numbers: old, count: 1, weight: -Int64(gone.count)), &walk)
            append(RankChange(row: row, numbers: new, count: 1, weight: Int64(there.count)), &walk)
        }
    }

    private func change(_ row: RowNumber, _ numbers: RankNumbers, _ range: Range<Int64>, _ weight: Int64, _ walk: inout RankWalk) {
        var numbers = numbers
        numbers.row = range.lowerBound
        append(RankChange(row: row, numbers: numbers, count: Int64(range.count), weight: weight), &walk)
    }

    private func append(_ change: RankChange, _ walk: inout RankWalk) {
        guard change.count > 0, change.weight != 0 else { return }
        walk.changes.append(change)
        // More than fit one batch count as that many: the walk waits for them either way.
        walk.rowCount += Int(min(change.count, Int64(Limits.batchRowsMax)))
    }

    /// The row numbers under which a row is seen outside.
    private func visible(_ numbers: RankNumbers) -> Range<Int64> {
        let all = numbers.row..<numbers.end
        guard let cut else { return all }
        // The highest row number of all is never reached, so it may be left out.
        let first = min(Int64(cut.offset), .max - 1) + 1
        switch cut.function {
        case .rowNumber: return all.clamped(to: first..<max(first, min(cut.last, .max - 1) + 1))
        case .rank, .denseRank: return numbers[cut.function] >= first ? all : numbers.row..<numbers.row
        }
    }

    /// Takes a batch of rows from the changes.
    private func batch(_ walk: inout RankWalk) -> DeltaBatch {
        var numbers: [RowNumber] = []
        var weights: [Int64] = []
        var columns = functions.map { _ in [Int64]() }
        var taken = 0
        while taken < walk.changes.count, numbers.count < Limits.batchRowsMax {
            let change = walk.changes[taken]
            let count = min(change.count, Int64(Limits.batchRowsMax - numbers.count))
            for copy in 0..<count {
                numbers.append(change.row)
                weights.append(change.weight)
                for (index, function) in functions.enumerated() {
                    columns[index].append(change.numbers[function] + (function == .rowNumber ? copy : 0))
                }
            }
            if count < change.count {
                walk.changes[taken].numbers.row += count
                walk.changes[taken].count -= count
                break
            }
            taken += 1
        }
        walk.changes.removeFirst(taken)
        walk.rowCount = walk.changes.reduce(0) { $0 + Int(min($1.count, Int64(Limits.batchRowsMax))) }
        let values = columns.map { numbers -> Column in
            let column = Column(.int64, uninitialized: numbers.count)
            numbers.withUnsafeBytes { column.data.copyMemory(from: $0.baseAddress.unsafelyUnwrapped, byteCount: $0.count) }
            return column
        }
        let isInsertOnly = weights.allSatisfy { $0 == 1 }
        return DeltaBatch(
            columns: rows.gather(rows: numbers, count: numbers.count) + values, count: numbers.count,
            weights: isInsertOnly ? nil : Weights(weights))
    }
}

extension Range<Int64> {
    /// What of this range lies before and behind another that it overlaps.
    fileprivate func without(_ other: Range) -> [Range] {
        [lowerBound..<Swift.max(lowerBound, other.lowerBound), Swift.min(upperBound, other.upperBound)..<upperBound]
    }
}
