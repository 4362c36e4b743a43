package import MillBase
import MillColumnar
package import MillConnectorKit
import MillExpr
package import MillPlan
package import MillStore

/// A source on one worker: the splits that this worker reads, decoded once per epoch for all jobs on it.
///
/// The source is the records from its origin on, for every job whenever it was created. The first job starts the shared
/// readers at the origin. A later one first catches up: it reads each split from the origin with a reader of its own, and at the
/// end of the epoch in which that reader stands where the shared one stands, it joins. Both are read by this worker in one epoch,
/// so no record is skipped or seen twice.
///
/// A paused job leaves the shared readers and keeps its own place in each split; resumed it catches up from there. A paused source is
/// read up to given offsets and no further, by nobody.
///
/// What a shared reader has read may be decoded by another worker (`LentChunk`), for the same jobs there; the place in the split, what was
/// rejected and the watermark are the reader's.
///
/// A shared reader that fails stops its split for every job. A reader of one job that fails stops its split for that job and no other.
/// Either goes on from the same record after `retry`.
///
/// The watermark of a split is the greatest value that its expression has had in the records from the origin to where a job is, so a job
/// that joins has the same one as the others.
package final class SourceInput {
    package let definition: SourceDefinition
    private let watermark: SourceWatermark?
    private var splits: [SplitInput] = []
    /// The split that is read first next time: when peers are behind it gives more than the others do.
    private var first = 0
    private var consumers: [SourceConsumer] = []
    private var columns: [Int] = []
    private var decoder: (any Decoder)?
    /// Over what the shared decoder gives; nil while no job asks for it.
    private var meter: WatermarkMeter?
    private let onData: @Sendable () -> Void
    private let onRejects: RejectHandler
    /// What the shared readers have given.
    package private(set) var statistics = SourceStatistics()
    /// Where reading ends while the source is paused; nil while it goes on.
    private var pausedAt: [SourceSplit: SplitOffset]?
    /// Where reading ends in an epoch that is run again (`EpochRerun`); nil in others.
    private var rerunEnds: [SourceSplit: SplitOffset]?

    /// Receives what some reader of a source rejected.
    package typealias RejectHandler = @Sendable (ObjectID, SplitRejects) -> Void

    private final class SplitInput {
        let shared: SplitPosition
        var joined: [SourceConsumer] = []
        var catchUps: [CatchUp] = []
        /// Of the watermark expression, in what was read while some job asked for it.
        var greatest: Int64?
        /// Chunks from the first one on that another worker has not decoded yet: what was rejected is told in the order of the split.
        var pending: [PendingChunk] = []

        struct PendingChunk {
            var end: SplitOffset
            var isDecoded = false
            var rejects: SplitRejects?
        }

        init(_ shared: SplitPosition) { self.shared = shared }

        var split: SourceSplit { shared.split }
        var offset: SplitOffset { shared.offset }
        /// Jobs that are further than the shared reader, after a restart: it must not run past them.
        var nextAhead: SplitOffset? { catchUps.lazy.filter { !$0.consumer.isPaused && $0.offset > self.offset }.map(\.offset).min() }
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

    private func position(_ split: SourceSplit, at offset: SplitOffset) -> SplitPosition {
        SplitPosition(split, at: offset) { [definition, onData] (offset) throws(SQLError) in
            try definition.connector.openReader(split, at: offset, onData: onData)
        }
    }

    /// Starts reading a split at its origin; jobs that are already here have it from there on.
    package func add(_ split: SourceSplit) throws(SQLError) {
        guard !hasSplit(split) else { return }
        let shared = position(split, at: definition.origin[split] ?? SplitOffset(0))
        if pausedAt == nil { try shared.start() }
        take(shared)
    }

    /// The same for a split that was found while jobs run, or in which a checkpoint has restored jobs: one that cannot be opened stops the
    /// source, aloud. The jobs keep what they have.
    /// - Parameter resumed: where a checkpoint has them; nil at the split's origin.
    package func addFound(_ split: SourceSplit, at resumed: SplitOffset? = nil) {
        guard !hasSplit(split) else { return }
        let shared = position(split, at: resumed ?? definition.origin[split] ?? SplitOffset(0))
        if pausedAt == nil { shared.tryToStart() }
        take(shared)
    }

    private func hasSplit(_ split: SourceSplit) -> Bool { splits.contains { $0.split == split } }

    private func take(_ shared: SplitPosition) {
        let input = SplitInput(shared)
        for consumer in consumers {
            if consumer.isPaused { leave(input, consumer) } else { input.joined.append(consumer) }
        }
        splits.append(input)
    }

    // MARK: Jobs

    /// A job's scan node joins: at once while nothing has been read, else by catching up.
    /// - Parameters:
    ///   - readsWatermark: its job closes by the source's watermark.
    ///   - keepsOrder: its job gives rows out in the order in which the split has them, as far as it can.
    ///   - isRestored: the job's state has everything before `placement`'s offsets, without them before those at which the splits began.
    ///   - placement: of a job that does not stand where the shared readers do.
    package func add(
        _ node: CircuitNode, columns wanted: [Int], readsWatermark: Bool = false, keepsOrder: Bool = false, isRestored: Bool = false, placement: JobPlacement? = nil
    ) throws(SQLError) {
        let consumer = SourceConsumer(
            node: node, columns: wanted, readsWatermark: readsWatermark && watermark != nil, keepsOrder: keepsOrder, isRestored: isRestored)
        consumer.pausedAt = placement?.ends?[definition.id] ?? placement?.ends.map { _ in [:] }
        consumer.pause = placement?.pause
        for split in splits {
            let origin = definition.origin[split.split] ?? SplitOffset(0)
            let start = isRestored ? placement?.offsets[definition.id]?[split.split] ?? split.offset : origin
            if !consumer.isPaused, start == split.offset, isRestored || !split.shared.isFinished {
                split.joined.append(consumer)
            } else {
                let catchUp = catchUp(consumer, split.split, at: start)
                if !catchUp.isAtRest(split.offset) {
                    if isRestored { catchUp.position.tryToStart() } else { try catchUp.position.start() }
                }
                split.catchUps.append(catchUp)
            }
        }
        consumer.isApart = placement != nil && (consumer.isPaused || isBehind(consumer))
        consumers.append(consumer)
        try renewDecoder()
    }

    private func catchUp(_ consumer: SourceConsumer, _ split: SourceSplit, at offset: SplitOffset) -> CatchUp {
        let (definition, watermark) = (definition, watermark)
        return CatchUp(consumer, position(split, at: offset)) { () throws(SQLError) in
            guard consumer.readsWatermark, let watermark else { return CatchUp.Decoding(decoder: try definition.makeDecoder(consumer.columns)) }
            let columns = consumer.columns + watermark.expression.columnsUsed.sorted().filter { !consumer.columns.contains($0) }
            return CatchUp.Decoding(decoder: try definition.makeDecoder(columns), meter: try WatermarkMeter(watermark, columns: columns))
        }
    }

    package func remove(job: ObjectID) throws(SQLError) {
        consumers.removeAll { $0.node.job == job }
        for split in splits {
            split.joined.removeAll { $0.node.job == job }
            for catchUp in split.catchUps where catchUp.consumer.node.job == job { catchUp.position.close() }
            split.catchUps.removeAll { $0.consumer.node.job == job }
        }
        try renewDecoder()
    }

    package func close() {
        for split in splits {
            split.shared.close()
            for catchUp in split.catchUps { catchUp.position.close() }
        }
        splits = []
    }

    /// One decoder for the union of all jobs' columns.
    private func renewDecoder() throws(SQLError) {
        let watermark = consumers.contains(where: \.readsWatermark) ? watermark : nil
        columns = Set(consumers.flatMap(\.columns)).union(watermark?.expression.columnsUsed ?? []).sorted()
        decoder = try definition.makeDecoder(columns)
        meter = try watermark.map { (watermark) throws(SQLError) in try WatermarkMeter(watermark, columns: columns) }
        for consumer in consumers { consumer.places = consumer.columns.map { columns.firstIndex(of: $0)! } }
    }

    // MARK: Pausing, between epochs

    /// Reads no further than `ends`; without them than where it stands.
    package func pause(at ends: [SourceSplit: SplitOffset]? = nil) {
        pausedAt = ends ?? offsets
        for split in splits where split.offset >= end(of: split) ?? split.offset { split.shared.close() }
    }

    package func resume() { pausedAt = nil }

    /// The job gets nothing more, and keeps its place.
    /// - Parameter number: tells this pause from others.
    package func pause(job: ObjectID, number: UInt64) {
        for consumer in consumers where consumer.node.job == job {
            consumer.pause = number
            consumer.pausedAt = [:]
            consumer.isApart = true
            for split in splits {
                if split.joined.contains(where: { $0 === consumer }) { leave(split, consumer) }
                for catchUp in split.catchUps where catchUp.consumer === consumer { catchUp.position.close() }
            }
        }
    }

    private func leave(_ split: SplitInput, _ consumer: SourceConsumer) {
        split.joined.removeAll { $0 === consumer }
        let catchUp = catchUp(consumer, split.split, at: split.offset)
        catchUp.greatest = split.greatest
        split.catchUps.append(catchUp)
        if split.joined.isEmpty { split.shared.close() }
    }

    /// The job catches up from its place.
    package func resume(job: ObjectID) {
        for consumer in consumers where consumer.node.job == job {
            consumer.pausedAt = nil
            consumer.pause = nil
        }
    }

    // MARK: Failures

    /// Why a split is no longer read; the jobs on it show it.
    package var failure: SQLError? { splits.lazy.compactMap(\.shared.failure).first }

    /// Why a job cannot catch up, by job.
    package var jobFailures: [ObjectID: SQLError] {
        var failures: [ObjectID: SQLError] = [:]
        for split in splits {
            for catchUp in split.catchUps { if let failure = catchUp.position.failure { failures[catchUp.consumer.node.job] = failure } }
        }
        return failures
    }

    /// The next epoch tries again what failed for a reason that may have passed, from the record where it stopped.
    /// - Parameter job: a job's own readers; nil for the shared ones.
    package func retry(job: ObjectID? = nil) {
        for split in splits {
            if job == nil, split.shared.failure?.mayPass == true { split.shared.retry() }
            for catchUp in split.catchUps where catchUp.consumer.node.job == job && catchUp.position.failure?.mayPass == true {
                catchUp.position.retry()
            }
        }
    }

    // MARK: Epochs

    /// Gives records to a worker that has time to decode them; false when none has.
    package typealias Lend = (ObjectID, SourceSplit, RawChunk) -> Bool

    /// Reads up to the budget for all who have joined and passes the rows on; `serveInbox` is called after every chunk and says whether to go
    /// on: if not, every split that is left gives one chunk more, so that none starves. Returns whether more may be waiting.
    package func poll(_ budget: inout EpochBudget, lend: Lend, serveInbox: () -> Bool) -> Bool {
        var more = false
        var waiting = splits.count
        defer { first = first + 1 < splits.count ? first + 1 : 0 }
        for split in splits[first...] + splits[..<first] {
            // Splits advance together; what one leaves unused goes to the next ones.
            var share = budget.part(of: waiting)
            let before = share
            waiting -= 1
            if split.shared.failure == nil, pollShared(split, &share, lend, serveInbox) { more = true }
            budget.spend(before, left: share)
        }
        return more
    }

    /// Reads for those who catch up, once an epoch and behind `poll`. Returns whether there is more to do.
    /// - Parameter left: what the shared readers have not used.
    package func pollCatchUps(_ left: EpochBudget, serveInbox: () -> Bool) -> Bool {
        var more = false
        for split in splits where pollCatchUps(split, left.part(of: splits.count), serveInbox) { more = true }
        return more
    }

    /// Where the shared reader of a split ends at present.
    private func end(of split: SplitInput) -> SplitOffset? {
        [split.nextAhead, pausedAt.map { $0[split.split] ?? split.offset }, rerunEnds.map { $0[split.split] ?? split.offset }].compactMap { $0 }.min()
    }

    /// Where a job's own reader ends at present.
    private func end(of catchUp: CatchUp, in split: SplitInput) -> SplitOffset {
        let end = catchUp.end(split.offset)
        guard catchUp.consumer.isRestored, let rerunEnds else { return end }
        return min(end, rerunEnds[split.split] ?? catchUp.offset)
    }

    /// The epoch that begins is one of an earlier process, which read up to these places; nil: it is not.
    func openEpoch(rereadingTo ends: [SourceSplit: SplitOffset]?) { rerunEnds = ends }

    /// Some reader has not come to where the epoch that is run again ended, and may yet.
    var isShortOfRerun: Bool {
        guard rerunEnds != nil else { return false }
        return splits.contains { split in
            let isShort = !split.joined.isEmpty && split.shared.failure == nil && split.offset < end(of: split) ?? split.offset
            return isShort || split.catchUps.contains {
                $0.consumer.isRestored && $0.position.failure == nil && $0.offset < self.end(of: $0, in: split)
            }
        }
    }

    private func pollShared(_ split: SplitInput, _ budget: inout EpochBudget, _ lend: Lend, _ serveInbox: () -> Bool) -> Bool {
        guard let decoder else { return false }
        guard !split.joined.isEmpty else {
            // Nobody needs what lies between.
            if let ahead = split.nextAhead { split.shared.move(to: ahead) }
            return false
        }
        let end = end(of: split)
        let mayLend = mayLend(split)
        while budget.hasRoom, end.map({ split.offset < $0 }) ?? true {
            // What is wrong is kept at the position.
            let place = split.offset
            guard let chunk = try? split.shared.poll(before: end, maxRecords: budget.records, maxBytes: budget.bytes) else { return false }
            if mayLend, !decoder.mayStop(at: chunk), lend(definition.id, split.split, chunk) {
                split.pending.append(SplitInput.PendingChunk(end: chunk.nextOffset))
            } else {
                guard let batches = decode(chunk, of: split, by: decoder, failing: split.shared, at: place) else { return false }
                if let meter { for batch in batches { split.greatest = later(split.greatest, meter.greatest(batch)) } }
                for batch in batches { for consumer in split.joined { consumer.accept(batch) } }
            }
            budget.spend(records: chunk.count, bytes: chunk.byteCount)
            statistics.add(chunk)
            guard serveInbox() else { return true }
        }
        return end.map { split.offset < $0 } ?? true
    }

    // MARK: Chunks that other workers decode

    /// Whether chunks may be lent in this epoch: the same on all workers.
    var lends: Bool { decoder?.takesAnyOrder == true && !consumers.contains(where: \.keepsOrder) }

    /// Whether all jobs get what is found in a split.
    private func mayLend(_ split: SplitInput) -> Bool { lends && split.joined.count == consumers.count }

    /// Another worker's records, on which no decoder stops.
    func decode(_ chunk: LentChunk) -> LentChunk.Outcome {
        guard let decoder, let decoded = try? decoder.decode(chunk.records) else {
            preconditionFailure("a chunk was lent that may stop its split")
        }
        var greatest: Int64?
        for batch in decoded.batches {
            if let meter { greatest = later(greatest, meter.greatest(batch)) }
            for consumer in consumers { consumer.accept(batch) }
        }
        return LentChunk.Outcome(
            source: chunk.source, split: chunk.split, end: chunk.records.nextOffset,
            rejects: SplitRejects(decoded, of: chunk.records, in: chunk.split), greatest: greatest)
    }

    /// A chunk of this worker has been decoded.
    func note(_ outcome: LentChunk.Outcome) {
        guard let split = splits.first(where: { $0.split == outcome.split }),
            let place = split.pending.firstIndex(where: { $0.end == outcome.end && !$0.isDecoded })
        else { return }
        split.greatest = later(split.greatest, outcome.greatest)
        split.pending[place] = SplitInput.PendingChunk(end: outcome.end, isDecoded: true, rejects: outcome.rejects)
        while let first = split.pending.first, first.isDecoded {
            if let rejects = first.rejects { onRejects(definition.id, rejects) }
            split.pending.removeFirst()
        }
    }

    /// The rows of a chunk that was read at `place`; hands on what was rejected. nil when the split cannot be read: then `position` is
    /// back there and knows why.
    private func decode(
        _ chunk: RawChunk, of split: SplitInput, by decoder: any Decoder, failing position: SplitPosition, at place: SplitOffset
    ) -> [DeltaBatch]? {
        do throws(SQLError) {
            let decoded = try decoder.decode(chunk)
            if let rejects = SplitRejects(decoded, of: chunk, in: split.split) {
                if position === split.shared, !split.pending.isEmpty {
                    split.pending.append(SplitInput.PendingChunk(end: chunk.nextOffset, isDecoded: true, rejects: rejects))
                } else {
                    onRejects(definition.id, rejects)
                }
            }
            return decoded.batches
        } catch {
            position.move(to: place)
            position.fail(error)
            return nil
        }
    }

    /// Returns whether there is more to do now: a reader that has nothing yet will say so when it has.
    private func pollCatchUps(_ split: SplitInput, _ budget: EpochBudget, _ serveInbox: () -> Bool) -> Bool {
        guard !split.catchUps.isEmpty else { return false }
        var more = false
        var left: [CatchUp] = []
        let share = catchUpShare(budget, of: split)
        for catchUp in split.catchUps {
            // What is wrong is kept at the position.
            if catchUp.position.failure == nil, (try? poll(catchUp, of: split, share, serveInbox)) == true { more = true }
            guard !catchUp.consumer.isPaused, catchUp.offset == split.offset else {
                left.append(catchUp)
                continue
            }
            catchUp.position.close()
            split.greatest = later(split.greatest, catchUp.greatest)
            split.joined.append(catchUp.consumer)
            more = true
        }
        split.catchUps = left
        for consumer in consumers where consumer.isApart && !consumer.isPaused && !isBehind(consumer) { consumer.isApart = false }
        return more
    }

    /// How much each of those who catch up in a split may read. They share what the shared reader left, and have something in any case: they
    /// must not starve while that one takes the whole budget. Nor does it grow with the number of splits and jobs, but for a few records each.
    private func catchUpShare(_ left: EpochBudget, of split: SplitInput) -> EpochBudget {
        let least = Self.catchUpMin.part(of: splits.count)
        let share = EpochBudget(records: max(left.records, least.records), bytes: max(left.bytes, least.bytes)).part(of: split.catchUps.count)
        return EpochBudget(records: max(share.records, Self.readerMin.records), bytes: max(share.bytes, Self.readerMin.bytes))
    }

    /// All who catch up on this worker, and each reader.
    private static let catchUpMin = EpochBudget(records: Limits.batchRowsMax * 4, bytes: 4 << 20)
    private static let readerMin = EpochBudget(records: 256, bytes: 64 << 10)

    private func isBehind(_ consumer: SourceConsumer) -> Bool { splits.contains { $0.catchUps.contains { $0.consumer === consumer } } }

    /// Returns whether its share of the epoch ended before its records did.
    private func poll(_ catchUp: CatchUp, of split: SplitInput, _ share: EpochBudget, _ serveInbox: () -> Bool) throws(SQLError) -> Bool {
        var share = share
        let end = end(of: catchUp, in: split)
        while catchUp.offset < end {
            guard share.hasRoom else { return true }
            let decoding = try catchUp.decoding()
            let place = catchUp.offset
            guard let chunk = try catchUp.position.poll(before: end, maxRecords: share.records, maxBytes: share.bytes),
                let batches = decode(chunk, of: split, by: decoding.decoder, failing: catchUp.position, at: place)
            else { return false }
            share.spend(records: chunk.count, bytes: chunk.byteCount)
            for batch in batches { catchUp.accept(batch, decoding) }
            guard serveInbox() else { return true }
        }
        return false
    }

    // MARK: What it has done

    /// Jobs of which a node still reads with a reader of its own, or could not to its end.
    package var catchingUp: Set<ObjectID> {
        var jobs: Set<ObjectID> = []
        for split in splits { for catchUp in split.catchUps where !catchUp.isAtRest(split.offset) { jobs.insert(catchUp.consumer.node.job) } }
        return jobs
    }

    /// Where jobs stand whose state is not that of the shared offsets, and is to be kept.
    package var apart: [ObjectID: (offsets: [SourceSplit: SplitOffset], pause: UInt64?)] {
        var found: [ObjectID: (offsets: [SourceSplit: SplitOffset], pause: UInt64?)] = [:]
        for consumer in consumers where consumer.isApart {
            let offsets = splits.map { split in (split.split, split.catchUps.first { $0.consumer === consumer }?.offset ?? split.offset) }
            found[consumer.node.job] = (Dictionary(uniqueKeysWithValues: offsets), consumer.pause)
        }
        return found
    }

    /// How far each job is in each split; one that reads the source twice, by its reader that is behind.
    package var places: [ObjectID: [SourceSplit: SplitPlace]] {
        var places: [ObjectID: [SourceSplit: SplitPlace]] = [:]
        for consumer in consumers {
            for split in splits {
                let own = split.catchUps.first { $0.consumer === consumer }?.position
                let place = SplitPlace(offset: own?.offset ?? split.offset, end: split.shared.highWatermark ?? own?.highWatermark)
                places[consumer.node.job, default: [:]].merge([split.split: place]) { $0.offset < $1.offset ? $0 : $1 }
            }
        }
        return places
    }

    package var offsets: [SourceSplit: SplitOffset] { Dictionary(uniqueKeysWithValues: splits.map { ($0.split, $0.offset) }) }

    /// How far each job that asks is in each split.
    package var progress: [WatermarkKey: [SourceSplit: SplitProgress]] {
        var progress: [WatermarkKey: [SourceSplit: SplitProgress]] = [:]
        func note(_ consumer: SourceConsumer, _ split: SourceSplit, _ value: SplitProgress) {
            guard consumer.readsWatermark else { return }
            let key = WatermarkKey(job: consumer.node.job, source: definition.id)
            progress[key, default: [:]][split] = progress[key]?[split].map { $0.slower(value) } ?? value
        }
        guard consumers.contains(where: \.readsWatermark) else { return [:] }
        // Nobody knows what a broker has that does not answer.
        let isWell = pausedAt == nil && definition.connector.status == nil
        for split in splits {
            let shared = SplitProgress(greatest: split.greatest, offset: split.offset, state: isWell ? state(of: split) : .behind)
            for consumer in split.joined { note(consumer, split.split, shared) }
            for catchUp in split.catchUps {
                note(catchUp.consumer, split.split, SplitProgress(greatest: catchUp.greatest, offset: catchUp.offset, state: .behind))
            }
        }
        return progress
    }

    private func state(of split: SplitInput) -> SplitProgress.State {
        if split.shared.failure != nil { return .behind }
        if split.shared.isFinished { return .finished }
        return split.shared.highWatermark.map { split.offset < $0 } ?? false ? .behind : .atEnd
    }

    package var highWatermarks: [SourceSplit: SplitOffset] {
        Dictionary(uniqueKeysWithValues: splits.compactMap { split in split.shared.highWatermark.map { (split.split, $0) } })
    }

    /// Every split is bounded and has given its last record to every job.
    package var isFinished: Bool {
        definition.connector.isBounded
            && splits.allSatisfy { split in
                (split.shared.isFinished || split.shared.failure != nil)
                    && split.catchUps.allSatisfy { $0.position.failure != nil || $0.consumer.isPaused }
            }
    }
}
