import MillBase
import MillColumnar
import MillExpr
import MillPlan

/// Evaluates a source's watermark expression on its rows: one kernel call and one loop a batch.
struct WatermarkMeter {
    private let expression: CompiledExpression

    /// - Parameter columns: what the batches have: these columns of the relation, among them those that the expression reads.
    init(_ watermark: SourceWatermark, columns: [Int]) throws(SQLError) {
        expression = try CompiledExpression(watermark.expression.remapped { columns.firstIndex(of: $0) ?? 0 })
    }

    /// The greatest value over the rows that are added, microseconds since 1970. Rows for which there is none, it is infinite or it cannot
    /// be computed do not count; nil when that is all.
    func greatest(_ batch: DeltaBatch) -> Int64? {
        var failed = RowErrors()
        let times = EventTimes(expression.evaluate(batch, errors: &failed))
        var greatest: Int64?
        for row in 0..<batch.count {
            guard let time = times.micros(row), batch.weight(row) > 0 else { continue }
            if time > greatest ?? .min { greatest = time }
        }
        return greatest
    }
}

/// The greater of two times, where nil is none.
func later(_ a: Int64?, _ b: Int64?) -> Int64? {
    guard let a, let b else { return a ?? b }
    return max(a, b)
}
