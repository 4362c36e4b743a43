import MillBase
import MillColumnar
import MillPlan
import MillState
import MillStore

/// One input of a join, kept: its rows as a multiset, found by join key.
///
/// `rows` maps each distinct row to its weight; rows of one key are linked, and `keys` finds the first of them. Payloads:
/// ```
/// rows:  0  8  weight            keys:  0  4  first row's number + 1
///        8  8  matches: sum of          4  4  unused
///              the weights of the
///              other side's rows
///              that it matches
///        16 4  next row + 1
///        20 4  previous row + 1; 0 throughout when no row can leave
///        24 4  its key's number
/// ```
/// With watermarks keys go with all their rows, or rows one by one, once their time is closed (`JoinClosing`).
///
/// Rows with a NULL in a join key match nothing; an outer join still keeps them, under no key, to give them back padded.
final class JoinSide {
    let rows: StateTable
    let keys: StateTable
    let keyColumns: [Int]
    private var emptied: [RowNumber] = []
    private var closing: KeyClosing?
    /// Whether single rows close, not keys.
    private let closesRows: Bool

    private let rowHashes = UnsafeMutablePointer<UInt64>.allocate(capacity: Limits.batchRowsMax)
    private let keyHashes = UnsafeMutablePointer<UInt64>.allocate(capacity: Limits.batchRowsMax)
    /// After `add`: the row of each batch row.
    let numbers = UnsafeMutablePointer<RowNumber>.allocate(capacity: Limits.batchRowsMax)
    private let keyNumbers = UnsafeMutablePointer<RowNumber>.allocate(capacity: Limits.batchRowsMax)
    private var inserted = Selection(capacity: Limits.batchRowsMax)

    static let weightOffset = 0
    static let matchesOffset = 8
    private static let nextOffset = 16
    private static let previousOffset = 20
    private static let keyOffset = 24

    /// Whether rows are never taken back and so need no directory: a duplicate is just another row.
    private let isAppendOnly: Bool

    init(columns: [SQLType], keyColumns: [Int], isAppendOnly: Bool, closing: (keys: KeyClosing, ofRows: Bool)?) {
        self.closing = closing?.keys
        closesRows = closing?.ofRows ?? false
        rows = StateTable(columns: columns, payloadBytes: 32, equality: .representation, indexed: !isAppendOnly)
        keys = StateTable(columns: keyColumns.map { columns[$0] }, payloadBytes: 8)
        self.keyColumns = keyColumns
        self.isAppendOnly = isAppendOnly
    }

    deinit {
        rowHashes.deallocate()
        keyHashes.deallocate()
        numbers.deallocate()
        keyNumbers.deallocate()
    }

    var tables: [any DurableTable] { [rows, keys] }

    var byteCount: Int { rows.byteCount + keys.byteCount }

    /// Adds the weights of a batch of at most `Limits.batchRowsMax` rows; `numbers` then gives each batch row's row.
    func add(_ batch: DeltaBatch) {
        let count = batch.count
        if isAppendOnly {
            rowHashes.update(repeating: 1, count: count)
            rows.append(batch.columns, hashes: rowHashes, count: count, rows: numbers)
            inserted.count = count
            for index in 0..<count { inserted.rows[index] = UInt32(truncatingIfNeeded: index) }
        } else {
            RowHash.hash(batch.columns, count: count, into: rowHashes)
            rows.findOrInsert(batch.columns, hashes: rowHashes, count: count, rows: numbers, inserted: &inserted)
        }
        addWeights(batch.weights.map { UnsafePointer($0.values) }, count: count)
        if inserted.count > 0 { link(batch) }
        if closesRows { closing?.note(inserted, of: batch.columns, numbers) }
    }

    /// Whether a row may leave its key's chain before the others.
    private var unlinks: Bool { !isAppendOnly || closesRows }

    private func addWeights(_ weights: UnsafePointer<Int64>?, count: Int) {
        for index in 0..<count {
            // Where rows only come, they came just now.
            let payload = isAppendOnly ? rows.preparedPayload(numbers[index]) : rows.writablePayload(numbers[index])
            let weight = payload.assumingMemoryBound(to: Int64.self)
            weight.pointee &+= weights?[index] ?? 1
            if weight.pointee == 0 { emptied.append(numbers[index]) }
        }
    }

    /// Puts the rows that are new at the front of their keys' chains.
    private func link(_ batch: DeltaBatch) {
        let keyed = keyColumns.map { batch.columns[$0] }
        // Only rows that are new, and have a whole key.
        let mayBeNull = keyed.contains { $0.validity != nil }
        var fresh = Selection(capacity: inserted.count)
        for position in 0..<inserted.count {
            let row = Int(inserted.rows[position])
            if !mayBeNull || !keyed.contains(where: { $0.isNull(row) }) {
                fresh.rows[fresh.count] = inserted.rows[position]
                fresh.count &+= 1
            }
        }
        guard fresh.count > 0 else { return }
        let columns = fresh.count == batch.count ? keyed : keyed.map { $0.gather(fresh.rows, count: fresh.count) }
        RowHash.hash(columns, count: fresh.count, into: keyHashes)
        var newKeys = Selection(capacity: fresh.count)
        keys.findOrInsert(columns, hashes: keyHashes, count: fresh.count, rows: keyNumbers, inserted: &newKeys)
        if !closesRows { closing?.note(newKeys, of: columns, keyNumbers) }
        for position in 0..<fresh.count {
            let number = numbers[Int(fresh.rows[position])]
            let key = keyNumbers[position]
            let head = keys.writablePayload(key).assumingMemoryBound(to: UInt32.self)
            let row = rows.preparedPayload(number)
            let next = head.pointee
            row.storeBytes(of: next, toByteOffset: Self.nextOffset, as: UInt32.self)
            row.storeBytes(of: key + 1, toByteOffset: Self.keyOffset, as: UInt32.self)
            // Only who may leave the chain needs to know what is before it; the row after is likely far away in memory.
            if next != 0, unlinks { rows.writablePayload(next - 1).storeBytes(of: number + 1, toByteOffset: Self.previousOffset, as: UInt32.self) }
            head.pointee = number + 1
        }
    }

    /// The first row + 1 for each row of the other side's batch, 0 where nothing matches.
    func firsts(of batch: DeltaBatch, keyColumns: [Int], into firsts: UnsafeMutablePointer<UInt32>) {
        let columns = keyColumns.map { batch.columns[$0] }
        RowHash.hash(columns, count: batch.count, into: keyHashes)
        keys.find(columns, hashes: keyHashes, count: batch.count, rows: keyNumbers)
        for index in 0..<batch.count {
            firsts[index] = keyNumbers[index] == StateTable.notFound ? 0 : keys.payload(keyNumbers[index]).load(as: UInt32.self)
        }
        // A key that is in part NULL matches nothing, not even its like.
        for column in columns where column.validity != nil {
            for index in 0..<batch.count where column.isNull(index) { firsts[index] = 0 }
        }
    }

    /// After `add`: which of the batch's rows were not there before.
    func markNew(_ isNew: inout [Bool], count: Int) {
        for index in 0..<count { isNew[index] = false }
        for position in 0..<inserted.count { isNew[Int(inserted.rows[position])] = true }
    }

    @inline(__always) func next(after number: RowNumber) -> UInt32 {
        rows.payload(number).load(fromByteOffset: Self.nextOffset, as: UInt32.self)
    }

    @inline(__always) func weight(_ number: RowNumber) -> Int64 { rows.payload(number).load(as: Int64.self) }

    @inline(__always) func matches(_ number: RowNumber) -> Int64 {
        rows.payload(number).load(fromByteOffset: Self.matchesOffset, as: Int64.self)
    }

    @inline(__always) func addMatches(_ weight: Int64, to number: RowNumber) {
        (rows.writablePayload(number) + Self.matchesOffset).assumingMemoryBound(to: Int64.self).pointee &+= weight
    }

    /// Both tables, and that the chains of all keys hold exactly the rows that have a whole key.
    func checkInvariants() -> [String] {
        var broken = rows.checkInvariants() + keys.checkInvariants()
        var linked = 0
        keys.forEachRow { key in
            var place = keys.payload(key).load(as: UInt32.self)
            if place == 0 { broken.append("key \(key) has no row") }
            var previous: UInt32 = 0
            while place != 0, linked <= rows.count {
                linked += 1
                let row = rows.payload(place - 1)
                if unlinks, row.load(fromByteOffset: Self.previousOffset, as: UInt32.self) != previous { broken.append("row \(place - 1) has another before it") }
                if row.load(fromByteOffset: Self.keyOffset, as: UInt32.self) != key + 1 { broken.append("row \(place - 1) is under another key") }
                previous = place
                place = row.load(fromByteOffset: Self.nextOffset, as: UInt32.self)
            }
        }
        var keyed = 0
        rows.forEachRow { number in
            if rows.payload(number).load(fromByteOffset: Self.keyOffset, as: UInt32.self) != 0 { keyed += 1 }
            if weight(number) <= 0 { broken.append("row \(number) has the weight \(weight(number))") }
        }
        if linked != keyed { broken.append("\(linked) linked rows, \(keyed) rows with a key") }
        return broken
    }

    /// At the end of an epoch: frees the rows whose weight is 0, and keys without rows.
    func removeEmptied() {
        for number in emptied {
            guard rows.storedHash(number) != 0, weight(number) == 0 else { continue }
            unlink(number)
            rows.remove(number)
        }
        emptied.removeAll(keepingCapacity: true)
        rows.compactHeapIfWorthwhile()
        keys.compactHeapIfWorthwhile()
    }

    // MARK: Closing

    func openEpoch(_ watermark: WatermarkStep) { closing?.step = watermark }

    /// The rows whose time is not closed yet; nil when there are none.
    func onTime(_ batch: DeltaBatch) -> DeltaBatch? { closing == nil ? batch : closing?.onTime(batch) }

    /// Lets go what is closed; after `removeEmptied`.
    func removeClosed() {
        let table = closesRows ? rows : keys
        closing?.close(table)
        closing?.removeClosed { number in
            if closesRows {
                unlink(number)
                rows.remove(number)
            } else {
                removeKey(number)
            }
        }
        closing?.rebuildIfWorthwhile(table)
    }

    private func removeKey(_ key: RowNumber) {
        var place = keys.payload(key).load(as: UInt32.self)
        while place != 0 {
            let number = place - 1
            place = next(after: number)
            rows.remove(number)
        }
        keys.remove(key)
    }

    func finishRestore() { closing?.rebuild(closesRows ? rows : keys) }

    /// Takes over the rows of another worker's side that are this one's, with the matches that they had: what they matched may be gone.
    func adopt(from other: JoinSide, _ share: StateShare, by distribution: Distribution) throws(StateCorruption) {
        let slice = StateTableSlice(columns: Array(other.rows.layout.columns.indices))
        try share.forEachBatch(of: other.rows, by: distribution) { (theirs) throws(StateCorruption) in
            for batch in slice.batches(of: other.rows, rows: theirs, weightOffset: Self.weightOffset) { add(batch) }
            guard inserted.count == theirs.count else { throw .onSeveralWorkers }
            for (index, row) in theirs.enumerated() { addMatches(other.matches(row), to: numbers[index]) }
        }
    }

    private func unlink(_ number: RowNumber) {
        let row = rows.payload(number)
        let key = row.load(fromByteOffset: Self.keyOffset, as: UInt32.self)
        guard key != 0 else { return }
        let next = row.load(fromByteOffset: Self.nextOffset, as: UInt32.self)
        let previous = row.load(fromByteOffset: Self.previousOffset, as: UInt32.self)
        if next != 0 { rows.writablePayload(next - 1).storeBytes(of: previous, toByteOffset: Self.previousOffset, as: UInt32.self) }
        if previous != 0 {
            rows.writablePayload(previous - 1).storeBytes(of: next, toByteOffset: Self.nextOffset, as: UInt32.self)
        } else if next != 0 {
            keys.writablePayload(key - 1).storeBytes(of: next, as: UInt32.self)
        } else {
            keys.remove(key - 1)
        }
    }
}
