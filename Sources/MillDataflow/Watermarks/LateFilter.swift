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
        guard let passed, let split = EventTimes(batch.columns[column]).split(before: passed) else { return batch }
        late.add(batch, split.before, schema: schema, operatorName: operatorName, watermark: passed)
        return split.others.count == 0 ? nil : batch.gather(split.others.rows, count: split.others.count)
    }
}
