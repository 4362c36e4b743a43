import MillBase
import MillColumnar
import MillState
import MillStore

/// Which rows of a table close by the watermark of one of their columns, and when: groups of an aggregate, keys or rows of a join's side, partitions or
/// rows of a rank.
///
/// An epoch that opens with the watermark W takes rows of times from the watermark before on, and at its end gives up the rows of times
/// before W (`StreamNode.watermarks`). A row without a finite time never closes.
package struct KeyClosing {
    var step = WatermarkStep()
    let emitsOnClose: Bool
    private let filter: LateFilter
    /// The closing column in the table.
    private let key: Int
    private var index = ClosingIndex()
    /// Those that close in this epoch, and how many of them are given out.
    private var closed: [RowNumber] = []
    private var position = 0

    init(filter: LateFilter, key: Int, emitsOnClose: Bool = false) {
        self.filter = filter
        self.key = key
        self.emitsOnClose = emitsOnClose
    }

    var byteCount: Int { index.byteCount }

    func onTime(_ batch: DeltaBatch) -> DeltaBatch? { filter.onTime(batch, step.passed) }

    /// Rows have been made for some rows of a batch.
    /// - Parameters:
    ///   - columns: of the table, in the batch.
    ///   - rows: for each row of the batch the table's.
    mutating func note(_ inserted: borrowing Selection, of columns: [Column], _ rows: UnsafePointer<RowNumber>) {
        let times = EventTimes(columns[key])
        for position in 0..<inserted.count {
            let row = Int(inserted.rows[position])
            if let time = times.micros(row) { index.add(rows[row], at: time) }
        }
    }

    /// Finds what closes now: rows in the index, which may have gone or become others.
    mutating func close(_ table: StateTable, where lives: (RowNumber) -> Bool = { _ in true }) {
        guard let now = step.now else { return }
        let candidates = index.take(before: now).filter { table.storedHash($0) != 0 && lives($0) }
        Self.forEachTime(of: candidates, table, key) { number, time in if time < now { closed.append(number) } }
    }

    /// The next ones to give out.
    mutating func nextPart() -> [RowNumber]? {
        guard position < closed.count else { return nil }
        defer { position = min(position + Limits.batchRowsMax, closed.count) }
        return Array(closed[position..<min(position + Limits.batchRowsMax, closed.count)])
    }

    mutating func removeClosed(_ remove: (RowNumber) -> Void) {
        for number in closed { remove(number) }
        closed.removeAll(keepingCapacity: closed.count < 1 << 16)
        position = 0
    }

    /// Rows that come and go without their time being closed leave places in the index.
    mutating func rebuildIfWorthwhile(_ table: StateTable) {
        if index.count > 2 * table.count + 65_536 { rebuild(table) }
    }

    mutating func rebuild(_ table: StateTable) {
        index.removeAll()
        var numbers: [RowNumber] = []
        table.forEachRow { numbers.append($0) }
        Self.forEachTime(of: numbers, table, key) { number, time in index.add(number, at: time) }
    }

    private static func forEachTime(of numbers: [RowNumber], _ table: StateTable, _ key: Int, _ body: (RowNumber, Int64) -> Void) {
        for start in stride(from: 0, to: numbers.count, by: Limits.batchRowsMax) {
            let part = Array(numbers[start..<min(start + Limits.batchRowsMax, numbers.count)])
            let times = EventTimes(table.gather(key, rows: part, count: part.count))
            for (place, number) in part.enumerated() { if let time = times.micros(place) { body(number, time) } }
        }
    }
}
