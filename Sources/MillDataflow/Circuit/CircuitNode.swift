package import MillBase
package import MillColumnar

/// How many nodes of one worker have not ended the running epoch.
package final class OpenNodes {
    package var count = 0
    package init() {}
}

/// One operator in a worker's graph, its consumers, and how far it is in the running epoch.
package final class CircuitNode {
    package let name: String
    package let job: ObjectID
    package let operation: any Operator
    package let errors: OperatorErrors
    /// Who takes the output: a node and which of its inputs.
    package private(set) var consumers: [(node: CircuitNode, input: Int)] = []
    /// How many inputs must end before the epoch can: local ones, and for an exchange one per peer.
    package private(set) var inputCount: Int
    private var openInputs: Int
    /// How many nodes of the same worker are still open; counted down once an epoch.
    package var openNodes: OpenNodes?
    /// Says when nobody wants the output any more; then the operator is not asked for the rest. nil in jobs, which run on for ever.
    package var isAbandoned: (() -> Bool)?
    /// Rows given out since the start, for SHOW JOBS.
    package private(set) var rowsOut: Int64 = 0

    package init(name: String, job: ObjectID, operation: any Operator, errors: OperatorErrors, inputCount: Int) {
        self.name = name
        self.job = job
        self.operation = operation
        self.errors = errors
        self.inputCount = inputCount
        openInputs = inputCount
    }

    package func connect(to node: CircuitNode, input: Int) { consumers.append((node, input)) }

    package func disconnect(job: ObjectID) { consumers.removeAll { $0.node.job == job } }

    package func openEpoch() {
        openInputs = inputCount
    }

    /// Takes rows in and passes on all that follows from them, depth first, so that they are still in the cache
    /// (`docs/decisions/009-depth-first-within-an-epoch.md`).
    package func accept(_ batch: DeltaBatch, input: Int) {
        if let isAbandoned, isAbandoned() { return }
        operation.push(batch, input: input, errors: errors)
        drain()
    }

    /// Passes on what the operator has ready.
    package func drain() {
        while let batch = operation.next(errors: errors) {
            guard batch.count > 0 else { continue }
            rowsOut += Int64(batch.count)
            for consumer in consumers { consumer.node.accept(batch, input: consumer.input) }
            if let isAbandoned, isAbandoned() { return }
        }
    }

    /// A local input has ended for this epoch; an exchange then tells its peers.
    package func localInputClosed() {
        (operation as? ExchangeOperator)?.closeLocalInput()
        inputClosed()
    }

    /// One input has ended for this epoch. When it was the last, so has this node, and with it its consumers' input.
    package func inputClosed() {
        openInputs -= 1
        guard openInputs == 0 else { return }
        if isAbandoned?() != true {
            operation.closeEpoch(errors: errors)
            drain()
        }
        openNodes?.count -= 1
        for consumer in consumers { consumer.node.localInputClosed() }
    }
}
