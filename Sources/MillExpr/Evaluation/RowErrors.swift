package import MillBase

/// The rows of a batch whose expression failed, and why. A failed row's value is NULL; what becomes of the error is the
/// operator's affair.
package struct RowErrors: Sendable {
    package struct Entry: Sendable {
        package var row: Int
        package var error: SQLError
    }

    /// At most one an evaluated expression and row once `CompiledExpression.evaluate` returns, by row.
    package private(set) var entries: [Entry] = []

    package init() {}

    package var isEmpty: Bool { entries.isEmpty }

    package mutating func add(_ row: Int, _ error: SQLError) { entries.append(Entry(row: row, error: error)) }

    package mutating func removeAll() { entries.removeAll(keepingCapacity: true) }

    mutating func locate(from start: Int, at span: SourceSpan?) {
        guard let span else { return }
        for index in start..<entries.count { entries[index].error = entries[index].error.located(at: span) }
    }

    /// Takes off everything from `start` on.
    mutating func split(from start: Int) -> [Entry] {
        guard start < entries.count else { return [] }
        let tail = Array(entries[start...])
        entries.removeSubrange(start...)
        return tail
    }

    mutating func append(_ more: [Entry]) { entries += more }
}

/// What an expression may know beside its row.
package struct EvaluationContext: Sendable {
    /// `now()` in microseconds since 1970: the epoch's time, from its record, or the statement's.
    package var nowMicros: Int64

    package init(nowMicros: Int64 = 0) { self.nowMicros = nowMicros }
}

/// One evaluation under way. Owned by its thread.
final class EvaluationFrame {
    let context: EvaluationContext
    var errors: RowErrors

    init(_ context: EvaluationContext, _ errors: consuming RowErrors) {
        self.context = context
        self.errors = errors
    }
}
