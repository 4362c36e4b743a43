import MillIO
package import MillKafkaWire
import Synchronization

/// One partition: segments of record batches with offsets from 0 on, appended at the end and read anywhere.
///
/// Place in the path: producers' batches come in through `append`, unchanged but for their base offset; the engine's source
/// readers and the Kafka server take slices out through `read`, which are bytes of the file and nothing per record.
///
/// Invariants: offsets run without gaps over the segments; nothing above `highWatermark` is read; with `Flush.sync`
/// everything below it is durable; an append's completion runs after the high watermark passed it, in append order.
///
/// Threading: any thread. `appender` is held for the length of a write, so appends take turns; `state` only for moments, so
/// readers never wait for the disk. Order of locks: appender, then state. Completions and listeners run without locks on
/// the thread that flushed (or, with `Flush.os`, appended): they must not block.
///
/// A crash leaves what docs/internals/log.md says; `PartitionLog+Recovery.swift` mends it.
package final class PartitionLog: Flushable {
    package let topic: String
    package let index: Int32
    let directory: String
    let environment: Environment
    let options: LogOptions
    private let flusher: LogFlusher
    private let decoders = DecoderPool()

    /// What an append needs and nobody else.
    struct Appender {
        var active: Segment
        var nextOffset: Int64
        var producers: ProducerStates
        /// Bytes of the active segment that have room on the disk.
        var reserved = 0
    }

    struct Waiter: Sendable {
        var endOffset: Int64
        var run: @Sendable (LogError?) -> Void
    }

    struct State {
        /// Ascending by base offset; never empty while open.
        var segments: [Segment]
        var highWatermark: Int64
        var logEndOffset: Int64
        /// Complete segments whose index file is not written yet.
        var sealed: [(segment: Segment, index: WireBytes)] = []
        var directoryDirty = false
        /// Set when the partition stopped; every call fails with it.
        var failure: LogError?
        var waiters: [Waiter] = []
        var listeners: [UInt64: @Sendable (Int64) -> Void] = [:]
        var nextListener: UInt64 = 0
        /// Where the last few reads ended, which is where the next ones begin.
        var hints: [ReadHint] = []
        var nextHint = 0
    }

    struct ReadHint {
        var offset: Int64
        var segmentBase: Int64
        var position: Int
    }

    let appender: Mutex<Appender>
    let state: Mutex<State>

    init(topic: String, index: Int32, directory: String, environment: Environment, options: LogOptions, flusher: LogFlusher, recovered: Recovered) {
        self.topic = topic
        self.index = index
        self.directory = directory
        self.environment = environment
        self.options = options
        self.flusher = flusher
        appender = Mutex(Appender(active: recovered.active, nextOffset: recovered.nextOffset, producers: recovered.producers))
        state = Mutex(State(
            segments: recovered.segments, highWatermark: recovered.nextOffset, logEndOffset: recovered.nextOffset, failure: recovered.failure))
    }

    /// The offset after the last record that may be read.
    package var highWatermark: Int64 { state.withLock { $0.highWatermark } }
    /// The first offset there is.
    package var logStartOffset: Int64 { state.withLock { $0.segments.first?.baseOffset ?? 0 } }
    /// Why the partition is stopped, if it is.
    package var failure: LogError? { state.withLock { $0.failure } }

    // MARK: Append

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
                let appended = try write(checked, batches, &appender)
                // Registered before the lock is given up, so that completions keep the order of appends.
                return (appended, !wait(until: appended.endOffset) { error in completion(error.map { .failure($0) } ?? .success(appended)) })
            }
            if isVisible {
                completion(.success(appended))
            } else if options.flush == .os {
                publishWritten()
            } else {
                flusher.schedule(self)
            }
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

    /// The batches in `bytes`, every one of them valid in itself.
    private func check(_ bytes: WireBytes) throws(LogError) -> [RecordBatch] {
        var found: [RecordBatch] = []
        do throws(RecordError) {
            var batches = RecordBatches(bytes)
            try decoders.with(limit: options.decompressedBytesMax) { decoder throws(RecordError) in
                while let batch = try batches.next() {
                    try decoder.validate(batch)
                    found.append(batch)
                }
            }
            guard batches.remainingBytes == 0, !found.isEmpty else { throw .truncated(needed: RecordBatch.headerBytes, available: batches.remainingBytes) }
            if found.count > 1, found.contains(where: \.hasProducer) { throw .invalidHeader }
        } catch {
            throw .invalidBatch(error)
        }
        if let large = found.first(where: { $0.bytes.count > options.batchBytesMax }) {
            throw .batchTooLarge(bytes: large.bytes.count, limit: options.batchBytesMax)
        }
        return found
    }

    /// Assigns offsets and writes `bytes`, which are the batches.
    private func write(_ batches: [RecordBatch], _ bytes: WireBytes, _ appender: inout Appender) throws(LogError) -> Appended {
        if let failure { throw failure }
        let start = logStartOffset
        if case .duplicate(let base, let last) = try appender.producers.check(batches[0]) {
            return Appended(baseOffset: base, endOffset: last + 1, logStartOffset: start, isDuplicate: true)
        }
        let first = appender.nextOffset
        var next = first
        for batch in batches {
            batch.assign(baseOffset: next, leaderEpoch: 0)
            next += Int64(batch.recordCount)
        }
        let isFull = appender.active.size + bytes.count > options.segmentBytesMax || next - appender.active.baseOffset > Int64(Int32.max)
        if appender.active.size > 0, isFull { try roll(&appender) }
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
        let nowMillis = environment.clock.nowMicros / 1000
        for batch in batches { appender.producers.record(batch, baseOffset: batch.baseOffset, nowMillis: nowMillis) }
        state.withLock { state in
            for batch in batches { active.add(batch, indexIntervalBytes: options.indexIntervalBytes) }
            state.logEndOffset = next
        }
        return Appended(baseOffset: first, endOffset: next, logStartOffset: start, isDuplicate: false)
    }

    /// Has room for the active segment up to a size, and for as much again as it has, within limits: finding room costs a write ten
    /// times what writing does while the flusher syncs.
    private func reserve(_ size: Int, _ appender: inout Appender) {
        guard size > appender.reserved else { return }
        appender.reserved = size + min(max(size, Self.reservedBytesMin), Self.reservedBytesMax)
        appender.active.file.reserve(appender.reserved)
    }

    private static let reservedBytesMin = 64 << 10
    private static let reservedBytesMax = 32 << 20

    /// Begins the next segment.
    private func roll(_ appender: inout Appender) throws(LogError) {
        do throws(IOFailure) {
            let next = try Self.makeSegment(appender.nextOffset, in: directory, environment.files, .create)
            appender.producers.expire(before: environment.clock.nowMicros / 1000 - options.producerExpirationMillis)
            let finished = appender.active
            let index = state.withLock { _ in finished.encodedIndex(appender.producers) }
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

    static func makeSegment(_ baseOffset: Int64, in directory: String, _ files: any FileSystem, _ mode: OpenMode) throws(IOFailure) -> Segment {
        let path = directory + "/" + Segment.name(baseOffset)
        return Segment(baseOffset: baseOffset, file: try files.open(path + ".log", mode), indexPath: path + ".index")
    }

    // MARK: Durability

    /// Has `body` run once the high watermark is there, or the partition has failed; false, and nothing kept, when it is there.
    private func wait(until endOffset: Int64, _ body: @escaping @Sendable (LogError?) -> Void) -> Bool {
        state.withLock { state in
            guard state.highWatermark < endOffset else { return false }
            state.waiters.append(Waiter(endOffset: endOffset, run: body))
            return true
        }
    }

    /// Called by the flusher.
    func flush() {
        let work = state.withLock { state in
            let sealed = state.sealed
            let directoryDirty = state.directoryDirty
            state.sealed = []
            state.directoryDirty = false
            return (sealed: sealed, directoryDirty: directoryDirty, written: Written(state), failure: state.failure)
        }
        // An append that met the failure too late to see it is told here.
        if let failure = work.failure { return stop(failure) }
        do throws(IOFailure) {
            for (segment, index) in work.sealed {
                try segment.file.truncate(to: segment.size)
                try segment.file.sync()
                let file = try environment.files.open(segment.indexPath, .create)
                try file.writeAll(index)
                try file.sync()
            }
            if work.directoryDirty { try environment.files.syncDirectory(directory) }
            guard options.flush == .sync else { return }
            try work.written.active.file.sync()
        } catch {
            // After a failed fsync the system may have dropped the pages: what is on disk is unknown, so nobody is told more.
            stop(.storage(error))
            return
        }
        publish { _ in work.written }
    }

    private func publishWritten() { publish { Written($0) } }

    /// The end of what was written at some moment.
    private struct Written {
        var active: Segment
        var activeSize: Int
        var end: Int64

        init(_ state: borrowing State) {
            active = state.segments[state.segments.count - 1]
            activeSize = active.size
            end = state.logEndOffset
        }
    }

    /// Lets readers see what was written, and tells who waits for it.
    private func publish(_ choose: (borrowing State) -> Written) {
        let (end, due, listeners) = state.withLock { state in
            let written = choose(state)
            guard written.end > state.highWatermark else { return (written.end, [Waiter](), [@Sendable (Int64) -> Void]()) }
            state.highWatermark = written.end
            written.active.visibleSize = written.activeSize
            for segment in state.segments.reversed() where segment.baseOffset < written.active.baseOffset {
                if segment.visibleSize == segment.size { break }
                segment.visibleSize = segment.size
            }
            let count = state.waiters.prefix { $0.endOffset <= written.end }.count
            let due = Array(state.waiters.prefix(count))
            state.waiters.removeFirst(count)
            return (written.end, due, Array(state.listeners.values))
        }
        for waiter in due { waiter.run(nil) }
        for listener in listeners { listener(end) }
    }

    /// Stops the partition for good: waiting appends fail, and all later calls.
    func stop(_ error: LogError) {
        let (waiters, listeners, end) = state.withLock { state in
            if state.failure == nil { state.failure = error }
            defer { state.waiters = [] }
            return (state.waiters, Array(state.listeners.values), state.highWatermark)
        }
        for waiter in waiters { waiter.run(error) }
        // Readers look again, and see why there will be nothing more.
        for listener in listeners { listener(end) }
    }

    /// Makes everything durable, indexes included, and stops. The flusher has ended before.
    func close() {
        flush()
        let index = appender.withLock { appender in
            appender.producers.expire(before: environment.clock.nowMicros / 1000 - options.producerExpirationMillis)
            return state.withLock { state in state.failure == nil ? (appender.active, appender.active.encodedIndex(appender.producers)) : nil }
        }
        if let (active, bytes) = index {
            // Without its index the segment is checked at the next start, so a failure here loses time and nothing else.
            do throws(IOFailure) {
                try active.file.truncate(to: active.size)
                try active.file.sync()
                let file = try environment.files.open(active.indexPath, .create)
                try file.writeAll(bytes)
                try file.sync()
                try environment.files.syncDirectory(directory)
            } catch {}
        }
        stop(.closed)
    }

    // MARK: Listeners

    /// Calls `body` with the new high watermark whenever it has moved, until the subscription is cancelled or released.
    /// `body` runs on the flushing thread and must not block.
    package func onAppend(_ body: @escaping @Sendable (Int64) -> Void) -> LogSubscription {
        let id = state.withLock { state in
            state.nextListener += 1
            state.listeners[state.nextListener] = body
            return state.nextListener
        }
        return LogSubscription { [weak self] in self?.state.withLock { $0.listeners[id] = nil } }
    }
}

/// A listener's registration; ends with it.
package final class LogSubscription: Sendable {
    private let end: @Sendable () -> Void
    init(_ end: @escaping @Sendable () -> Void) { self.end = end }
    deinit { end() }
    /// Ends it now. A call that has begun on another thread may still be running.
    package func cancel() { end() }
}

/// Decoders that no thread is using.
final class DecoderPool: Sendable {
    /// Sendable because a decoder is in the list or with one thread, never both.
    private struct Box: @unchecked Sendable { var decoder: RecordDecoder }
    private let free = Mutex<[Box]>([])

    func with<R>(limit: Int, _ body: (RecordDecoder) throws(RecordError) -> R) throws(RecordError) -> R {
        let box = free.withLock { $0.popLast() } ?? Box(decoder: RecordDecoder(decompressedBytesMax: limit))
        defer { free.withLock { if $0.count < 4 { $0.append(box) } } }
        return try body(box.decoder)
    }
}
