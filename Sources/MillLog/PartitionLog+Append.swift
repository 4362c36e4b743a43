import MillIO
package import MillKafkaWire
import Synchronization

/// Something that is to be written, in the order of the queue.
struct PendingAppend: Sendable {
    enum Content: Sendable {
        /// Checked, and the bytes that they lie in.
        case batches([RecordBatch], WireBytes)
        /// What ends a transaction.
        case marker(Transactions.Producer, isCommit: Bool)
    }

    var content: Content
    var byteCount: Int
    var completion: @Sendable (Result<PartitionLog.Appended, LogError>) -> Void
}

/// Taking batches in: checked by who brings them, queued, and written by the log's own threads (`PartitionLog+Write.swift`).
extension PartitionLog {
    /// What an append got.
    package struct Appended: Sendable, Hashable {
        package var baseOffset: Int64
        /// The offset after the last record.
        package var endOffset: Int64
        package var logStartOffset: Int64
        /// What readers get as the time of its records, if that is not the producer's.
        package var appendedAtMillis: Int64?
        /// The batch was stored before; these are its first offsets.
        package var isDuplicate: Bool
    }

    /// Appends one or more whole batches of format 2, which are checked first and must not be shared with anyone: their base
    /// offsets are written into them. Several at once must be without producer ids; all are stored or none.
    ///
    /// `completion` runs exactly once, when the records are durable (or when it is clear that they will not be), on any thread, and must
    /// not block. Callable from any thread, which checks the batches and queues them; it writes them itself only with `Flush.os`, or
    /// when more waits than the disk takes.
    package func append(_ batches: WireBytes, completion: @escaping @Sendable (Result<Appended, LogError>) -> Void) {
        do throws(LogError) {
            let checked = try check(batches)
            try queue(PendingAppend(content: .batches(checked, batches), byteCount: batches.count, completion: completion))
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
        do throws(LogError) {
            try queue(PendingAppend(content: .marker(producer, isCommit: isCommit), byteCount: 0) { result in
                if case .failure(let error) = result { completion(error) } else { completion(nil) }
            })
        } catch {
            completion(error)
        }
    }

    /// - Throws: why the partition is stopped; the completion is the caller's then.
    private func queue(_ append: PendingAppend) throws(LogError) {
        let (failure, isMuch): (LogError?, Bool) = state.withLock { state in
            if let failure = state.failure { return (failure, false) }
            state.pending.append(append)
            state.pendingBytes += append.byteCount
            return (nil, state.pendingBytes > Self.pendingBytesMax)
        }
        if let failure { throw failure }
        switch options.flush {
        case .os:
            writePending()
            publishWritten()
        case .sync:
            if isMuch { writePending() }
            // Who brings something after the log's end must not wait for it.
            if !flusher.schedule(self) { stop(.closed) }
        }
    }

    /// Of batches that wait to be written: so much a producer may be ahead of the disk.
    private static let pendingBytesMax = 32 << 20

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
            throw LogError(error)
        }
        let limit = config.batchBytes(options)
        if let large = found.first(where: { $0.bytes.count > limit }) { throw .batchTooLarge(bytes: large.bytes.count, limit: limit) }
        return found
    }

    /// Has room for the active segment up to a size, and for as much again as it has, within limits: finding room costs a write ten
    /// times what writing does while the flusher syncs.
    func reserve(_ size: Int, _ appender: inout Appender) {
        guard size > appender.reserved else { return }
        appender.reserved = size + min(max(size, Self.reservedBytesMin), Self.reservedBytesMax)
        try? appender.active.file.reserve(appender.reserved)  // The write says whether there is room for this.
    }

    private static let reservedBytesMin = 64 << 10
    private static let reservedBytesMax = 32 << 20
    private static let busyMillis: Int64 = 60_000

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
            // What filled the last one fast will fill this one: one request for its room instead of a dozen that appends wait for.
            let isBusy = finished.firstAppendMillis >= 0 && nowMillis - finished.firstAppendMillis < Self.busyMillis
            appender.reserved = isBusy ? finished.size : 0
            if isBusy { try? next.file.reserve(finished.size) }  // Writes say whether there is room for them.
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
}
