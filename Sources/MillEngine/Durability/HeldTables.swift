import MillBase
import MillStore

/// In checkpoints: the last transaction that the stored rows of a table have that does not run, as a u64.
enum HeldTables {
    private static let noteKind = "held"

    static func notes(_ held: [ObjectID: DMLPosition]) -> [StateNote] {
        held.sorted { $0.key < $1.key }.map { id, position in
            var bytes = RecordWriter()
            bytes.put(position.number)
            return StateNote(object: id, kind: noteKind, bytes: bytes.bytes)
        }
    }

    static func positions(in notes: [StateNote]) throws(SQLError) -> [ObjectID: DMLPosition] {
        var positions: [ObjectID: DMLPosition] = [:]
        for note in notes where note.kind == noteKind {
            var reader = RecordReader(note.bytes[...])
            guard let number = try? reader.getNumber() else {  // too short, or out of all bounds
                throw SQLError(.dataCorrupted, "what is stored of table \(note.object) does not say up to which transaction")
            }
            positions[note.object] = DMLPosition(number)
        }
        return positions
    }
}
