import MillBase
import MillConnectorKit
import MillStore

/// In checkpoints: what each source was when it was read, as text, so that another one under its name is not taken for it.
enum SourceIncarnations {
    private static let noteKind = "incarnation"

    static func notes(_ sources: [SourceDefinition]) -> [StateNote] {
        sources.compactMap { source in
            source.connector.incarnation.map { StateNote(object: source.id, kind: noteKind, bytes: Array($0.utf8)) }
        }
    }

    /// Tells a source that is made again what it was.
    static func restore(_ connector: any SourceConnector, of id: ObjectID, from recovered: RecoveredState?) {
        guard let note = recovered?.note(noteKind, of: id) else { return }
        connector.expect(incarnation: String(decoding: note.bytes, as: UTF8.self))
    }
}
