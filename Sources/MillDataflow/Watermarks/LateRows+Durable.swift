package import MillBase
package import MillStore

/// A job's late rows in checkpoints: a note beside its tables.
extension LateRows {
    static let noteKind = "late"

    /// The entries of all workers as one note; nil when there are none.
    package static func note(_ job: ObjectID, _ parts: [Kept]) -> StateNote? {
        let kept = parts.reduce(into: Kept()) { $0.merge($1) }
        guard !kept.entries.isEmpty || kept.droppedCount != 0 else { return nil }
        var bytes = RecordWriter()
        bytes.put(kept.droppedCount)
        bytes.putList(kept.entries) { bytes, entry in
            bytes.put(entry.operatorName)
            bytes.put(entry.row)
            bytes.put(entry.weight)
            bytes.put(entry.watermarkMicros)
            bytes.put(entry.lateAtMicros)
        }
        return StateNote(object: job, kind: noteKind, bytes: bytes.bytes)
    }

    /// Takes back what a note has, on one worker.
    func restore(_ note: StateNote) throws(SQLError) {
        do throws(RecordDamage) {
            var reader = RecordReader(note.bytes[...])
            var kept = Kept()
            kept.droppedCount = try reader.get(Int64.self)
            kept.entries = try reader.getList { (reader) throws(RecordDamage) in
                Entry(
                    operatorName: try reader.getText(), row: try reader.getText(), weight: try reader.get(Int64.self),
                    watermarkMicros: try reader.get(Int64.self), lateAtMicros: try reader.get(Int64.self))
            }
            restore(kept)
        } catch { throw SQLError(.dataCorrupted, "the stored late rows of job \(note.object) are damaged") }
    }
}
