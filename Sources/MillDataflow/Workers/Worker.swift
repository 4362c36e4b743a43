import MillBase
import Synchronization

/// A thread that runs one `WorkerCircuit`: takes orders from the conductor; rows, barriers and records to decode from its peers.
///
/// Between epochs it carries out orders one by one; in an epoch it also serves its peers. A message that belongs to an epoch this
/// worker has not been told to open yet is kept until it is. A worker never blocks on a send, so workers cannot wait for each other
/// in a circle; one whose peers are behind with its rows reads no more in this epoch instead. What a join makes of the rows is not bounded.
final class Worker: Sendable {
    enum Message: Sendable {
        case peer(Epoch, PeerMessage)
        /// With `lends` workers that have read their share decode what others read.
        case openEpoch(Epoch, EpochBudget, EpochWatermarks, lends: Bool)
        /// Carried out on the worker's thread between epochs.
        case perform(@Sendable (WorkerCircuit) -> Void)
        case stop
    }

    /// A circuit as others than its thread may hold it.
    private struct Shared: @unchecked Sendable {
        // Who looks into it does so between two epochs, when all that its thread does is wait for a message.
        let circuit: WorkerCircuit
    }

    let index: WorkerIndex
    /// While the thread runs.
    private let shared = Mutex<Shared?>(nil)
    let mailbox = Mailbox<Message>()
    /// Batches and chunks of peers that this worker has not worked off. Barriers do not count: idle workers send one for each exchange of
    /// every job as soon as an epoch opens.
    private let waiting = Atomic<Int>(0)

    /// Batches that wait for one worker before the others stop reading: some 64 MB of rows at most, and 32,768 rows at least.
    private static let waitingMax = 64
    /// Batches and chunks that wait for a worker that has read its own before it is lent no more. With two it runs dry while the reader works
    /// off rows of peers, with eight they have left the cache when it comes to them.
    private static let aheadMax = 4

    init(index: WorkerIndex) { self.index = index }

    /// The thread's body. `epochDone` is called on it when this worker has done its part.
    func run(
        peers: [Worker], makeSource: @escaping @Sendable (ObjectID, WorkerIndex) throws(SQLError) -> SourceInput,
        epochDone: @escaping @Sendable (Epoch, WorkerIndex, EpochReport) -> Void
    ) {
        var current = Epoch.zero
        let circuit = WorkerCircuit(
            here: index, workerCount: peers.count, makeSource: { [index] (id) throws(SQLError) in try makeSource(id, index) },
            send: { worker, message in peers[worker.number].send(message, in: current) })
        let own = Shared(circuit: circuit)
        shared.withLock { $0 = own }
        defer { shared.withLock { $0 = nil } }
        var inbox = Inbox()
        var inEpoch = false

        func receive(_ message: PeerMessage) {
            circuit.receive(message)
            if message.isWork { waiting.subtract(1, ordering: .relaxed) }
        }

        func serve() {
            var left: [PeerMessage] = inbox.messages(of: current, mailbox.take()).reversed()
            // Each goes as soon as it is worked off, while the cache has its memory.
            while let message = left.popLast() { receive(message) }
        }

        func handle(_ message: Message) -> Bool {
            switch message {
            case .stop: return false
            case .perform(let work): work(circuit)
            case .peer(let epoch, let message):
                if inEpoch, epoch == current { receive(message) } else { inbox.keep(message, of: epoch) }
            case .openEpoch(let epoch, let budget, let watermarks, let lends):
                current = epoch
                inEpoch = true
                let takesMore: (WorkerIndex) -> Bool = { peers[$0.number].waiting.load(ordering: .relaxed) < Self.aheadMax }
                circuit.openEpoch(budget, watermarks: watermarks, takesMore: lends ? takesMore : nil) {
                    serve()
                    return peers.allSatisfy { $0.waiting.load(ordering: .relaxed) < Self.waitingMax }
                }
                serve()
            }
            if inEpoch, circuit.isEpochDone {
                inEpoch = false
                epochDone(current, index, circuit.report)
            }
            return true
        }

        while handle(inbox.next(from: mailbox)) {}
    }

    /// What was taken from the mailbox and is not handled yet.
    private struct Inbox {
        /// Messages of an epoch that is not open yet: older than all in `taken`.
        private var early: [(Epoch, PeerMessage)] = []
        /// The oldest last: what is handled goes.
        private var taken: [Message] = []

        mutating func keep(_ message: PeerMessage, of epoch: Epoch) { early.append((epoch, message)) }

        /// Waits for one when there is none.
        mutating func next(from mailbox: Mailbox<Message>) -> Message {
            while true {
                if let message = taken.popLast() { return message }
                taken = mailbox.receive().reversed()
            }
        }

        /// Takes out peers' rows and barriers of the running epoch, oldest first, so that no barrier overtakes the rows before it;
        /// everything else keeps its place.
        mutating func messages(of epoch: Epoch, _ fresh: [Message]) -> [PeerMessage] {
            var messages: [PeerMessage] = []
            early.removeAll { (of, message) in
                if of == epoch { messages.append(message) }
                return of == epoch
            }
            var left: [Message] = []
            for message in taken.reversed() + fresh {
                if case .peer(epoch, let message) = message { messages.append(message) } else { left.append(message) }
            }
            taken = left.reversed()
            return messages
        }
    }

    /// What the circuit is, without waking its thread; nil when that has not begun. Only for who keeps epochs from opening, and knows the
    /// last one and all orders since to be done.
    func look<T>(_ body: (WorkerCircuit) -> T) -> T? { shared.withLock { $0 }.map { body($0.circuit) } }

    /// A peer's message for this worker.
    private func send(_ message: PeerMessage, in epoch: Epoch) {
        if message.isWork { waiting.add(1, ordering: .relaxed) }
        mailbox.send(.peer(epoch, message))
    }
}
