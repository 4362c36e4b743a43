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
        // The oldest first, whichever worker they were on.
        let order = kept.entries.indices.sorted { (kept.entries[$0].lateAtMicros, $0) < (kept.entries[$1].lateAtMicros, $1) }
        bytes.putList(order.map { kept.entries[$0] }) { bytes, entry in
            bytes.put(entry.operatorName)
            bytes.put(entry.row)
            bytes.put(entry.weight)
            bytes.put(entry.watermarkMicros)
            bytes.put(entry.lateAtMicros)
        }
        return StateNote(object: job, kind: noteKind, bytes: bytes.bytes)
    }

    /// Takes back a worker's share of what a note has: no worker can keep what all had.
    func restore(_ note: StateNote, on worker: WorkerIndex, of workerCount: Int) throws(SQLError) {
        do throws(RecordDamage) {
            var reader = RecordReader(note.bytes[...])
            var kept = Kept()
            kept.droppedCount = try reader.get(Int64.self)
            kept.entries = try reader.getList { (reader) throws(RecordDamage) in
                Entry(
                    operatorName: try reader.getText(), row: try reader.getText(), weight: try reader.get(Int64.self),
                    watermarkMicros: try reader.get(Int64.self), lateAtMicros: try reader.get(Int64.self))
            }
            kept.entries = stride(from: worker.number, to: kept.entries.count, by: workerCount).map { kept.entries[$0] }
            if worker.number != 0 { kept.droppedCount = 0 }
            restore(kept)
        } catch { throw SQLError(.dataCorrupted, "the stored late rows of job \(note.object) are damaged") }
    }
}
