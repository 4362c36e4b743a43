import MillBase
import MillColumnar
import MillConnectorKit
import MillIO
import MillStore
import Synchronization

/// What one sink's thread is told once.
struct SinkTask: Sendable {
    var name: SinkName
    var incarnation: String?
    var fields: Schema
    var commitEvery: Duration
    var commitRows: Int64?
    var commitBytes: Int64?
}

/// Brings a sink's outbox into its target, on a thread of its own.
///
/// Path: `Outbox` tells that a checkpoint has more; the frames of each epoch go through `SinkWriter.write`, and `commit` is called when it
/// is due. What the target would not take goes into `RefusedRowLog`, which is synced before the commit.
///
/// Steps, again and again: open; ask the target how far it is; pass over what it has; write what the last checkpoint holds; commit when
/// due; when nothing is left, `maintain` and wait. An error that may pass closes the target and begins with `open` again after a pause; any
/// other waits for RESUME.
///
/// Invariants: only epochs that a checkpoint holds are sent; `noteCommitted` follows the target's own word.
///
/// Threading: `run` on its thread; everything else by any.
final class SinkDelivery: Sendable {
    let outbox: Outbox
    let refused: RefusedRowLog
    private let task: SinkTask
    private let environment: Environment
    private let makeConnector: @Sendable () throws(SQLError) -> any SinkConnector
    private let state = Mutex(State())
    private let wakeup = Semaphore()
    private let thread = Mutex<PinnedThread?>(nil)
    private let ended = Semaphore()

    enum Phase: Sendable { case running, retrying, failed }

    private struct State {
        var isStopping = false
        var isPaused = false
        var isSignalled = false
        /// RESUME after a failure.
        var isResumed = false
        var status = Status()
    }

    struct Status: Sendable {
        var phase = Phase.running
        var reason: SQLError?
        var sinceMicros: Int64?
        var nextTryMicros: Int64?
        var totals = OutboxTotals()
        var commitCount: Int64 = 0
        var retryCount: Int64 = 0
        var errorCount: Int64 = 0
        /// Of work beside the commits.
        var maintenance: SQLError?
    }

    init(
        _ outbox: Outbox, _ refused: RefusedRowLog, _ task: SinkTask, environment: Environment,
        makeConnector: @escaping @Sendable () throws(SQLError) -> any SinkConnector
    ) {
        (self.outbox, self.refused, self.task) = (outbox, refused, task)
        self.environment = environment
        self.makeConnector = makeConnector
        let progress = outbox.progress
        state.withLock { state in
            state.status.totals = progress.totals
            state.status.commitCount = progress.commitCount
        }
    }

    var status: Status { state.withLock { $0.status } }

    // MARK: Control, by any thread

    func start() {
        outbox.onChange { [weak self] in self?.wake() }
        do throws(ThreadFailure) {
            let made = try PinnedThread(stackBytes: 2 << 20) { [self] in
                run()
                ended.signal()
            }
            thread.withLock { $0 = made }
        } catch { fail(error.sqlError) }
        wake()
    }

    func wake() {
        let isNew = state.withLock { state in
            defer { state.isSignalled = true }
            return !state.isSignalled
        }
        if isNew { wakeup.signal() }
    }

    func set(paused: Bool) {
        state.withLock { $0.isPaused = paused }
        wake()
    }

    /// After a failure it tries again.
    func resume() {
        state.withLock { $0.isResumed = true }
        wake()
    }

    func requestStop() {
        outbox.onChange(nil)
        state.withLock { $0.isStopping = true }
        wake()
    }

    /// Waits until its thread has ended, unless the target keeps it for too long; after `requestStop`.
    func awaitEnd(atMost limit: Duration) {
        guard thread.withLock({ $0 != nil }), ended.wait(atMost: limit) else { return }
        thread.withLock { thread in
            thread?.join()
            thread = nil
        }
    }

    private var isStopping: Bool { state.withLock { $0.isStopping } }
    private var mayGoOn: Bool { state.withLock { !$0.isStopping && !$0.isPaused } }

    /// Returns when woken, or after a time.
    private func wait(_ duration: Duration?) {
        var timer: Task<Void, Never>?
        if let duration {
            let clock = environment.clock
            timer = Task { [weak self] in
                // Only cancellation throws.
                if (try? await clock.sleep(for: duration)) != nil { self?.wake() }
            }
        }
        wakeup.wait()
        timer?.cancel()
        state.withLock { $0.isSignalled = false }
    }

    // MARK: The thread

    private func run() {
        var backoff = Self.freshBackoff
        while !isStopping {
            guard mayGoOn else {
                wait(nil)
                continue
            }
            do throws(SQLError) {
                try deliver { backoff = Self.freshBackoff }
            } catch {
                guard !isStopping else { break }
                state.withLock { $0.status.errorCount += 1 }
                if error.mayPass, error.sqlState != .dataCorrupted {
                    pauseBeforeRetry(error, &backoff)
                } else {
                    fail(error)
                    untilResumed()
                    backoff = Self.freshBackoff
                }
            }
        }
    }

    private static var freshBackoff: Backoff { Backoff(first: .milliseconds(500), last: .seconds(15)) }

    private func pauseBeforeRetry(_ error: SQLError, _ backoff: inout Backoff) {
        let pause = backoff.next(environment.random)
        let now = environment.clock.nowMicros
        let until = environment.clock.monotonicNanos + UInt64(pause / .nanoseconds(1))
        state.withLock { state in
            if state.status.phase != .retrying { state.status.sinceMicros = now }
            state.status.phase = .retrying
            state.status.reason = error
            state.status.nextTryMicros = now + pause.microseconds
            state.status.retryCount += 1
            state.isResumed = false
        }
        while !isStopping, case let now = environment.clock.monotonicNanos, now < until {
            if state.withLock({ $0.isResumed }) { break }
            wait(.nanoseconds(Int64(until - now)))
        }
    }

    private func fail(_ error: SQLError) {
        let now = environment.clock.nowMicros
        state.withLock { state in
            state.status.phase = .failed
            state.status.reason = error
            state.status.sinceMicros = now
            state.status.nextTryMicros = nil
            state.isResumed = false
        }
    }

    private func untilResumed() {
        while !state.withLock({ $0.isResumed || $0.isStopping }) { wait(nil) }
        state.withLock { state in
            state.isResumed = false
            state.status = state.status.runningAgain
        }
    }

    /// One opening of the target; returns when it is to stop or pause.
    private func deliver(onProgress: () -> Void) throws(SQLError) {
        let connector = try makeConnector()
        let writer = try connector.open(sink: task.name, incarnation: task.incarnation)
        defer { writer.close() }
        let run = DeliveryRun(outbox, refused, task, writer, environment)
        try run.passOverWhatIsThere()
        show(run)
        while mayGoOn {
            let isAtEnd = try run.writeDurable { mayGoOn }
            // A pause may be over by now that began in the middle of an epoch.
            guard mayGoOn, !run.isCut else { return }
            let due = run.timeToCommit
            if due == nil {
                run.settle()
            } else if due == .zero || run.isOverLimit {
                try run.commit()
                show(run)
                onProgress()
                if isAtEnd { maintain(writer) }
                continue
            }
            state.withLock { state in if state.status.phase != .running { state.status = state.status.runningAgain } }
            if isAtEnd { wait(due) }
        }
    }

    private func show(_ run: DeliveryRun) {
        let (totals, count) = (run.totals, run.commitCount)
        state.withLock { state in
            state.status.totals = totals
            state.status.commitCount = count
            state.status = state.status.runningAgain
        }
    }

    /// What fails here does not keep rows from being sent.
    private func maintain(_ writer: any SinkWriter) {
        var failure: SQLError?
        do throws(SQLError) { try writer.maintain() } catch { failure = error }
        state.withLock { $0.status.maintenance = failure }
    }
}

extension SinkDelivery.Status {
    fileprivate var runningAgain: SinkDelivery.Status {
        var status = self
        (status.phase, status.reason, status.sinceMicros, status.nextTryMicros) = (.running, nil, nil, nil)
        return status
    }
}
