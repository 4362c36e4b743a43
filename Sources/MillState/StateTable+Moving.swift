import MillBase
import MillColumnar

/// Rows on their way from one table to another: of an operator that another number of workers ran to those of now.
extension StateTable {
    /// Calls `body` with the numbers of all live rows, in page order, a batch at a time.
    package func forEachBatch<E: Error>(_ body: ([RowNumber]) throws(E) -> Void) throws(E) {
        var numbers: [RowNumber] = []
        numbers.reserveCapacity(Limits.batchRowsMax)
        for number in 0..<store.pointee.used where storedHash(RowNumber(number)) != 0 {
            numbers.append(RowNumber(number))
            guard numbers.count == Limits.batchRowsMax else { continue }
            try body(numbers)
            numbers.removeAll(keepingCapacity: true)
        }
        if !numbers.isEmpty { try body(numbers) }
    }

    /// Inserts rows as another table of the same layout has them, with their hashes and the operator's part. What that part refers to is
    /// the owner's to put right: numbers of other rows, strings that the operator keeps.
    ///
    /// - Parameter rows: of the other table, a batch at most.
    /// - Returns: the number of each here.
    /// - Throws: when this table has one of them already: several workers had it, which were to have different ones.
    package func adopt(_ rows: [RowNumber], of other: StateTable) throws(StateCorruption) -> [RowNumber] {
        precondition(layout.stride == other.layout.stride, "rows go to a table of the same layout")
        let columns = other.gather(rows: rows, count: rows.count)
        let hashes = rows.map { other.storedHash($0) }
        var numbers = [RowNumber](repeating: 0, count: rows.count)
        if isIndexed {
            var inserted = Selection(capacity: rows.count)
            findOrInsert(columns, hashes: hashes, count: rows.count, rows: &numbers, inserted: &inserted)
            guard inserted.count == rows.count else { throw .onSeveralWorkers }
        } else {
            append(columns, hashes: hashes, count: rows.count, rows: &numbers)
        }
        for (number, row) in zip(numbers, rows) {
            preparedPayload(number).copyMemory(from: other.payload(row), byteCount: layout.stride - layout.payloadOffset)
        }
        return numbers
    }
}

extension StateCorruption {
    /// Found where rows of several workers come together that cannot be equal.
    package static let onSeveralWorkers = StateCorruption("a row that is to be on one worker was on several")
}

/// Where rows of another table are in this one.
package struct MovedRows {
    /// By the row's number there its number here plus 1; 0 for one that is not here.
    private var places: [RowNumber]

    package init(from other: StateTable) { places = Array(repeating: 0, count: other.store.pointee.used) }

    package mutating func note(_ rows: [RowNumber], as numbers: [RowNumber]) {
        for (row, number) in zip(rows, numbers) { places[Int(row)] = number + 1 }
    }

    /// nil for a row that did not come here, or never was.
    package subscript(_ row: RowNumber) -> RowNumber? {
        Int(row) < places.count && places[Int(row)] != 0 ? places[Int(row)] - 1 : nil
    }
}
