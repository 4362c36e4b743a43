import MillColumnar

/// A batch's time column in microseconds, for operators that put rows into windows.
struct EventTimes {
    /// About 73,000 years: times farther from 1970 count as infinite.
    static let bound = Int64.max / 4

    private let column: Column
    private let isDate: Bool

    init(_ column: Column) {
        self.column = column
        isDate = column.type == .date
    }

    /// The time of a row; nil when missing, infinite or too near the ends of time for a window to be expressed.
    @inline(__always) func micros(_ row: Int) -> Int64? {
        if column.isNull(row) { return nil }
        let value: Int64
        if isDate {
            let (product, overflow) = Int64(column.values(Int32.self)[row]).multipliedReportingOverflow(by: 86_400_000_000)
            if overflow { return nil }
            value = product
        } else {
            value = column.values(Int64.self)[row]
        }
        return value > -Self.bound && value < Self.bound ? value : nil
    }

    /// Rows by whether their time is before some moment.
    struct Split: ~Copyable {
        var before: Selection
        /// Those without a finite time among them.
        var others: Selection
    }

    /// nil when no row is before, as is usual.
    func split(before moment: Int64) -> Split? {
        var isAny = false
        for row in 0..<column.count { if let time = micros(row), time < moment { isAny = true } }
        guard isAny else { return nil }
        var split = Split(before: Selection(capacity: column.count), others: Selection(capacity: column.count))
        for row in 0..<column.count {
            if let time = micros(row), time < moment { split.before.append(row) } else { split.others.append(row) }
        }
        return split
    }
}
