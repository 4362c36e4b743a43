import MillIO
package import MillKafkaWire
import Synchronization

extension PartitionLog {
    /// What an append got.
    package struct Appended: Sendable, Hashable {
        package var baseOffset: Int64
        /// The offset after the last record.
        package var endOffset: Int64
        package var logStartOffset: Int64
        /// The batch was stored before; these are its first offsets.
        package var isDuplicate: Bool
    }

    /// Appends one or more whole batches of format 2, which are checked first and must not be shared with anyone: their base
    /// offsets are written into them. Several at once must be without producer ids; all are stored or none.
    ///
    /// `completion` runs exactly once, when the records are durable (or at once on an error), on any thread, and must not
    /// block. Callable from any thread; blocks for the write, not for the fsync.
    package func append(_ batches: WireBytes, completion: @escaping @Sendable (Result<Appended, LogError>) -> Void) {
        do throws(LogError) {
            let checked = try check(batches)
            let (appended, isVisible) = try appender.withLock { (appender) throws(LogError) in
                let appended = try place(checked, batches, &appender)
                // Registered before the lock is given up, so that completions keep the order of appends.
                return (
                    appended, !wait(until: appended.endOffset) { error in completion(error.map { .failure($0) } ?? .success(appended)) }
                )
            }
            if isVisible { completion(.success(appended)) } else { finishAppend() }
        } catch {
            completion(.failure(error))
        }
    }

    /// The same; returns when the records are durable. For threads that may block, so not for an event loop or a task.
    @discardableResult
    package func appendAndWait(_ batches: WireBytes) throws(LogError) -> Appended {
        let result = OneShot<Result<Appended, LogError>>()
        append(batches) { result.set($0) }
        return try result.wait().get()
    }

    /// The same for a task.
    @discardableResult
    package func append(_ batches: WireBytes) async throws(LogError) -> Appended {
        let result: Result<Appended, LogError> = await withCheckedContinuation { continuation in
            append(batches) { continuation.resume(returning: $0) }
        }
        return try result.get()
    }

    /// Ends a producer's transaction here by a marker, unless it has none; `completion` runs when what ends it is durable, and must
    /// not block.
    func endTransaction(of producer: Transactions.Producer, isCommit: Bool, completion: @escaping @Sendable (LogError?) -> Void) {
        let bytes = RecordBatchBuilder.marker(
            producerID: producer.id, producerEpoch: producer.epoch, isCommit: isCommit, timestamp: nowMillis)
        do throws(LogError) {
            var batches = RecordBatches(bytes)
            guard let marker = try? batches.next() else { preconditionFailure("a marker is a batch") }
            let isVisible = try appender.withLock { (appender) throws(LogError) in
                let isOpen = state.withLock { $0.transactions.isOpen(producer.id) }
                if isOpen { _ = try write([marker], bytes, &appender) }
                // A marker of an earlier attempt may be on its way.
                return !wait(until: appender.nextOffset, completion)
            }
            if isVisible { completion(failure) } else { finishAppend() }
        } catch {
            completion(error)
        }
    }

    private func finishAppend() {
        if options.flush == .os { publishWritten() } else { flusher.schedule(self) }
    }

    /// The batches in `bytes`, every one of them valid in itself.
    private func check(_ bytes: WireBytes) throws(LogError) -> [RecordBatch] {
        var found: [RecordBatch] = []
        let config = state.withLock { $0.config }
        do throws(RecordError) {
            var batches = RecordBatches(bytes)
            try decoders.with(limit: options.decompressedBytesMax) { decoder throws(RecordError) in
                while let batch = try batches.next() {
                    try decoder.validate(batch, needsKeys: config.isCompacted)
                    found.append(batch)
                }
            }
            guard batches.remainingBytes == 0, !found.isEmpty else {
                throw .truncated(needed: RecordBatch.headerBytes, available: batches.remainingBytes)
            }
            if found.count > 1, found.contains(where: \.hasProducer) { throw .invalidHeader }
        } catch {
            throw .invalidBatch(error)
        }
        let limit = config.batchBytes(options)
        if let large = found.first(where: { $0.bytes.count > limit }) { throw .batchTooLarge(bytes: large.bytes.count, limit: limit) }
        return found
    }

    /// Writes producers' batches, unless they are there already.
    private func place(_ batches: [RecordBatch], _ bytes: WireBytes, _ appender: inout Appender) throws(LogError) -> Appended {
        if let failure { throw failure }
        if case .duplicate(let base, let last) = try appender.producers.check(batches[0]) {
            return Appended(baseOffset: base, endOffset: last + 1, logStartOffset: logStartOffset, isDuplicate: true)
        }
        // Under the appender's lock: a transaction whose end is decided gets no record after its marker.
        if batches[0].isTransactional { try coordinator.check(batches[0], belongsTo: PartitionPlace(topic: topic, partition: index)) }
        return try write(batches, bytes, &appender)
    }

    /// Assigns offsets and writes `bytes`, which are the batches.
    private func write(_ batches: [RecordBatch], _ bytes: WireBytes, _ appender: inout Appender) throws(LogError) -> Appended {
        let (failure, start, config) = state.withLock { ($0.failure, $0.startOffset, $0.config) }
        if let failure { throw failure }
        let first = appender.nextOffset
        var next = first
        for batch in batches {
            batch.assign(baseOffset: next, leaderEpoch: 0)
            next += Int64(batch.recordCount)
        }
        let nowMillis = nowMillis
        let isFull =
            appender.active.size + bytes.count > config.segmentBytes(options) || next - appender.active.baseOffset > Int64(Int32.max)
        if appender.active.size > 0, isFull || appender.active.isOlder(than: config.segmentMillis, nowMillis) { try roll(&appender) }
        let active = appender.active
        reserve(active.size + bytes.count, &appender)
        do throws(IOFailure) {
            try active.file.writeAll(bytes, at: active.size)
        } catch {
            // Half a batch may be there. A start would cut it; so do we, or stop if even that fails.
            do throws(IOFailure) { try active.file.truncate(to: active.size) } catch { stop(.storage(error)) }
            throw .storage(error)
        }
        appender.nextOffset = next
        for batch in batches { appender.producers.record(batch, baseOffset: batch.baseOffset, nowMillis: nowMillis) }
        state.withLock { state in
            for batch in batches {
                active.add(batch, indexIntervalBytes: options.indexIntervalBytes)
                state.transactions.note(batch)
            }
            active.noteAppend(nowMillis)
            state.logEndOffset = next
        }
        return Appended(baseOffset: first, endOffset: next, logStartOffset: start, isDuplicate: false)
    }

    /// Has room for the active segment up to a size, and for as much again as it has, within limits: finding room costs a write ten
    /// times what writing does while the flusher syncs.
    private func reserve(_ size: Int, _ appender: inout Appender) {
        guard size > appender.reserved else { return }
        appender.reserved = size + min(max(size, Self.reservedBytesMin), Self.reservedBytesMax)
        try? appender.active.file.reserve(appender.reserved)  // The write says whether there is room for this.
    }

    private static let reservedBytesMin = 64 << 10
    private static let reservedBytesMax = 32 << 20

    /// Begins the next segment.
    func roll(_ appender: inout Appender) throws(LogError) {
        do throws(IOFailure) {
            let next = try Self.makeSegment(appender.nextOffset, in: directory, environment.files, .create)
            let finished = appender.active
            let index = encodedIndex(of: finished, &appender)
            state.withLock { state in
                state.segments.append(next)
                state.sealed.append((finished, index))
                state.directoryDirty = true
            }
            appender.active = next
            appender.reserved = 0
            if options.flush == .os { flusher.schedule(self) }
        } catch {
            throw .storage(error)
        }
    }

    /// The index of the active segment as it is now; forgets producers that have been silent for too long.
    func encodedIndex(of active: Segment, _ appender: inout Appender) -> WireBytes {
        let horizon = nowMillis - options.producerExpirationMillis
        return state.withLock { state in
            appender.producers.expire(before: horizon, keeping: state.transactions)
            return active.encodedIndex(appender.producers, state.transactions)
        }
    }

    static func makeSegment(
        _ baseOffset: Int64, generation: Int = 0, in directory: String, _ files: any FileSystem, _ mode: OpenMode
    ) throws(IOFailure) -> Segment {
        let path = directory + "/" + Segment.name(baseOffset, generation: generation)
        return Segment(
            baseOffset: baseOffset, generation: generation, file: try files.open(path + ".log", mode), indexPath: path + ".index")
    }

    /// Has `body` run once the high watermark is there, or the partition has failed; false, and nothing kept, when it is there.
    private func wait(until endOffset: Int64, _ body: @escaping @Sendable (LogError?) -> Void) -> Bool {
        state.withLock { state in
            guard state.highWatermark < endOffset else { return false }
            state.waiters.append(Waiter(endOffset: endOffset, run: body))
            return true
        }
    }
}
