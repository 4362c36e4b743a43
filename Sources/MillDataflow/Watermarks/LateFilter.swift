import MillColumnar

/// Keeps rows out of an operator that has closed their time, and tells `<job>_late`.
struct LateFilter {
    /// The input column whose watermark closes.
    let column: Int
    let schema: Schema
    let operatorName: String
    let late: LateRows

    /// The rows at or after `passed`; nil when none is. A row without a finite time is never late.
    func onTime(_ batch: DeltaBatch, _ passed: Int64?) -> DeltaBatch? {
        guard let passed else { return batch }
        let times = EventTimes(batch.columns[column])
        var isLate = false
        for row in 0..<batch.count { if let time = times.micros(row), time < passed { isLate = true } }
        guard isLate else { return batch }
        var lateRows = Selection(capacity: batch.count)
        var kept = Selection(capacity: batch.count)
        for row in 0..<batch.count {
            if let time = times.micros(row), time < passed {
                lateRows.rows[lateRows.count] = UInt32(truncatingIfNeeded: row)
                lateRows.count += 1
            } else {
                kept.rows[kept.count] = UInt32(truncatingIfNeeded: row)
                kept.count += 1
            }
        }
        late.add(batch, lateRows, schema: schema, operatorName: operatorName, watermark: passed)
        return kept.count == 0 ? nil : batch.gather(kept.rows, count: kept.count)
    }
}
