package import MillColumnar

/// SESSION: each row once, with the bounds of its session appended as `window_start` and `window_end`. A row without a time
/// appears with NULL for both.
package struct LogicalSessionWindow: Hashable, Sendable {
    package var input: LogicalPlan
    package var window: SessionWindow

    package init(input: LogicalPlan, window: SessionWindow) {
        self.input = input
        self.window = window
    }

    package var schema: Schema { window.schema(over: input.schema) }
}

/// What makes rows one session: equal partition columns, and times in a chain whose neighbours are at most the gap apart.
///
/// Its start is the first time, its end the last time plus the gap. This is Flink's rule: a row at `t` opens [t, t + gap], and what
/// overlaps or touches is merged (`TimeWindow.intersects`), so two rows exactly one gap apart are in one session though the end is
/// exclusive.
package struct SessionWindow: Hashable, Sendable, Codable {
    /// The input column with the time: date, timestamp or timestamptz.
    package var timeColumn: Int
    /// timestamp, or timestamptz when the time column is one.
    package var boundType: SQLType
    /// Above 0, below `gapMicrosBound`.
    package var gapMicros: Int64
    /// Columns of the input, each once. None: one partition of all rows.
    package var partition: [Int]

    /// About 73,000 years, so that every bound can be computed in 64 bits.
    package static let gapMicrosBound = Int64.max / 4

    package init(timeColumn: Int, boundType: SQLType, gapMicros: Int64, partition: [Int]) {
        self.timeColumn = timeColumn
        self.boundType = boundType
        self.gapMicros = gapMicros
        self.partition = partition
    }

    package func schema(over input: Schema) -> Schema { input + [Field("window_start", boundType), Field("window_end", boundType)] }
}
