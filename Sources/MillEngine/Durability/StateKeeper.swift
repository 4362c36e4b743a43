package import MillBase
package import MillDataflow
package import MillIO
package import MillStore
import Synchronization

/// Keeps the state of jobs beyond the process: a checkpoint at intervals while something changes, and a journal entry for every epoch
/// (`docs/internals/state.md`).
///
/// Threading: `willPublish` runs on the conductor's thread; a checkpoint is written on a thread of its own, one at a time.
package final class StateKeeper: Sendable {
    package struct Options: Sendable {
        /// Time from one checkpoint to the next.
        package var interval: Duration
        /// Time from a write that failed to the next try.
        package var retryAfter: Duration

        package init(interval: Duration = .seconds(1), retryAfter: Duration = .milliseconds(250)) {
            self.interval = interval
            self.retryAfter = retryAfter
        }
    }

    package let store: StateStore
    /// Where sinks keep what they have to send.
    let outboxDirectory: String
    /// The checkpoint found at the start; nil in a new directory.
    package let recovered: RecoveredState?
    /// The last epoch that an earlier process published: nobody reads before everything is there again.
    package let lastPublished: EpochPosition
    /// The epochs from the checkpoint to that one: what closes by watermarks has them again one by one.
    let journaled: [EpochPosition]
    private let journal: EpochJournal
    private let options: Options
    private let clock: any Clock
    private let state: Mutex<State>

    private struct State {
        /// What the last checkpoint holds.
        var checkpointed: EpochPosition
        /// In the log of DML, of the checkpoint before: it may be needed once more.
        var coveredPosition = DMLPosition.zero
        var lastReport: CheckpointReport?
        /// When the last checkpoint was done, in microseconds since 1970, and how long writing it took.
        var lastDone: (atMicros: Int64, durationNanos: UInt64)?
        /// Why the checkpoint in work cannot be written now, or the last one was given up.
        var trouble: IOFailure?
        /// Why an epoch that has run cannot be noted, and so not be published.
        var journalTrouble: IOFailure?
        var isStopping = false
    }

    /// Opens `state` in a data directory: soon done, however much state there is.
    /// - Throws: 58030 when it cannot be read, XX001 when it is damaged.
    package init(environment: Environment, directory: String, options: Options = Options()) throws(SQLError) {
        self.options = options
        clock = environment.clock
        outboxDirectory = directory.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/") + "/outbox"
        store = StateStore(directory: directory, files: environment.files)
        recovered = try store.newestCheckpoint()
        journal = EpochJournal(directory: directory, files: environment.files)
        do throws(IOFailure) {
            journaled = try journal.epochs(since: recovered?.record)
            lastPublished = EpochJournal.last(of: journaled)
            try journal.begin(checkpoint: recovered?.record.number ?? 0, with: journaled)
        } catch { throw error.sqlError }
        state = Mutex(State(checkpointed: recovered?.record.position ?? .start))
    }

    /// Finds what the checkpoint has of each table: before any is filled, and before a checkpoint is made.
    /// - Throws: 58030 when it cannot be read, 57P01 when `RecoveredState.cancel` came before.
    func findBlocks() throws(SQLError) {
        if let recovered { try store.findBlocks(of: recovered) }
    }

    /// Why nothing can be written at present, for SHOW JOBS and health; nil when all is well.
    package var trouble: SQLError? { state.withLock { $0.journalTrouble ?? $0.trouble }?.sqlError }

    /// Why no epoch can be published at present: what is written would not become visible.
    var publishingTrouble: SQLError? { state.withLock { $0.journalTrouble }?.sqlError }

    /// Transactions up to here are in the last two checkpoints, so the log of DML need not keep them.
    package var coveredPosition: DMLPosition { state.withLock { $0.coveredPosition } }

    package var lastReport: CheckpointReport? { state.withLock { $0.lastReport } }

    /// When the last checkpoint of this process was done, in microseconds since 1970, and how long writing it took.
    package var lastDone: (atMicros: Int64, durationNanos: UInt64)? { state.withLock { $0.lastDone } }

    /// Time from one checkpoint to the next.
    var interval: Duration { options.interval }

    // MARK: Epochs

    /// Whether an epoch can be noted once it has run: while the disk is full none runs, and readers have the last one.
    package func mayOpenEpoch() -> Bool { isJournalWell { () throws(IOFailure) in try journal.prepare() } }

    /// Notes an epoch that is about to be published.
    /// - Returns: false when it could not be noted: it must not be seen yet.
    package func willPublish(_ record: EpochRecord) -> Bool { isJournalWell { () throws(IOFailure) in try journal.append(record.position) } }

    private func isJournalWell(_ body: () throws(IOFailure) -> Void) -> Bool {
        do throws(IOFailure) {
            try body()
            state.withLock { $0.journalTrouble = nil }
            return true
        } catch {
            state.withLock { $0.journalTrouble = error }
            return false
        }
    }

    /// An epoch that could not be noted is tried again when the conductor is woken.
    private func retryEpoch(_ conductor: Conductor) {
        if state.withLock({ $0.journalTrouble != nil }) { conductor.wake() }
    }

    private func note(_ failure: IOFailure?) { state.withLock { $0.trouble = failure } }

    // MARK: Checkpoints

    /// Asks for checkpoints until the task is cancelled.
    package func run(_ checkpoint: @escaping @Sendable () async -> Void) async {
        while !Task.isCancelled {
            // Only cancellation throws.
            guard (try? await clock.sleep(for: options.interval)) != nil else { return }
            await checkpoint()
        }
    }

    /// Makes a checkpoint now, if anything was published since the last one.
    /// - Parameters:
    ///   - kept: jobs that do not run, whose state stays as the last checkpoint has it.
    ///   - notes: what is kept beside tables, as of now; given the sinks whose outboxes the checkpoint has.
    /// - Returns: nil when there was nothing to do, or it failed: `trouble` then says why.
    package func checkpoint(_ conductor: Conductor, keeping kept: Set<ObjectID>, notes: @Sendable (Set<ObjectID>) -> [StateNote]) async -> CheckpointReport? {
        retryEpoch(conductor)
        let last = state.withLock { $0.checkpointed }
        guard conductor.published.epoch > last.epoch else { return nil }
        guard let sealed = await conductor.seal(everything: store.isDistrusted) else { return nil }
        var checkpoint = Checkpoint(
            position: sealed.record.position, workers: conductor.workerCount, tables: sealed.tables, notes: sealed.notes + notes(Set(sealed.outboxes.map(\.outbox.id))))
        checkpoint.kept = kept
        checkpoint.outboxes = sealed.outboxes
        return await withCheckedContinuation { [checkpoint] continuation in
            do throws(ThreadFailure) {
                _ = try PinnedThread(stackBytes: 1 << 20) { continuation.resume(returning: self.write(checkpoint, for: conductor)) }
            } catch {
                // What is sealed must be written. Here it holds up others, but they would not get a thread either.
                continuation.resume(returning: write(checkpoint, for: conductor))
            }
        }
    }

    private func write(_ checkpoint: Checkpoint, for conductor: Conductor) -> CheckpointReport? {
        let began = clock.monotonicNanos
        do throws(IOFailure) {
            let report = try store.write(checkpoint) { [self] failure in
                note(failure)
                retryEpoch(conductor)
                return waitBeforeRetry()
            }
            note(nil)
            state.withLock { state in
                state.coveredPosition = state.checkpointed.dmlPosition
                state.checkpointed = checkpoint.position
                state.lastReport = report
                state.lastDone = (clock.nowMicros, clock.monotonicNanos - began)
            }
            // Without a new one the old journal goes on: it only takes longer to read.
            try? journal.begin(checkpoint: report.number, keeping: Set(checkpoint.position.offsets.keys))
            return report
        } catch {
            note(error)
            return nil
        }
    }

    /// - Returns: whether to try again.
    private func waitBeforeRetry() -> Bool {
        guard !state.withLock({ $0.isStopping }) else { return false }
        let done = Semaphore()
        let (clock, duration) = (clock, options.retryAfter)
        Task {
            try? await clock.sleep(for: duration)  // Nobody cancels it.
            done.signal()
        }
        done.wait()
        return !state.withLock { $0.isStopping }
    }

    /// A checkpoint that waits for space is given up.
    package func stop() { state.withLock { $0.isStopping = true } }
}

extension EpochRecord {
    /// What checkpoints and the journal keep of it.
    package var position: EpochPosition {
        EpochPosition(epoch: epoch, openedAtMicros: openedAtMicros, dmlPosition: dmlPosition, offsets: offsets, watermarks: watermarks)
    }
}
