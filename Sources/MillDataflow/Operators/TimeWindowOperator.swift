import MillBase
package import MillColumnar
package import MillPlan

/// TUMBLE and HOP: each row once for each window that holds it, `window_start` and `window_end` appended; weights stay.
///
/// A row at time t lies in the windows that start at s = floor((t - offset) / slide) * slide + offset - k * slide for
/// k = 0, 1, ... while t < s + size. A row without a finite time appears once, with NULL for both bounds.
package final class TimeWindowOperator: Operator {
    private let window: TimeWindow
    /// Whether every bound of a window around an event's time can be computed in 64 bits.
    private let isExpressible: Bool
    private var input: DeltaBatch?
    /// The row of `input` to go on with, and the start of its next window when it has given some already.
    private var position = 0
    private var nextStart: Int64?

    package init(_ window: TimeWindow) {
        self.window = window
        let spans = [window.sizeMicros, window.slideMicros, window.offsetMicros]
        isExpressible = spans.allSatisfy { $0.magnitude < EventTimes.bound.magnitude }
    }

    package func push(_ batch: DeltaBatch, input: Int, errors: OperatorErrors) {
        self.input = batch
        position = 0
        nextStart = nil
    }

    package func next(errors: OperatorErrors) -> DeltaBatch? {
        guard let input, position < input.count else {
            self.input = nil
            return nil
        }
        return expand(input)
    }

    /// The next windows, a batch at most: a row with more windows than that goes on in the next call.
    private func expand(_ batch: DeltaBatch) -> DeltaBatch {
        let first = position
        // With one window per row at most, the batch that comes in bounds the one that goes out.
        let isSingle = window.sizeMicros <= window.slideMicros
        let capacity = isSingle ? batch.count - first : Limits.batchRowsMax
        var rows = Selection(capacity: capacity)
        let starts = Column(window.boundType, capacity: capacity)
        let ends = Column(window.boundType, capacity: capacity)
        let startValues = starts.values(Int64.self)
        let endValues = ends.values(Int64.self)
        let times = EventTimes(batch.columns[window.timeColumn])
        let (size, slide) = (window.sizeMicros, window.slideMicros)
        var position = position
        var missing: [Int] = []
        var count = 0
        while position < batch.count, count < capacity {
            let row = UInt32(truncatingIfNeeded: position)
            guard isExpressible, let time = times.micros(position) else {
                rows.rows[count] = row
                missing.append(count)
                count += 1
                position += 1
                continue
            }
            var start = nextStart ?? lastStart(time)
            while time - start < size, count < capacity {
                rows.rows[count] = row
                startValues[count] = start
                endValues[count] = start + size
                count += 1
                start -= slide
            }
            if time - start < size {
                nextStart = start
            } else {
                nextStart = nil
                position += 1
            }
        }
        self.position = position
        rows.count = count
        starts.setCount(count)
        ends.setCount(count)
        for row in missing {
            starts.setNull(row)
            ends.setNull(row)
        }
        // One window for every row of the whole batch: the other columns are the same.
        let same = isSingle && first == 0 && count == batch.count
        let base = same ? batch : batch.gather(rows.rows, count: count)
        return DeltaBatch(columns: base.columns + [starts, ends], count: count, weights: base.weights)
    }

    /// The start of the last window that begins at or before a time.
    @inline(__always) private func lastStart(_ time: Int64) -> Int64 {
        let rest = (time - window.offsetMicros) % window.slideMicros
        return time - (rest < 0 ? rest + window.slideMicros : rest)
    }
}
