package import MillBase
package import MillConnectorKit
package import MillStore

/// Where a job stands in its sources when it does not stand where they do: it is paused, or was and has not yet caught up.
///
/// In a checkpoint it is a note beside the job's state, which holds everything before these offsets and nothing behind them.
package struct JobPlacement: Sendable, Equatable {
    /// By source: what the job's state holds.
    package var offsets: [ObjectID: [SourceSplit: SplitOffset]]
    /// Up to where a paused job is to be before it rests; nil for one that goes on.
    package var ends: [ObjectID: [SourceSplit: SplitOffset]]?
    /// Tells one pause of a job from others; nil for one that goes on.
    package var pause: UInt64?

    package init(offsets: [ObjectID: [SourceSplit: SplitOffset]] = [:], ends: [ObjectID: [SourceSplit: SplitOffset]]? = nil, pause: UInt64? = nil) {
        self.offsets = offsets
        self.ends = ends
        self.pause = pause
    }

    mutating func merge(_ other: JobPlacement) {
        for (source, splits) in other.offsets { offsets[source, default: [:]].merge(splits) { max($0, $1) } }
        pause = pause ?? other.pause
    }

    // MARK: In checkpoints

    package static let noteKind = "placement"

    func note(_ job: ObjectID) -> StateNote {
        var bytes = RecordWriter()
        bytes.put(UInt8(pause == nil ? 0 : 1))
        bytes.put(pause ?? 0)
        bytes.putList(offsets) { bytes, source in
            bytes.put(source.key.number)
            bytes.putList(source.value) { bytes, entry in
                bytes.put(entry.key.name)
                bytes.put(entry.key.topic)
                bytes.put(entry.key.partition)
                bytes.put(entry.value.position)
            }
        }
        return StateNote(object: job, kind: Self.noteKind, bytes: bytes.bytes)
    }

    /// - Throws: XX001 for a damaged note.
    package init(_ note: StateNote) throws(SQLError) {
        do throws(RecordDamage) {
            var bytes = RecordReader(note.bytes[...])
            let isPaused = try bytes.get(UInt8.self) == 1
            let number = try bytes.get(UInt64.self)
            let sources = try bytes.getList { (bytes) throws(RecordDamage) in
                let id = ObjectID(try bytes.get(UInt32.self))
                let splits = try bytes.getList { (bytes) throws(RecordDamage) in
                    let split = SourceSplit(name: try bytes.getText(), topic: try bytes.getText(), partition: try bytes.get(Int32.self))
                    return (split, SplitOffset(try bytes.get(Int64.self)))
                }
                return (id, Dictionary(splits, uniquingKeysWith: { max($0, $1) }))
            }
            self.init(offsets: Dictionary(sources, uniquingKeysWith: { $1 }), pause: isPaused ? number : nil)
        } catch { throw SQLError(.dataCorrupted, "the stored placement of job \(note.object) is damaged") }
    }
}
