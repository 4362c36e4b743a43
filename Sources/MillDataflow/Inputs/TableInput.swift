package import MillBase
package import MillColumnar
import MillConnectorKit
package import MillPlan
import MillStore

/// Where a table's DML enters its circuit: batches that the conductor put into one epoch.
package final class TableInput {
    package let node: CircuitNode
    private var pending: [DeltaBatch] = []
    private let meter: WatermarkMeter?
    /// Of the watermark expression, over all rows that came here.
    private var greatest: Int64?

    package init(node: CircuitNode, columns: [Int] = [], watermark: SourceWatermark? = nil) throws(SQLError) {
        self.node = node
        meter = try watermark.map { (watermark) throws(SQLError) in try WatermarkMeter(watermark, columns: columns) }
    }

    package func inject(_ batches: [DeltaBatch]) { pending += batches }

    package func emit() {
        for batch in pending {
            if let meter { greatest = later(greatest, meter.greatest(batch)) }
            node.accept(batch, input: 0)
        }
        pending.removeAll()
    }

    /// A table is one split, which all workers may put rows into.
    private static let split = SourceSplit(name: "", topic: "", partition: 0)

    /// Empty when the table has no watermark.
    var progress: [WatermarkKey: [SourceSplit: SplitProgress]] {
        guard meter != nil else { return [:] }
        let value = SplitProgress(greatest: greatest, offset: SplitOffset(0), state: .atEnd)
        return [WatermarkKey(job: node.job, source: node.job): [Self.split: value]]
    }
}
