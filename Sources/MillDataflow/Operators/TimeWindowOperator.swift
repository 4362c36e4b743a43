import MillBase
package import MillColumnar
package import MillPlan

/// TUMBLE and HOP: each row once for each window that holds it, `window_start` and `window_end` appended; weights stay.
///
/// A row at time t lies in the windows that start at s = floor((t - offset) / slide) * slide + offset - k * slide for
/// k = 0, 1, ... while t < s + size. A row without a finite time appears once, with NULL for both bounds.
package final class TimeWindowOperator: Operator {
    private let window: TimeWindow
    private let windowsPerRowMax: Int
    private var input: DeltaBatch?
    /// The row of `input` to go on with.
    private var position = 0

    package init(_ window: TimeWindow) {
        self.window = window
        windowsPerRowMax = Int((window.sizeMicros + window.slideMicros - 1) / window.slideMicros)
    }

    package func push(_ batch: DeltaBatch, input: Int, errors: OperatorErrors) {
        self.input = batch
        position = 0
    }

    package func next(errors: OperatorErrors) -> DeltaBatch? {
        guard let input, position < input.count else {
            self.input = nil
            return nil
        }
        // A row with more windows than a batch has rows still goes out whole: the bound is on rows per call, softly.
        let rowsPerCall = max(1, Limits.batchRowsMax / windowsPerRowMax)
        let end = min(input.count, position + rowsPerCall)
        defer { position = end }
        return expand(input, from: position, to: end)
    }

    private func expand(_ batch: DeltaBatch, from first: Int, to end: Int) -> DeltaBatch {
        let capacity = (end - first) * windowsPerRowMax
        var rows = Selection(capacity: capacity)
        let starts = Column(window.boundType, capacity: capacity)
        let ends = Column(window.boundType, capacity: capacity)
        let startValues = starts.values(Int64.self)
        let endValues = ends.values(Int64.self)
        let times = batch.columns[window.timeColumn]
        var missing: [Int] = []
        var count = 0
        let slide = window.slideMicros
        for row in first..<end {
            guard let time = micros(times, row) else {
                rows.rows[count] = UInt32(truncatingIfNeeded: row)
                missing.append(count)
                count += 1
                continue
            }
            let shifted = time - window.offsetMicros
            var start = shifted - modulo(shifted, slide) + window.offsetMicros
            while time - start < window.sizeMicros {
                rows.rows[count] = UInt32(truncatingIfNeeded: row)
                startValues[count] = start
                endValues[count] = start + window.sizeMicros
                count += 1
                start -= slide
            }
        }
        rows.count = count
        starts.setCount(count)
        ends.setCount(count)
        for row in missing {
            starts.setNull(row)
            ends.setNull(row)
        }
        // One window per row and the whole batch: the other columns are the same.
        let same = first == 0 && end == batch.count && count == batch.count && windowsPerRowMax == 1
        let base = same ? batch : batch.gather(rows.rows, count: count)
        return DeltaBatch(columns: base.columns + [starts, ends], count: count, weights: base.weights)
    }

    @inline(__always) private func modulo(_ value: Int64, _ divisor: Int64) -> Int64 {
        let rest = value % divisor
        return rest < 0 ? rest + divisor : rest
    }

    /// The time in microseconds, nil when missing, infinite or too near the ends of time for a window to be expressed.
    @inline(__always) private func micros(_ column: Column, _ row: Int) -> Int64? {
        if column.isNull(row) { return nil }
        let value = column.type == .date ? Int64(column.values(Int32.self)[row]) * 86_400_000_000 : column.values(Int64.self)[row]
        let bound = Int64.max / 4
        return value > -bound && value < bound ? value : nil
    }
}
