package import MillBase
import MillColumnar
package import MillConnectorKit
import MillExpr
package import MillPlan

/// A source on one worker: the splits that this worker reads, decoded once per epoch for all jobs on it.
///
/// The source is the records from its origin on, for every job whenever it was created. The first job starts the shared
/// readers at the origin. A later one first catches up: it reads each split from the origin with a reader of its own, and at the
/// end of the epoch in which that reader stands where the shared one stands, it joins. Both are read by this worker in one epoch,
/// so no record is skipped or seen twice.
///
/// A shared reader that fails stops its split for every job. A reader of one job that fails stops that job and no other: it gets
/// nothing more of the source.
///
/// The watermark of a split is the greatest value that its expression has had in the records from the origin to where a job is, so a job
/// that joins has the same one as the others.
package final class SourceInput {
    package let definition: SourceDefinition
    private let watermark: SourceWatermark?
    private var splits: [SplitInput] = []
    /// The split that is read first next time: when peers are behind it gives more than the others do.
    private var first = 0
    private var consumers: [Consumer] = []
    private var columns: [Int] = []
    private var decoder: (any Decoder)?
    /// Over what the shared decoder gives; nil while no job asks for it.
    private var meter: WatermarkMeter?
    private let onData: @Sendable () -> Void
    private let onRejects: RejectHandler
    /// Why a split is no longer read; the jobs on it show it.
    package private(set) var failure: SQLError?
    /// Why a job could not catch up, by job.
    package private(set) var jobFailures: [ObjectID: SQLError] = [:]

    /// Receives what some reader of a source rejected.
    package typealias RejectHandler = @Sendable (ObjectID, SplitRejects) -> Void

    /// A job's scan node and which columns it takes.
    private final class Consumer {
        let node: CircuitNode
        let columns: [Int]
        let readsWatermark: Bool
        /// For each of its columns, the place in the shared decoder's output.
        var places: [Int] = []
        var catchingUp = 0

        init(node: CircuitNode, columns: [Int], readsWatermark: Bool) {
            self.node = node
            self.columns = columns
            self.readsWatermark = readsWatermark
        }

        func accept(_ batch: DeltaBatch) { node.accept(batch.with(columns: places.map { batch.columns[$0] }), input: 0) }
    }

    private final class SplitInput {
        let split: SourceSplit
        let reader: any SplitReader
        var offset: SplitOffset
        var joined: [Consumer] = []
        var catchUps: [CatchUp] = []
        var failed = false
        /// Of the watermark expression, in what was read while some job asked for it.
        var greatest: Int64?

        init(split: SourceSplit, reader: any SplitReader, offset: SplitOffset) {
            self.split = split
            self.reader = reader
            self.offset = offset
        }
    }

    /// One job reading one split from the origin.
    private final class CatchUp {
        let consumer: Consumer
        let reader: any SplitReader
        let decoder: any Decoder
        let meter: WatermarkMeter?
        var offset: SplitOffset
        var greatest: Int64?

        init(consumer: Consumer, reader: any SplitReader, decoder: any Decoder, meter: WatermarkMeter?, offset: SplitOffset) {
            self.consumer = consumer
            self.reader = reader
            self.decoder = decoder
            self.meter = meter
            self.offset = offset
        }

        /// The decoder gives the consumer's columns, then others that the watermark needs.
        func accept(_ batch: DeltaBatch) {
            consumer.node.accept(meter == nil ? batch : batch.with(columns: Array(batch.columns.prefix(consumer.columns.count))), input: 0)
        }
    }

    package init(
        definition: SourceDefinition, watermark: SourceWatermark? = nil, onData: @escaping @Sendable () -> Void, onRejects: @escaping RejectHandler
    ) {
        self.definition = definition
        self.watermark = watermark
        self.onData = onData
        self.onRejects = onRejects
    }

    package var hasConsumers: Bool { !consumers.isEmpty }

    /// Starts reading a split; jobs that are already here have it from there on.
    /// - Parameter resumed: where a checkpoint has all restored jobs; nil at the split's origin.
    package func add(_ split: SourceSplit, at resumed: SplitOffset? = nil) throws(SQLError) {
        guard !splits.contains(where: { $0.split == split }) else { return }
        let offset = resumed ?? definition.origin[split] ?? SplitOffset(0)
        let reader = try definition.connector.openReader(split, at: offset, onData: onData)
        let input = SplitInput(split: split, reader: reader, offset: offset)
        input.joined = consumers.filter { jobFailures[$0.node.job] == nil }
        splits.append(input)
    }

    /// A job's scan node joins: at once while nothing has been read, else by catching up.
    /// - Parameters:
    ///   - readsWatermark: its job closes by the source's watermark.
    ///   - isRestored: the job's state has everything before the offsets at which the splits began.
    package func add(_ node: CircuitNode, columns wanted: [Int], readsWatermark: Bool = false, isRestored: Bool = false) throws(SQLError) {
        let consumer = Consumer(node: node, columns: wanted, readsWatermark: readsWatermark && watermark != nil)
        let all = consumer.readsWatermark ? wanted + watermarkColumns.filter { !wanted.contains($0) } : wanted
        for split in splits {
            let origin = definition.origin[split.split] ?? SplitOffset(0)
            if isRestored || split.offset <= origin && !split.reader.isFinished {
                split.joined.append(consumer)
            } else {
                let reader = try definition.connector.openReader(split.split, at: origin, onData: onData)
                let meter = consumer.readsWatermark ? try makeMeter(all) : nil
                split.catchUps.append(
                    CatchUp(consumer: consumer, reader: reader, decoder: try definition.makeDecoder(all), meter: meter, offset: origin))
                consumer.catchingUp += 1
            }
        }
        consumers.append(consumer)
        try renewDecoder()
    }

    package func remove(job: ObjectID) throws(SQLError) {
        consumers.removeAll { $0.node.job == job }
        jobFailures[job] = nil
        stopReading(for: job)
        try renewDecoder()
    }

    private func stopReading(for job: ObjectID) {
        for split in splits {
            split.joined.removeAll { $0.node.job == job }
            for catchUp in split.catchUps where catchUp.consumer.node.job == job { catchUp.reader.close() }
            split.catchUps.removeAll { $0.consumer.node.job == job }
        }
    }

    /// A split could not be opened.
    package func fail(_ error: SQLError) { failure = error }

    package func close() {
        for split in splits {
            split.reader.close()
            for catchUp in split.catchUps { catchUp.reader.close() }
        }
        splits = []
    }

    /// One decoder for the union of all jobs' columns.
    private func renewDecoder() throws(SQLError) {
        let isMetered = consumers.contains(where: \.readsWatermark)
        columns = Set(consumers.flatMap(\.columns) + (isMetered ? watermarkColumns : [])).sorted()
        decoder = try definition.makeDecoder(columns)
        meter = isMetered ? try makeMeter(columns) : nil
        for consumer in consumers { consumer.places = consumer.columns.map { columns.firstIndex(of: $0)! } }
    }

    private var watermarkColumns: [Int] { watermark?.expression.columnsUsed.sorted() ?? [] }

    private func makeMeter(_ columns: [Int]) throws(SQLError) -> WatermarkMeter? {
        guard let watermark else { return nil }
        return try WatermarkMeter(watermark, columns: columns)
    }

    /// Jobs of which a node still reads with a reader of its own, or could not to its end.
    package var catchingUp: [ObjectID] { consumers.filter { $0.catchingUp > 0 }.map(\.node.job) }

    /// Reads up to the budget and passes the rows on; `serveInbox` is called after every chunk and says whether to go on: if not, every
    /// split that is left gives one chunk more, so that none starves. Returns whether more may be waiting.
    package func poll(_ budget: inout EpochBudget, serveInbox: () -> Bool) -> Bool {
        var more = false
        var waiting = splits.count
        defer { first = first + 1 < splits.count ? first + 1 : 0 }
        for split in splits[first...] + splits[..<first] {
            // Splits advance together; what one leaves unused goes to the next ones.
            var share = budget.part(of: waiting)
            let before = share
            waiting -= 1
            do throws(SQLError) {
                if !split.failed, try pollShared(split, &share, serveInbox) { more = true }
            } catch {
                split.failed = true
                failure = error
            }
            if pollCatchUps(split, share, serveInbox) { more = true }
            budget.spend(before, left: share)
        }
        return more
    }

    private func pollShared(_ split: SplitInput, _ budget: inout EpochBudget, _ serveInbox: () -> Bool) throws(SQLError) -> Bool {
        guard let decoder, !split.joined.isEmpty else { return false }
        while budget.hasRoom {
            guard let chunk = try split.reader.poll(maxRecords: budget.records, maxBytes: budget.bytes) else { return false }
            budget.spend(records: chunk.count, bytes: chunk.byteCount)
            let batches = decode(chunk, of: split, by: decoder)
            split.offset = chunk.nextOffset
            if let meter { for batch in batches { split.greatest = later(split.greatest, meter.greatest(batch)) } }
            for batch in batches { for consumer in split.joined { consumer.accept(batch) } }
            guard serveInbox() else { return true }
        }
        return true
    }

    /// The rows of a chunk; hands on what was rejected.
    private func decode(_ chunk: RawChunk, of split: SplitInput, by decoder: any Decoder) -> [DeltaBatch] {
        let decoded = decoder.decode(chunk)
        if let rejects = SplitRejects(decoded, of: chunk, in: split.split) { onRejects(definition.id, rejects) }
        return decoded.batches
    }

    /// Returns whether there is more to do now: a reader that has nothing yet will say so when it has.
    private func pollCatchUps(_ split: SplitInput, _ budget: EpochBudget, _ serveInbox: () -> Bool) -> Bool {
        guard !split.catchUps.isEmpty else { return false }
        var more = false
        var left: [CatchUp] = []
        var failed: [ObjectID] = []
        for catchUp in split.catchUps {
            do throws(SQLError) {
                if try poll(catchUp, of: split, budget, serveInbox) { more = true }
            } catch {
                jobFailures[catchUp.consumer.node.job] = error
                failed.append(catchUp.consumer.node.job)
            }
            guard catchUp.offset >= split.offset else {
                left.append(catchUp)
                continue
            }
            catchUp.reader.close()
            catchUp.consumer.catchingUp -= 1
            split.greatest = later(split.greatest, catchUp.greatest)
            split.joined.append(catchUp.consumer)
            more = true
        }
        split.catchUps = left
        for job in failed { stopReading(for: job) }
        return more
    }

    /// Returns whether its share of the epoch ended before its records did.
    private func poll(_ catchUp: CatchUp, of split: SplitInput, _ budget: EpochBudget, _ serveInbox: () -> Bool) throws(SQLError) -> Bool {
        // A bounded share of its own: catching up must not starve while the shared reader takes the whole budget.
        var share = EpochBudget(records: max(budget.records, Limits.batchRowsMax * 4), bytes: max(budget.bytes, 4 << 20))
        while catchUp.offset < split.offset {
            guard share.hasRoom else { return true }
            guard let chunk = try catchUp.reader.poll(maxRecords: share.records, maxBytes: share.bytes) else { return false }
            share.spend(records: chunk.count, bytes: chunk.byteCount)
            let due = chunk.nextOffset > split.offset ? chunk.prefix(before: split.offset) : chunk
            for batch in decode(due, of: split, by: catchUp.decoder) {
                if let meter = catchUp.meter { catchUp.greatest = later(catchUp.greatest, meter.greatest(batch)) }
                catchUp.accept(batch)
            }
            catchUp.offset = due.nextOffset
            guard serveInbox() else { return true }
        }
        return false
    }

    package var offsets: [SourceSplit: SplitOffset] { Dictionary(uniqueKeysWithValues: splits.map { ($0.split, $0.offset) }) }

    /// How far each job that asks is in each split.
    package var progress: [WatermarkKey: [SourceSplit: SplitProgress]] {
        var progress: [WatermarkKey: [SourceSplit: SplitProgress]] = [:]
        func note(_ consumer: Consumer, _ split: SourceSplit, _ value: SplitProgress) {
            guard consumer.readsWatermark else { return }
            let key = WatermarkKey(job: consumer.node.job, source: definition.id)
            progress[key, default: [:]][split] = progress[key]?[split].map { $0.slower(value) } ?? value
        }
        for split in splits {
            let isBehind = split.reader.highWatermark.map { split.offset < $0 } ?? false
            let shared = SplitProgress(greatest: split.greatest, offset: split.offset, isBehind: isBehind)
            for consumer in split.joined { note(consumer, split.split, shared) }
            for catchUp in split.catchUps {
                note(catchUp.consumer, split.split, SplitProgress(greatest: catchUp.greatest, offset: catchUp.offset, isBehind: true))
            }
        }
        return progress
    }

    package var highWatermarks: [SourceSplit: SplitOffset] {
        Dictionary(uniqueKeysWithValues: splits.compactMap { split in split.reader.highWatermark.map { (split.split, $0) } })
    }

    /// Every split is bounded and has given its last record to every job.
    package var isFinished: Bool {
        definition.connector.isBounded && splits.allSatisfy { ($0.reader.isFinished || $0.failed) && $0.catchUps.isEmpty }
    }
}
