package import MillBase
import MillColumnar
import MillExpr
package import MillPlan
import MillStore

/// Stream plan -> circuit: one operator per plan node on every worker, connected as the plan says.
///
/// Inputs differ between a worker's live circuit and an ad-hoc run over snapshots, so they come from `RenderInputs`.
package protocol RenderInputs: AnyObject {
    /// Makes the node of a source, relation or table input; nil for every other operation.
    func inputNode(for index: NodeIndex, of job: JobPlan, errors: OperatorErrors) throws(SQLError) -> CircuitNode?
    var workerCount: Int { get }
    var here: WorkerIndex { get }
    func send(_ message: PeerMessage, to worker: WorkerIndex)
}

package struct RenderedJob {
    package let job: JobPlan
    package let errors: OperatorErrors
    package let late: LateRows
    /// By plan node.
    package let nodes: [CircuitNode]
    /// What checkpoints hold of it.
    let tables: [StoredTable]

    package var root: CircuitNode { nodes[nodes.count - 1] }

    /// - Throws: XX001 when stored state is damaged, 0A000 for what an operator cannot do; the circuit is then not connected to anything.
    package init(_ job: JobPlan, inputs: any RenderInputs) throws(SQLError) {
        self.job = job
        let errors = OperatorErrors()
        self.errors = errors
        let late = LateRows()
        self.late = late
        var nodes: [CircuitNode] = []
        for number in job.plan.nodes.indices {
            let index = NodeIndex(number)
            if let node = try inputs.inputNode(for: index, of: job, errors: errors) {
                nodes.append(node)
                continue
            }
            let planned = job.plan[index]
            let operation = try Self.operation(index, job, inputs, late)
            let isExchange = operation is ExchangeOperator
            nodes.append(
                CircuitNode(
                    name: planned.operation.title, job: job.id, operation: operation, errors: errors,
                    inputCount: isExchange ? inputs.workerCount : max(planned.inputs.count, 1)))
        }
        self.nodes = nodes
        for (number, planned) in job.plan.nodes.enumerated() {
            for (input, source) in planned.inputs.enumerated() { nodes[source.number].connect(to: nodes[number], input: input) }
        }
        var tables: [StoredTable] = []
        for (number, node) in nodes.enumerated() {
            let distributions = job.plan.nodes[number].inputs.map { job.plan[$0].properties.distribution }
            let share = StateShare(here: inputs.here, workers: inputs.workerCount, inputs: distributions)
            tables += try job.prepare(node.operation, number, share) { () throws(SQLError) in
                try Self.operation(NodeIndex(number), job, inputs, LateRows())
            }
        }
        self.tables = tables
        if job.isRestored, let recovered = job.storage?.recovered {
            if inputs.here.number == 0, let note = recovered.note(OperatorErrors.noteKind, of: job.id) { try errors.restore(note) }
            if let note = recovered.note(LateRows.noteKind, of: job.id) { try late.restore(note, on: inputs.here, of: inputs.workerCount) }
        }
    }

    private static func operation(
        _ index: NodeIndex, _ job: JobPlan, _ inputs: any RenderInputs, _ late: LateRows
    ) throws(SQLError) -> any Operator {
        let node = job.plan[index]
        let input = node.inputs.first.map { job.plan[$0] }
        switch node.operation {
        case .source, .relation: preconditionFailure("inputs make the nodes of sources and relations")
        case .values(let rows): return ValuesOperator(rows, schema: node.schema, isOwner: inputs.here.number == 0)
        case .filter(let predicate): return FilterOperator(try CompiledExpression(predicate))
        case .project(let expressions):
            return ProjectOperator(try expressions.map { (expression) throws(SQLError) in try CompiledExpression(expression) })
        case .timeWindow(let window): return TimeWindowOperator(window)
        case .panes(let window): return PaneOperator(window, columns: node.schema.map(\.type))
        case .sessionWindow(let window): return SessionWindowOperator(window, input: (input?.schema ?? []).map(\.type))
        case .sessionAggregate(let window, let keys, let calls):
            let schema = input?.schema ?? []
            return try SessionAggregateOperator(
                window, keys: keys, calls: calls, input: schema,
                closing: node.closing.map { SessionClosing(filter: lateFilter(node, 0, $0, schema, late), emitsOnClose: $0.emitsOnClose) })
        case .exchange(let distribution):
            if inputs.workerCount == 1 { return PassOperator() }
            return ExchangeOperator(
                ExchangeID(job: job.id, node: index), distribution, types: node.schema.map(\.type), workers: inputs.workerCount, here: inputs.here,
                send: { [unowned inputs] worker, message in inputs.send(message, to: worker) })
        case .aggregate(let keys, let calls):
            return try HashAggregateOperator(
                keys: keys, calls: calls, input: input?.schema ?? [], isAppendOnly: input?.properties.appendOnly ?? false,
                ownsGlobalGroup: inputs.here.number == 0, closing: closing(node, keys, input?.schema ?? [], late))
        case .join(let kind, let leftKeys, let rightKeys, let residual):
            let sides = node.inputs.map { job.plan[$0] }
            let closing = node.closing.map { closing in
                JoinClosing(filters: [0, 1].map { lateFilter(node, $0, closing, sides[$0].schema, late) }, reach: closing.reach)
            }
            return try HashJoinOperator(
                kind, left: sides[0], right: sides[1], leftKeys: leftKeys, rightKeys: rightKeys, residual: residual, closing: closing)
        case .union, .result: return PassOperator()
        case .blackhole: return BlackholeOperator()
        case .sink(let dropsRetractions):
            guard let outbox = job.outbox else { preconditionFailure("a sink has an outbox") }
            return SinkOperator(outbox, isAppendOnly: input?.properties.appendOnly ?? false, dropsRetractions: dropsRetractions)
        case .rank(let window, let functions, let cut):
            let schema = input?.schema ?? []
            let columns = schema.map(\.type)
            let isAppendOnly = input?.properties.appendOnly ?? false
            if isAppendOnly, let cut, FirstRowsOperator.takes(cut) {
                return FirstRowsOperator(
                    columns: columns, window: window, functions: functions, cut: cut, closing: closing(node, window.partition, schema, late))
            }
            return RankOperator(
                columns: columns, window: window, functions: functions, cut: cut, isAppendOnly: isAppendOnly,
                closing: closing(node, Array(schema.indices), schema, late))
        case .materialize(let key): return MaterializeOperator(columns: node.schema.map(\.type), key: key)
        }
    }

    /// How an operator lets go by a watermark of the rows of a table that has these columns of its input.
    private static func closing(_ node: StreamNode, _ keys: [Int], _ schema: Schema, _ late: LateRows) -> KeyClosing? {
        guard let closing = node.closing, let key = keys.firstIndex(of: closing.columns[0]) else { return nil }
        return KeyClosing(filter: lateFilter(node, 0, closing, schema, late), key: key, emitsOnClose: closing.emitsOnClose)
    }

    private static func lateFilter(_ node: StreamNode, _ input: Int, _ closing: Closing, _ schema: Schema, _ late: LateRows) -> LateFilter {
        LateFilter(column: closing.columns[input], schema: schema, operatorName: node.operation.title, late: late)
    }
}
