package import MillBase
package import MillColumnar
package import MillState
package import MillStore

/// Running code of one plan node on one worker: deltas in, deltas out.
///
/// Per epoch: any number of `push`, each followed by `next` until it gives nil, then `closeEpoch` once all inputs are in,
/// and `next` until nil again. `next` gives at most `Limits.batchRowsMax` rows, so that between two calls the worker can
/// see that a job is abandoned; what is left is kept as a position, never as a list of results.
///
/// Law of every implementation: the sum of all output is the batch operator applied to the sum of all input, whatever the
/// batches, epochs and retractions were.
///
/// Threading: owned by one worker; never called by two threads at once.
package protocol Operator: AnyObject {
    /// Of an operator that closes by watermarks: for each input what it is in the epoch that begins.
    func openEpoch(_ watermarks: [WatermarkStep])
    func push(_ batch: DeltaBatch, input: Int, errors: OperatorErrors)
    func next(errors: OperatorErrors) -> DeltaBatch?
    func closeEpoch(errors: OperatorErrors)
    /// Called once before the first epoch of a job that has no state from before.
    func begin()
    /// Everything that must outlive the process, always in the same order; a checkpoint knows a table by its place here.
    var tables: [any DurableTable] { get }
    /// Takes over what is this worker's of a state that another number of workers made
    /// (`docs/decisions/018-state-moves-between-workers.md`). Its tables then hold what they would, had there always been so many workers
    /// as now; it gives nothing out for it.
    /// - Parameter other: an operator of the same node with what one of the workers of then had; it is read, and others read it after.
    /// - Throws: when the workers of then cannot have had that.
    func adopt(from other: Self, _ share: StateShare) throws(StateCorruption)
    /// Called in place of `begin` when all tables have come back from a checkpoint, or have what is theirs of it.
    func finishRestore()
    /// Bytes of state, for SHOW JOBS and the memory budget.
    var stateByteCount: Int { get }
    /// What is broken in its state between two epochs, for tests and simulation; empty when all is well.
    func checkInvariants() -> [String]
}

extension Operator {
    package func openEpoch(_ watermarks: [WatermarkStep]) {}
    package func closeEpoch(errors: OperatorErrors) {}
    package func begin() {}
    package var tables: [any DurableTable] { [] }
    /// Whoever has tables has an answer of its own: state is not lost because nobody thought of it.
    package func adopt(from other: Self, _ share: StateShare) throws(StateCorruption) {
        throw StateCorruption("it does not know how to share its state out")
    }
    package func finishRestore() {}
    package var stateByteCount: Int { 0 }
    package func checkInvariants() -> [String] { [] }

    /// `adopt` from an operator of the same node, whatever both are.
    func adopt(fromTwin other: any Operator, _ share: StateShare) throws(StateCorruption) {
        guard let other = other as? Self else { preconditionFailure("operators of one node are of one kind") }
        try adopt(from: other, share)
    }
}

/// What the expressions of one job on one worker could not compute: a multiset, so that taking back a row takes back its
/// entry. The expression gave NULL in its place.
package final class OperatorErrors {
    /// One entry of `<job>_errors`.
    package struct Entry: Hashable, Sendable {
        package var operatorName: String
        package var sqlState: SQLState
        package var message: String
        /// The row that the expression was evaluated on, as text.
        package var row: String

        package init(operatorName: String, sqlState: SQLState, message: String, row: String) {
            self.operatorName = operatorName
            self.sqlState = sqlState
            self.message = message
            self.row = row
        }
    }

    /// Entries kept at most; further ones are counted in `droppedCount`, never silently lost.
    package let entriesMax: Int

    package private(set) var entries: [Entry: Int64] = [:]
    /// Weight of the entries that did not fit.
    package private(set) var droppedCount: Int64 = 0
    /// The first error since `takeFirst`, for ad-hoc queries that raise.
    private var first: SQLError?

    package init(entriesMax: Int = 100_000) { self.entriesMax = entriesMax }

    package func report(_ error: SQLError, operatorName: String, batch: DeltaBatch, row: Int) {
        // A row that does not count, such as one that an aggregate's FILTER leaves out, has no errors.
        guard batch.weight(row) != 0 else { return }
        if first == nil { first = error }
        let text = batch.columns.map { column -> String in
            guard !column.isNull(row) else { return "NULL" }
            var bytes: [UInt8] = []
            column.appendText(row: row, to: &bytes)
            return String(decoding: bytes.prefix(256), as: UTF8.self)
        }
        add(Entry(operatorName: operatorName, sqlState: error.sqlState, message: error.message, row: "(" + text.joined(separator: ",") + ")"),
            weight: batch.weight(row))
    }

    /// Changes how often an entry is there. What is taken back and is not among the entries was dropped before, as far as anything
    /// was; only the rest becomes an entry below zero, which an insertion later in the epoch evens out.
    package func add(_ entry: Entry, weight: Int64) {
        var weight = weight
        if let present = entries[entry] {
            let sum = present &+ weight
            entries[entry] = sum == 0 ? nil : sum
            return
        }
        if weight < 0 {
            let dropped = min(droppedCount, Int64(clamping: weight.magnitude))
            droppedCount -= dropped
            weight += dropped
        } else if entries.count >= entriesMax {
            droppedCount &+= weight
            return
        }
        if weight != 0 { entries[entry] = weight }
    }

    /// What there was before the process began.
    func restore(_ entries: [Entry: Int64], droppedCount: Int64) {
        self.entries = entries
        self.droppedCount = droppedCount
    }

    /// Whether there is something for `takeFirst`.
    package var hasFirst: Bool { first != nil }

    package func takeFirst() -> SQLError? {
        defer { first = nil }
        return first
    }
}
