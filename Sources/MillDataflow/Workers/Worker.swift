import MillBase
import Synchronization

/// One `WorkerCircuit` and who it takes orders from: the conductor; rows, barriers and records to decode come from its peers.
///
/// A thread of its own runs it (`run`), or the conductor's (`perform`, `runEpoch`). Between epochs it carries out orders one by one; in an
/// epoch it also serves its peers. A message that belongs to an epoch this worker has not been told to open yet is kept until it is. A worker
/// never blocks on a send, so workers cannot wait for each other in a circle; one whose peers are behind with its rows reads no more in this
/// epoch instead. What a join makes of the rows is not bounded.
final class Worker: Sendable {
    enum Message: Sendable {
        case peer(Epoch, PeerMessage)
        case openEpoch(Opening)
        /// Carried out on the worker's thread between epochs.
        case perform(@Sendable (WorkerCircuit) -> Void)
        case stop
    }

    /// An epoch to run.
    struct Opening: Sendable {
        var epoch: Epoch
        var budget: EpochBudget
        var watermarks: EpochWatermarks
        /// Workers that have read their share decode what others read.
        var lends: Bool
    }

    /// A worker's thread's own, as others may hold it.
    private struct Shared: @unchecked Sendable {
        // Its thread uses the circuit when it begins and ends; in between, of a thread of its own, from the conductor's message to the
        // answer, and of the conductor's while that has the turn. Whoever else looks into it has the turn, and looks between two epochs.
        let turns: WorkerTurns
    }

    let index: WorkerIndex
    /// Between `begin` and `end`.
    private let shared = Mutex<Shared?>(nil)
    let mailbox = Mailbox<Message>()
    /// Batches and chunks of peers that this worker has not worked off. Barriers do not count: idle workers send one for each exchange of
    /// every job as soon as an epoch opens.
    fileprivate let waiting = Atomic<Int>(0)

    /// Batches that wait for one worker before the others stop reading: some 64 MB of rows at most, and 32,768 rows at least.
    fileprivate static let waitingMax = 64
    /// Batches and chunks that wait for a worker that has read its own before it is lent no more. With two it runs dry while the reader works
    /// off rows of peers, with eight they have left the cache when it comes to them.
    fileprivate static let aheadMax = 4

    init(index: WorkerIndex) { self.index = index }

    /// The body of a thread of its own. `epochDone` is called on it when this worker has done its part.
    func run(
        peers: [Worker], makeSource: @escaping @Sendable (ObjectID, WorkerIndex) throws(SQLError) -> SourceInput, epochDone: (EpochReport) -> Void
    ) {
        let turns = begin(peers: peers, makeSource: makeSource)
        defer { end() }
        while true {
            switch turns.handle(turns.next()) {
            case .goesOn: continue
            case .epochDone(let report): epochDone(report)
            case .stopped: return
            }
        }
    }

    // MARK: On a thread that does other things as well

    /// Makes the circuit. It belongs to the thread that calls this, until that calls `end`.
    @discardableResult
    func begin(peers: [Worker], makeSource: @escaping @Sendable (ObjectID, WorkerIndex) throws(SQLError) -> SourceInput) -> WorkerTurns {
        let turns = WorkerTurns(self, peers: peers, makeSource: makeSource)
        let own = Shared(turns: turns)
        shared.withLock { $0 = own }
        return turns
    }

    func end() { shared.withLock { $0 = nil } }

    /// Runs an epoch to its end, which comes when all peers run it.
    func runEpoch(_ opening: Opening) -> EpochReport {
        let turns = begun
        var outcome = turns.handle(.openEpoch(opening))
        while true {
            switch outcome {
            case .goesOn: outcome = turns.handle(turns.next())
            case .epochDone(let report): return report
            case .stopped: preconditionFailure("a worker without a thread of its own is not stopped")
            }
        }
    }

    /// Between epochs.
    func perform<T>(_ work: (WorkerCircuit) -> T) -> T { work(begun.circuit) }

    private var begun: WorkerTurns {
        guard let own = shared.withLock({ $0 }) else { preconditionFailure("this worker has not begun") }
        return own.turns
    }

    // MARK: On any thread

    /// What the circuit is, without waking its thread; nil when that has not begun. Only for who keeps epochs from opening, and knows the
    /// last one and all orders since to be done.
    func look<T>(_ body: (WorkerCircuit) -> T) -> T? { shared.withLock { $0 }.map { body($0.turns.circuit) } }

    /// A peer's message for this worker.
    fileprivate func send(_ message: PeerMessage, in epoch: Epoch) {
        if message.isWork { waiting.add(1, ordering: .relaxed) }
        mailbox.send(.peer(epoch, message))
    }
}

/// What a worker's thread does, one message after the other. Confined to that thread, but for looks into the circuit.
final class WorkerTurns {
    enum Outcome {
        case goesOn
        /// This worker has done its part of the epoch.
        case epochDone(EpochReport)
        case stopped
    }

    let circuit: WorkerCircuit
    private let worker: Worker
    private let peers: [Worker]
    private let current: Current
    private var inEpoch = false
    private var inbox = Inbox()

    /// The epoch that was opened last.
    private final class Current { var epoch = Epoch.zero }

    init(_ worker: Worker, peers: [Worker], makeSource: @escaping @Sendable (ObjectID, WorkerIndex) throws(SQLError) -> SourceInput) {
        self.worker = worker
        self.peers = peers
        let current = Current()
        self.current = current
        circuit = WorkerCircuit(
            here: worker.index, workerCount: peers.count, makeSource: { (id) throws(SQLError) in try makeSource(id, worker.index) },
            send: { to, message in peers[to.number].send(message, in: current.epoch) })
    }

    /// The next message; waits for one.
    func next() -> Worker.Message { inbox.next(from: worker.mailbox) }

    func handle(_ message: Worker.Message) -> Outcome {
        switch message {
        case .stop: return .stopped
        case .perform(let work): work(circuit)
        case .peer(let epoch, let message):
            if inEpoch, epoch == current.epoch { receive(message) } else { inbox.keep(message, of: epoch) }
        case .openEpoch(let opening): open(opening)
        }
        guard inEpoch, circuit.isEpochDone else { return .goesOn }
        inEpoch = false
        return .epochDone(circuit.report)
    }

    private func open(_ opening: Worker.Opening) {
        current.epoch = opening.epoch
        inEpoch = true
        let takesMore: (WorkerIndex) -> Bool = { [peers] in peers[$0.number].waiting.load(ordering: .relaxed) < Worker.aheadMax }
        circuit.openEpoch(opening.budget, watermarks: opening.watermarks, takesMore: opening.lends ? takesMore : nil) {
            serve()
            return peers.allSatisfy { $0.waiting.load(ordering: .relaxed) < Worker.waitingMax }
        }
        serve()
    }

    /// What peers have sent so far.
    private func serve() {
        var left: [PeerMessage] = inbox.messages(of: current.epoch, worker.mailbox.take()).reversed()
        // Each goes as soon as it is worked off, while the cache has its memory.
        while let message = left.popLast() { receive(message) }
    }

    private func receive(_ message: PeerMessage) {
        circuit.receive(message)
        if message.isWork { worker.waiting.subtract(1, ordering: .relaxed) }
    }

    /// What was taken from the mailbox and is not handled yet.
    private struct Inbox {
        /// Messages of an epoch that is not open yet: older than all in `taken`.
        private var early: [(Epoch, PeerMessage)] = []
        /// The oldest last: what is handled goes.
        private var taken: [Worker.Message] = []

        mutating func keep(_ message: PeerMessage, of epoch: Epoch) { early.append((epoch, message)) }

        /// Waits for one when there is none.
        mutating func next(from mailbox: Mailbox<Worker.Message>) -> Worker.Message {
            while true {
                if let message = taken.popLast() { return message }
                taken = mailbox.receive().reversed()
            }
        }

        /// Takes out peers' rows and barriers of the running epoch, oldest first, so that no barrier overtakes the rows before it;
        /// everything else keeps its place.
        mutating func messages(of epoch: Epoch, _ fresh: [Worker.Message]) -> [PeerMessage] {
            var messages: [PeerMessage] = []
            early.removeAll { (of, message) in
                if of == epoch { messages.append(message) }
                return of == epoch
            }
            var left: [Worker.Message] = []
            for message in taken.reversed() + fresh {
                if case .peer(epoch, let message) = message { messages.append(message) } else { left.append(message) }
            }
            taken = left.reversed()
            return messages
        }
    }
}
