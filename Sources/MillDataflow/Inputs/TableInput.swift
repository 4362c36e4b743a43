package import MillColumnar

/// Where a table's DML enters its circuit: batches that the conductor put into one epoch.
package final class TableInput {
    package let node: CircuitNode
    private var pending: [DeltaBatch] = []

    package init(node: CircuitNode) { self.node = node }

    package func inject(_ batches: [DeltaBatch]) { pending += batches }

    package func emit() {
        for batch in pending { node.accept(batch, input: 0) }
        pending.removeAll()
    }
}
