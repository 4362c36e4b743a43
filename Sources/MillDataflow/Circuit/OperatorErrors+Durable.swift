package import MillBase
package import MillStore

/// A job's errors in checkpoints: a note beside its tables.
extension OperatorErrors {
    static let noteKind = "errors"

    /// The entries of all workers as one note; nil when there are none.
    static func note(_ job: ObjectID, _ parts: [OperatorErrors.Kept]) -> StateNote? {
        let kept = parts.reduce(into: Kept()) { $0.merge($1) }
        guard !kept.entries.isEmpty || kept.droppedCount != 0 else { return nil }
        var bytes = RecordWriter()
        bytes.put(kept.droppedCount)
        bytes.putList(kept.entries) { bytes, entry in
            bytes.put(entry.key.operatorName)
            bytes.put(entry.key.sqlState.code)
            bytes.put(entry.key.message)
            bytes.put(entry.key.row)
            bytes.put(entry.value)
        }
        return StateNote(object: job, kind: noteKind, bytes: bytes.bytes)
    }

    /// What one worker has.
    package struct Kept: Sendable {
        var entries: [Entry: Int64] = [:]
        var droppedCount: Int64 = 0

        mutating func merge(_ other: Kept) {
            entries.merge(other.entries, uniquingKeysWith: &+)
            droppedCount += other.droppedCount
        }
    }

    var kept: Kept { Kept(entries: entries, droppedCount: droppedCount) }

    /// Takes back what a note has, on one worker.
    func restore(_ note: StateNote) throws(SQLError) {
        do throws(RecordDamage) {
            var reader = RecordReader(note.bytes[...])
            let dropped = try reader.get(Int64.self)
            let list = try reader.getList { (reader) throws(RecordDamage) in
                let name = try reader.getText()
                let code = try reader.getText()
                guard code.utf8.count == 5 else { throw RecordDamage() }
                let entry = Entry(operatorName: name, sqlState: SQLState(code), message: try reader.getText(), row: try reader.getText())
                return (entry, try reader.get(Int64.self))
            }
            restore(Dictionary(list, uniquingKeysWith: &+), droppedCount: dropped)
        } catch { throw SQLError(.dataCorrupted, "the stored errors of job \(note.object) are damaged") }
    }
}
