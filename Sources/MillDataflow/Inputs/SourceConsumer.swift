import MillBase
import MillColumnar
import MillConnectorKit

/// A job's scan node and which columns of the source it takes.
final class SourceConsumer {
    let node: CircuitNode
    let columns: [Int]
    let readsWatermark: Bool
    /// Its job gives rows out in the order in which the split has them, as far as it can.
    let keepsOrder: Bool
    /// Its job goes on from a checkpoint.
    let isRestored: Bool
    /// For each of its columns, the place in the shared decoder's output.
    var places: [Int] = []
    /// While the job is paused: up to where it is to be before it rests, by split; it rests where it stands in one that is not here.
    var pausedAt: [SourceSplit: SplitOffset]?
    /// Tells the pause from others.
    var pause: UInt64?
    /// Its state is not that of the shared offsets, and is to be kept: it was paused and has not joined again.
    var isApart = false

    init(node: CircuitNode, columns: [Int], readsWatermark: Bool, keepsOrder: Bool, isRestored: Bool) {
        self.node = node
        self.columns = columns
        self.readsWatermark = readsWatermark
        self.keepsOrder = keepsOrder
        self.isRestored = isRestored
    }

    var isPaused: Bool { pausedAt != nil }

    func accept(_ batch: DeltaBatch) { node.accept(batch.with(columns: places.map { batch.columns[$0] }), input: 0) }
}

/// One job that does not stand where the shared reader of a split does: it reads the split by itself, up to that one or to where it rests.
final class CatchUp {
    let consumer: SourceConsumer
    let position: SplitPosition
    /// Of the watermark expression, in what the job has read.
    var greatest: Int64?
    private let makeDecoding: () throws(SQLError) -> Decoding
    private var made: Decoding?

    /// The decoder gives the consumer's columns, then others that the watermark needs.
    struct Decoding {
        var decoder: any Decoder
        var meter: WatermarkMeter?
    }

    init(_ consumer: SourceConsumer, _ position: SplitPosition, _ makeDecoding: @escaping () throws(SQLError) -> Decoding) {
        self.consumer = consumer
        self.position = position
        self.makeDecoding = makeDecoding
    }

    var offset: SplitOffset { position.offset }

    /// Where it ends, with the shared reader at `shared`.
    func end(_ shared: SplitOffset) -> SplitOffset { consumer.pausedAt.map { $0[position.split] ?? offset } ?? shared }

    /// Paused, and where it is to be.
    func isAtRest(_ shared: SplitOffset) -> Bool { consumer.isPaused && offset >= end(shared) }

    func decoding() throws(SQLError) -> Decoding {
        if let made { return made }
        let decoding = try makeDecoding()
        made = decoding
        return decoding
    }

    func accept(_ batch: DeltaBatch, _ decoding: Decoding) {
        guard let meter = decoding.meter else { return consumer.node.accept(batch, input: 0) }
        greatest = later(greatest, meter.greatest(batch))
        consumer.node.accept(batch.with(columns: Array(batch.columns.prefix(consumer.columns.count))), input: 0)
    }
}
