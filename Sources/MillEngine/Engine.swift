import CMemory
import MillBase
package import MillCatalog
import MillColumnar
import MillConnectorKit
package import MillDataflow
package import MillIO
package import MillLog
package import MillMeta
import MillOptimizer
import MillPlan
import MillSQL
package import MillStore
import Synchronization

/// The database without its wires: catalog, jobs, sources, and what statements do to them.
///
/// Control plane only: an actor that binds, plans and gives orders to the `Conductor`; rows never pass through it. Definitions
/// change one statement at a time (`definitions` is the lock, held across awaits), queries run beside each other on threads of their
/// own.
package actor Engine {
    package struct Options: Sendable {
        package var workerCount: Int
        package var conductor: Conductor.Options
        /// Bytes of rejected records kept per source; the oldest go first, and the count of all stays.
        package var rejectBytesMax: Int
        /// Bytes of replayed records kept per source; a statement that would go beyond them fails.
        package var replayBytesMax: Int
        /// Bytes that a sink's outbox may take on disk before the sink is given up.
        package var outboxBytesMax: Int
        /// How long a statement waits for what a source holds, or for the target of CREATE SINK. Connectors have shorter limits of their own.
        package var answerTimeout = Duration.seconds(60)
        /// How often sources are asked for new splits, when their connector cannot tell by itself.
        package var splitDiscoveryNanos: UInt64

        package init(
            workerCount: Int = 1, conductor: Conductor.Options = Conductor.Options(), rejectBytesMax: Int = 64 << 20,
            replayBytesMax: Int = 256 << 20, outboxBytesMax: Int = 10 << 30, splitDiscoveryNanos: UInt64 = 1_000_000_000
        ) {
            self.outboxBytesMax = outboxBytesMax
            self.workerCount = workerCount
            self.conductor = conductor
            self.rejectBytesMax = rejectBytesMax
            self.replayBytesMax = replayBytesMax
            self.splitDiscoveryNanos = splitDiscoveryNanos
        }
    }

    package let environment: Environment
    package let options: Options
    package nonisolated let conductor: Conductor
    nonisolated let assembly: any SourceAssembly
    /// Of tables that lie elsewhere.
    nonisolated let attached: AttachedCatalogs
    /// Where definitions outlive the process; nil when they need not.
    let meta: MetaStore?
    /// Where the state of jobs does.
    nonisolated let keeper: StateKeeper?
    let sources = SourceRegistry()
    nonisolated let rejects: RejectStore
    /// Stores what any reader of a source rejects.
    nonisolated let onRejects: SourceInput.RejectHandler
    var catalog: Catalog { didSet { planCache.empty() } }
    let definitions = AsyncLock()
    /// Cancelled when the engine has stopped: who only tidies up does not wait any more.
    nonisolated let ending = CancellationHook()
    nonisolated let locks = WriteLocks()
    /// For queries and for what blocks.
    nonisolated let threads = ThreadPool()
    /// Where transactions are made durable; nil for an engine without a data directory.
    nonisolated let dmlLog: DMLLog?
    /// Transactions that are ordered and not yet visible, by position.
    var staged: [StagedTransaction] = []
    /// The last transaction that was ordered.
    var lastPosition: DMLPosition
    /// The last transaction that changed a table, by table.
    var lastChanges: [ObjectID: DMLPosition] = [:]
    /// Where side splits of sources are kept; nil in memory alone.
    let replayDirectory: String?
    /// Side splits by source.
    var replayLogs: [ObjectID: ReplayLog] = [:]
    /// The next number for a row of a table without a key.
    var nextRowID: Int64
    /// Views that have not yet taken over what was there before them, and tables that CREATE TABLE AS fills; they cannot be used.
    var creating: Set<ObjectID> = []
    /// Stream plans of tables and materialized views.
    var plans: [ObjectID: StreamPlan] = [:] { didSet { planCache.empty() } }
    nonisolated let planCache = PlanCache()
    /// Of the plans of materialized views as they are stored.
    var planChecksums: [ObjectID: UInt32] = [:]
    /// Ends a job's work in the middle of an epoch, by job.
    var abandonments: [ObjectID: JobAbandonment] = [:]
    var restoration: Restoration
    /// What keeps running sources, and views that catch up, from getting on.
    var troubles: [ObjectID: Trouble] = [:]
    /// Sinks, those that do not run among them.
    var sinks: [ObjectID: Sink] = [:]
    nonisolated let outboxes = OutboxShelf()
    /// Sinks that no checkpoint has yet.
    var creatingSinks: Set<ObjectID> = []
    /// Sinks that are paused: what they read goes on.
    var pausedSinks: [ObjectID: StoredPause] = [:]
    /// Sources and views that are paused.
    var paused: [ObjectID: StoredPause] = [:]
    /// Ends of splits that nobody reads at present, by source.
    var unreadEnds: [ObjectID: [SourceSplit: SplitOffset]] = [:]
    private var discovery: Task<Void, Never>?
    private var checkpoints: Task<Void, Never>?
    /// Lets watermarks go on without splits that have become idle.
    private var idleness: Task<Void, Never>?
    /// Sources that have not yet answered which splits they have.
    private var discovering: [ObjectID: Discovery] = [:]

    /// How often a source that is being asked for its splits is to be asked.
    private enum Discovery { case once, again }

    /// - Parameters:
    ///   - assembly: makes connectors and decoders from options: the one place that knows them all.
    ///   - meta: where definitions are kept; without one they end with the engine.
    ///   - keeper: where the state of jobs is kept.
    ///   - dmlLog: where transactions are made durable; without one they end with the engine.
    ///   - replayDirectory: where replayed rejects are made durable; without one they end with the engine.
    /// - Throws: where a worker's thread could not be started.
    package init(
        environment: Environment, options: Options = Options(), assembly: any SourceAssembly, meta: MetaStore? = nil, keeper: StateKeeper? = nil,
        dmlLog: DMLLog? = nil, replayDirectory: String? = nil
    ) throws(ThreadFailure) {
        self.replayDirectory = replayDirectory
        self.dmlLog = dmlLog
        lastPosition = dmlLog?.durablePosition ?? .zero
        nextRowID = dmlLog?.nextRowID ?? 1
        self.environment = environment
        restoration = Restoration(startedMicros: environment.clock.nowMicros)
        self.options = options
        self.assembly = assembly
        attached = AttachedCatalogs(assembly)
        self.meta = meta
        self.keeper = keeper
        catalog = Catalog(systemObjects: SystemRelations.all.map(\.object))
        let rejects = RejectStore(bytesMaxPerSource: options.rejectBytesMax)
        self.rejects = rejects
        let sources = sources
        let clock = environment.clock
        let workerCount = options.workerCount
        let onRejects: SourceInput.RejectHandler = { rejects.add($1, source: $0, nowMicros: clock.nowMicros) }
        self.onRejects = onRejects
        var conducting = options.conductor
        if let keeper {
            conducting.mayOpen = { keeper.mayOpenEpoch() }
            conducting.willPublish = { keeper.willPublish($0) }
        }
        conductor = try Conductor(workerCount: workerCount, clock: clock, options: conducting) { (id, worker, onData) throws(SQLError) in
            try sources.makeInput(id, worker: worker, workerCount: workerCount, onData: onData, onRejects: onRejects)
        }
    }

    /// Begins looking for new splits of running sources, trying again those that failed, and giving memory back that is no longer needed.
    package func start() {
        guard discovery == nil else { return }
        let period = options.splitDiscoveryNanos
        discovery = Task { [weak self] in
            while !Task.isCancelled {
                try? await Task.sleep(nanoseconds: period)  // Cancellation ends the loop by its condition.
                await self?.discoverSplits()
                await self?.supervise()
                mill_large_trim()
            }
        }
        if let keeper { checkpoints = Task { [weak self] in await keeper.run { [weak self] in _ = await self?.checkpoint() } } }
    }

    /// Begins to look whether splits of sources with watermarks have become idle: nothing else tells that nothing comes.
    func watchIdleness() {
        guard idleness == nil else { return }
        let (clock, conductor) = (environment.clock, conductor)
        let pause = Duration.nanoseconds(Int64(clamping: max(options.conductor.idleNanos / 4, 10_000_000)))
        idleness = Task {
            // Only cancellation throws.
            while (try? await clock.sleep(for: pause)) != nil { if conductor.waitsForIdleness { conductor.wake() } }
        }
    }

    /// Ends all work after a last checkpoint.
    package func stop() async {
        discovery?.cancel()
        discovery = nil
        idleness?.cancel()
        idleness = nil
        checkpoints?.cancel()
        // Who waits for state, or reads it, ends.
        restoration.gate.fail(.shuttingDown)
        if !restoration.gate.isOpen { keeper?.recovered?.cancel() }
        // Before what follows: a checkpoint that waits for space would otherwise be waited for.
        keeper?.stop()
        await checkpoints?.value
        checkpoints = nil
        await checkpoint()
        restoration.cancel()
        await stopSinks()
        for abandonment in abandonments.values { abandonment.abandon() }
        ending.cancel()
        conductor.stop()
    }

    /// Makes a checkpoint now, if anything was published since the last one. While the last one is still being read it stays what it is.
    @discardableResult
    package func checkpoint() async -> CheckpointReport? {
        guard restoration.gate.isOpen else { return nil }
        let (rejects, sources, outboxes) = (rejects, sources, outboxes)
        let held = restoration.held
        guard
            let keeper,
            let report = await keeper.checkpoint(
                conductor, keeping: Set(held.keys),
                notes: { sealed in
                    rejects.notes + HeldTables.notes(held) + SourceIncarnations.notes(sources.all) + outboxes.notes(besides: sealed)
                })
        else { return nil }
        await noteSinks(held: report.position.epoch)
        // What cannot be removed now is removed later.
        if held.isEmpty { try? dmlLog?.discard(upTo: keeper.coveredPosition) }
        return report
    }

    /// Asks every source for its splits, each by itself: one that is slow to answer delays no other, and is not asked twice.
    private func discoverSplits() {
        for definition in sources.all where discovering[definition.id] == nil { splitsMayHaveChanged(definition) }
    }

    /// Looks for new splits of a source; while somebody does already, once more afterwards.
    func splitsMayHaveChanged(_ definition: SourceDefinition) {
        guard discovering[definition.id] == nil else {
            discovering[definition.id] = .again
            return
        }
        Task {
            repeat {
                discovering[definition.id] = .once
                await discoverSplits(of: definition)
            } while discovering[definition.id] == .again
            discovering[definition.id] = nil
        }
        discovering[definition.id] = .once
    }

    /// Hands splits that did not exist at CREATE SOURCE to the workers; they are read from their beginning.
    private func discoverSplits(of definition: SourceDefinition) async {
        guard let splits = try? await offActor({ () throws(SQLError) in try definition.connector.currentSplits() }) else {
            unreadEnds[definition.id] = nil
            return  // The broker is away; readers say so, and the next round asks again.
        }
        await handOver(splits, of: definition)
        await noteUnreadEnds(of: definition, splits)
    }

    /// Gives the workers those of a source's splits that they do not have yet.
    func handOver(_ splits: [SourceSplit], of definition: SourceDefinition) async {
        let fresh = sources.add(splits, to: definition.id)
        guard !fresh.isEmpty else { return }
        let workerCount = options.workerCount
        let sources = sources
        _ = try? await conductor.onWorkers { circuit in  // After a stop nobody reads them.
            let mine = sources.splits(of: definition.id, on: circuit.here, workerCount: workerCount).filter(fresh.contains)
            circuit.add(mine, to: definition.id)
        }
        conductor.wake()
    }

    /// The catalog as it is now, with the relations that go with each source and job.
    package var reader: any CatalogReader { EngineCatalog(catalog: catalog) }

    /// The functions that answer from the catalog as it is now.
    func catalogFunctions(_ session: SessionContext) -> CatalogLookup { CatalogLookup(session.systemContext(catalog)) }

    /// Runs blocking work (a broker's answer, a file) away from the actor's thread.
    nonisolated func offActor<T: Sendable>(_ body: @escaping @Sendable () throws(SQLError) -> T) async throws(SQLError) -> T {
        let result: Result<T, SQLError> = await withCheckedContinuation { continuation in
            do throws(ThreadFailure) {
                try threads.run {
                    do throws(SQLError) { continuation.resume(returning: .success(try body())) } catch { continuation.resume(returning: .failure(error)) }
                }
            } catch { continuation.resume(returning: .failure(error.sqlError)) }
        }
        return try result.get()
    }

    /// The same, for no longer than a time and until the statement is cancelled; the work then ends by itself and comes to nothing.
    /// - Throws: 57014, and 08006 when the time is over.
    nonisolated func offActor<T: Sendable>(
        for limit: Duration, unless cancellation: CancellationHook, what: String, _ body: @escaping @Sendable () throws(SQLError) -> T
    ) async throws(SQLError) -> T {
        let clock = environment.clock
        let result: Result<T, SQLError> = await withCheckedContinuation { continuation in
            let answer = FirstAnswer(continuation)
            let timer = Task {
                // Only cancellation throws.
                guard (try? await clock.sleep(for: limit)) != nil else { return }
                answer.give(.failure(SQLError(.connectionFailure, "\(what) does not answer within \(limit.components.seconds) seconds")))
            }
            cancellation.onCancel { answer.give(.failure($0.error)) }
            Task {
                do throws(SQLError) { answer.give(.success(try await self.offActor(body))) } catch { answer.give(.failure(error)) }
                timer.cancel()
            }
        }
        return try result.get()
    }
}
