import MillBase

/// A thread that runs one `WorkerCircuit`: takes orders from the conductor, rows and barriers from its peers.
///
/// Between epochs it carries out orders one by one; in an epoch it also serves its peers. A message that belongs to an epoch this
/// worker has not been told to open yet is kept until it is. A worker never blocks on a send: mailboxes take any number, and an
/// epoch's budget bounds what can be in them.
final class Worker: Sendable {
    enum Message: Sendable {
        case peer(Epoch, PeerMessage)
        case openEpoch(Epoch, EpochBudget)
        /// Carried out on the worker's thread between epochs.
        case perform(@Sendable (WorkerCircuit) -> Void)
        case stop
    }

    let index: WorkerIndex
    let mailbox = Mailbox<Message>()

    init(index: WorkerIndex) { self.index = index }

    /// The thread's body. `epochDone` is called on it when this worker has done its part.
    func run(
        peers: [Worker], makeSource: @escaping @Sendable (ObjectID, WorkerIndex) throws(SQLError) -> SourceInput,
        epochDone: @escaping @Sendable (Epoch, WorkerIndex, EpochReport) -> Void
    ) {
        var current = Epoch.zero
        let circuit = WorkerCircuit(
            here: index, workerCount: peers.count, makeSource: { [index] (id) throws(SQLError) in try makeSource(id, index) },
            send: { worker, message in peers[worker.number].mailbox.send(.peer(current, message)) })
        var early: [(Epoch, PeerMessage)] = []
        var inEpoch = false
        var later: [Message] = []

        func handle(_ message: Message) -> Bool {
            switch message {
            case .stop: return false
            case .perform(let work): work(circuit)
            case .peer(let epoch, let message):
                if inEpoch, epoch == current { circuit.receive(message) } else { early.append((epoch, message)) }
            case .openEpoch(let epoch, let budget):
                current = epoch
                inEpoch = true
                circuit.openEpoch(budget) { later += serve() }
                let due = early.filter { $0.0 == epoch }
                early.removeAll { $0.0 == epoch }
                for (_, message) in due { circuit.receive(message) }
            }
            if inEpoch, circuit.isEpochDone {
                inEpoch = false
                epochDone(current, index, circuit.report)
            }
            return true
        }

        /// In the middle of reading: peers' rows are taken in, everything else waits.
        func serve() -> [Message] {
            var others: [Message] = []
            for message in mailbox.take() {
                if case .peer(let epoch, let message) = message, epoch == current { circuit.receive(message) } else { others.append(message) }
            }
            return others
        }

        while true {
            // What was set aside in the middle of reading came before what is in the mailbox now.
            var messages = later.isEmpty ? mailbox.receive() : later
            later = []
            while !messages.isEmpty {
                let message = messages.removeFirst()
                guard handle(message) else { return }
                messages = later + messages
                later = []
            }
        }
    }
}
