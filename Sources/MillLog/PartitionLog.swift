import MillIO
import MillKafkaWire
import Synchronization

/// One partition: segments of record batches with ascending offsets, appended at the end and read anywhere.
///
/// Place in the path: producers' batches come in through `append`, unchanged but for their base offset; the engine's source
/// readers and the Kafka server take slices out through `read`, which are bytes of the file and nothing per record.
///
/// Invariants: offsets ascend over the segments, without gaps but for what compaction took out; nothing above `highWatermark` is read;
/// with `Flush.sync` everything below it is durable; an append's completion runs after the high watermark passed it, in append order;
/// no open transaction has a record below `lastStableOffset`.
///
/// Threading: any thread. `maintenance` is held by whoever takes segments away, for as long as that takes; `appender` for the length of a
/// write; `state` only for moments, so neither readers nor who brings something to append wait for the disk. Order of locks: maintenance, appender,
/// coordinator, state. Completions and listeners run without locks on the thread that flushed (or, with `Flush.os`, appended): they must
/// not block.
///
/// A crash leaves what docs/internals/log.md says; `PartitionLog+Recovery.swift` mends it.
package final class PartitionLog: Flushable {
    package let topic: String
    package let index: Int32
    let directory: String
    let environment: Environment
    let options: LogOptions
    let flusher: LogFlusher
    let coordinator: CoordinatorLog
    let tailBudget: TailBudget
    let decoders = DecoderPool()

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
        /// Records below are gone, or about to go with their segment.
        var startOffset: Int64
        var highWatermark: Int64
        var lastStableOffset: Int64
        var logEndOffset: Int64
        var transactions: TransactionIndex
        var config: TopicConfig
        /// Complete segments whose index file is not written yet.
        var sealed: [(segment: Segment, index: WireBytes)] = []
        var directoryDirty = false
        /// Set when the partition stopped; every call fails with it.
        var failure: LogError?
        /// What waits to be written, in its order.
        var pending: [PendingAppend] = []
        var pendingBytes = 0
        var waiters: [Waiter] = []
        var listeners: [UInt64: @Sendable (Int64) -> Void] = [:]
        var nextListener: UInt64 = 0
        /// Where the last few reads ended, which is where the next ones begin.
        var hints: [ReadHint] = []
        var nextHint = 0
        /// The last records, for their readers.
        var tail = LogTail()

        /// For segments that are gone, whose files the hints would keep open.
        mutating func forgetHints(to gone: [Segment]) {
            tail.forget(gone)
            hints.removeAll { hint in gone.contains { $0 === hint.segment } }
            nextHint = 0
        }
    }

    struct ReadHint {
        var offset: Int64
        var segment: Segment
        var position: Int
    }

    let maintenance = Mutex(())
    let appender: Mutex<Appender>
    let state: Mutex<State>

    init(
        topic: String, index: Int32, directory: String, environment: Environment, options: LogOptions, config: TopicConfig, flusher: LogFlusher,
        coordinator: CoordinatorLog, tailBudget: TailBudget, recovered: Recovered
    ) {
        self.topic = topic
        self.index = index
        self.directory = directory
        self.environment = environment
        self.options = options
        self.flusher = flusher
        self.coordinator = coordinator
        self.tailBudget = tailBudget
        appender = Mutex(Appender(active: recovered.active, nextOffset: recovered.nextOffset, producers: recovered.producers))
        var transactions = recovered.transactions
        let stable = transactions.lastStableOffset(highWatermark: recovered.nextOffset)
        state = Mutex(State(
            segments: recovered.segments, startOffset: recovered.startOffset, highWatermark: recovered.nextOffset, lastStableOffset: stable,
            logEndOffset: recovered.nextOffset, transactions: transactions, config: config, failure: recovered.failure))
    }

    /// The offset after the last record that may be read.
    package var highWatermark: Int64 { state.withLock { $0.highWatermark } }
    /// The offset after the last record that readers of committed records may read.
    package var lastStableOffset: Int64 { state.withLock { $0.lastStableOffset } }
    /// The first offset there is.
    package var logStartOffset: Int64 { state.withLock { $0.startOffset } }
    /// Why the partition is stopped, if it is.
    package var failure: LogError? { state.withLock { $0.failure } }
    /// Bytes of all segments.
    package var byteCount: Int { state.withLock { $0.segments.reduce(0) { $0 + $1.size } } }

    var nowMillis: Int64 { environment.clock.nowMicros / 1000 }

    /// Where readers end.
    package func readableEnd(_ isolation: ReadIsolation) -> Int64 { isolation == .committed ? lastStableOffset : highWatermark }

    /// From now on the topic has these settings.
    func adopt(_ config: TopicConfig) { state.withLock { $0.config = config } }

    /// An idempotent producer that has written here.
    package struct ActiveProducer: Sendable, Hashable {
        package var id: Int64
        package var epoch: Int16
        package var lastSequence: Int32
        package var lastAppendMillis: Int64
        /// Where its open transaction begins; -1 when there is none.
        package var transactionStart: Int64
    }

    /// Ascending by id.
    package var activeProducers: [ActiveProducer] {
        let known = appender.withLock { $0.producers.producers }
        let open = state.withLock { $0.transactions.open }
        return known.sorted { $0.key < $1.key }.map { id, producer in
            ActiveProducer(
                id: id, epoch: producer.epoch, lastSequence: producer.batches.last?.lastSequence ?? -1, lastAppendMillis: producer.lastAppendMillis,
                transactionStart: open[id] ?? -1)
        }
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

/// Which records a reader sees.
package enum ReadIsolation: Sendable, Hashable {
    /// All below the high watermark.
    case uncommitted
    /// Those below the last stable offset; the reader leaves out what belongs to an aborted transaction (`LogSlice.isAborted`).
    case committed
}

/// A listener's registration; ends with it.
package final class LogSubscription: Sendable {
    private let end: @Sendable () -> Void
    init(_ end: @escaping @Sendable () -> Void) { self.end = end }
    deinit { end() }
    /// Ends it now. A call that has begun on another thread may still be running.
    package func cancel() { end() }
}
