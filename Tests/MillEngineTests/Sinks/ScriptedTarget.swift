import MillBase
import MillCatalog
import MillColumnar
import MillConnectorKit
import MillConnectors
import MillDataflow
import MillEngine
import Synchronization

/// The target of a sink in memory, which takes epochs in one step and does what a test tells it.
final class ScriptedTarget: SinkConnector {
    enum Call: String, CaseIterable, Sendable { case prepare, open, write, commit, maintain, clear }

    struct State {
        /// What is visible: of each row how often it is there. A row without its key is one text.
        var rows: [String: Int64] = [:]
        /// All that was ever added and taken back, in order.
        var history: [(epoch: Int64, row: String, weight: Int64)] = []
        var committedEpoch: Int64?
        var commits: [Int64] = []
        var clears = 0
        var isOpen = false
        var incarnation: String? = "first"
        /// A call that it answers with an error, before it has done anything; of a commit also after it.
        var fault: (@Sendable (Call) -> SQLError?)?
        var lostAnswer: (@Sendable () -> SQLError?)?
        /// Rows that it refuses.
        var refuses: (@Sendable (String) -> String?)?
        /// Held up here.
        var onCall: (@Sendable (Call) -> Void)?
        var key: [Int]?
        var waiters: [(condition: @Sendable (borrowing State) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
        /// Who writes to it now; others are of an earlier life.
        var generation = 0
        /// Broken promises of whoever writes.
        var problems: [String] = []
    }

    let state = Mutex(State())
    /// Of this life of the server.
    private let generation: Int
    private let shared: ScriptedTarget?

    init() {
        shared = nil
        generation = 0
    }

    /// The same target as an engine sees it until the next one does.
    private init(of shared: ScriptedTarget, generation: Int) {
        self.shared = shared
        self.generation = generation
    }

    private var whole: ScriptedTarget { shared ?? self }

    /// For a new life of the server: those before reach it no more.
    func nextLife() -> ScriptedTarget {
        let generation = state.withLock { state in
            state.generation += 1
            state.isOpen = false
            return state.generation
        }
        return ScriptedTarget(of: self, generation: generation)
    }

    func change(_ body: (inout State) -> Void) {
        let ready = state.withLock { state in
            body(&state)
            return Self.ready(&state)
        }
        for continuation in ready { continuation.resume() }
    }

    private static func ready(_ state: inout State) -> [CheckedContinuation<Void, Never>] {
        var ready: [CheckedContinuation<Void, Never>] = []
        var waiting: [(condition: @Sendable (borrowing State) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
        for waiter in state.waiters { if waiter.condition(state) { ready.append(waiter.continuation) } else { waiting.append(waiter) } }
        state.waiters = waiting
        return ready
    }

    /// Waits for what it holds.
    func until(_ condition: @escaping @Sendable (borrowing State) -> Bool) async {
        await withCheckedContinuation { continuation in
            let isMet = state.withLock { state in
                if condition(state) { return true }
                state.waiters.append((condition, continuation))
                return false
            }
            if isMet { continuation.resume() }
        }
    }

    /// What a sink was made for.
    func note(key: [Int]?) { whole.change { $0.key = key } }

    var rows: [String: Int64] { state.withLock { $0.rows } }

    fileprivate func call(_ call: Call) throws(SQLError) {
        whole.state.withLock { $0.onCall }?(call)
        let (isGone, error) = whole.state.withLock { ($0.generation != generation && shared != nil, $0.fault?(call)) }
        if isGone { throw SQLError(.connectionFailure, "it belongs to another life") }
        if let error { throw error }
    }

    // MARK: SinkConnector

    func prepare() throws(SQLError) -> SinkTarget {
        try call(.prepare)
        return SinkTarget(incarnation: whole.state.withLock { $0.incarnation }, notices: [])
    }

    func open(sink: SinkName, incarnation: String?) throws(SQLError) -> any SinkWriter {
        try call(.open)
        whole.change { state in
            if state.isOpen { state.problems.append("opened twice") }
            state.isOpen = true
            if sink.description.count != 32 { state.problems.append("the sink is called \(sink)") }
            if incarnation != state.incarnation { state.problems.append("told the incarnation \(incarnation ?? "none")") }
        }
        return ScriptedWriter(self)
    }

    private final class ScriptedWriter: SinkWriter {
        private let target: ScriptedTarget
        private let first: Int64?
        private var staged: [(epoch: Int64, row: String, weight: Int64)] = []
        private var clearsFirst = false
        private var isClosed = false

        init(_ target: ScriptedTarget) {
            self.target = target
            first = target.whole.state.withLock { $0.committedEpoch }
        }

        var committedEpoch: Int64? { first }
        var pending: SinkPending { SinkPending(rowCount: Int64(staged.count), byteCount: Int64(staged.count * 10)) }

        private func note(_ problem: String) { target.whole.change { $0.problems.append(problem) } }

        func write(_ batch: DeltaBatch, epoch: Int64) throws(SQLError) -> [RefusedRow] {
            try target.call(.write)
            let committed = target.whole.state.withLock { $0.committedEpoch } ?? 0
            if epoch <= committed || epoch < staged.last?.epoch ?? 0 {
                note("epoch \(epoch) was written behind \(committed), \(staged.last?.epoch ?? 0)")
            }
            if staged.last.map({ $0.epoch == epoch && $0.weight > 0 }) ?? false, (0..<batch.count).contains(where: { batch.weight($0) < 0 })
            {
                note("rows are taken back after others were added")
            }
            let fields = batch.columns.indices.map { Field("c\($0)", batch.columns[$0].type) }
            var refused: [RefusedRow] = []
            for row in 0..<batch.count {
                let text = LateRows.json(batch, row, fields)
                if batch.weight(row) == 0 { note("a row has no weight") }
                if let reason = target.whole.state.withLock({ $0.refuses })?(text) {
                    refused.append(RefusedRow(row: row, column: nil, reason: reason))
                } else {
                    staged.append((epoch, text, batch.weight(row)))
                }
            }
            return refused
        }

        func clear() throws(SQLError) {
            try target.call(.clear)
            staged = []
            clearsFirst = true
        }

        func commit(through epoch: Int64) throws(SQLError) {
            try target.call(.commit)
            if isClosed { note("a closed writer commits") }
            let (staged, clearsFirst) = (staged, clearsFirst)
            let lost: SQLError? = target.whole.state.withLock { $0.lostAnswer }?()
            target.whole.change { state in
                guard state.generation == target.generation || target.shared == nil else { return }
                if epoch <= state.committedEpoch ?? 0 {
                    state.problems.append("epoch \(epoch) is committed behind \(state.committedEpoch ?? 0)")
                }
                if clearsFirst {
                    state.rows = [:]
                    state.clears += 1
                }
                for change in staged {
                    let sum = state.rows[change.row, default: 0] + change.weight
                    state.rows[change.row] = sum == 0 ? nil : sum
                    state.history.append(change)
                }
                state.committedEpoch = epoch
                state.commits.append(epoch)
            }
            self.staged = []
            self.clearsFirst = false
            if let lost { throw lost }
        }

        func maintain() throws(SQLError) { try target.call(.maintain) }

        func close() {
            if isClosed { note("closed twice") }
            isClosed = true
            target.whole.change { state in if state.generation == target.generation || target.shared == nil { state.isOpen = false } }
        }
    }
}

/// Sources and targets by the names of their connectors.
struct SinkAssembly: SourceAssembly {
    var connectors: [String: ScriptedConnector] = [:]
    let targets: [String: ScriptedTarget]

    init(connectors: [String: ScriptedConnector] = [:], targets: [String: ScriptedTarget]) {
        (self.connectors, self.targets) = (connectors, targets)
    }

    func source(
        name: String, options: [CatalogOption], fields: [Field], catalogs: @escaping IcebergSource.CatalogFinder
    ) throws(SQLError) -> AssembledSource {
        try ScriptedAssembly(connectors: connectors).source(name: name, options: options, fields: fields, catalogs: catalogs)
    }

    func sink(options: [String: String], of relation: SinkConnectors.Relation) throws(SQLError) -> any SinkConnector {
        guard let target = targets[options["connector"] ?? ""] else {
            throw SQLError(.invalidParameterValue, "there is no connector \"\(options["connector"] ?? "")\"")
        }
        if let unknown = options.keys.sorted().first(where: { $0 != "connector" && $0 != "s3.secret.key" }) {
            throw SQLError(.invalidParameterValue, "connector \"memory\" has no option \"\(unknown)\"")
        }
        target.note(key: relation.key)
        return target
    }
}
