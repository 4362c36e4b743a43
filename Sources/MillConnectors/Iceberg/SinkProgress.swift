import MillBase
import MillConnectorKit
import MillIceberg
import Synchronization

/// How far a sink has come in a table, and who keeps the table's keys: properties that change in one step with the rows.
struct SinkProgress {
    /// Which sink updates and deletes rows of the table.
    static let ownerProperty = "millrace.upsert.sink"

    let sink: SinkName
    private let keepsKeys: Bool
    private let owner: String?
    private(set) var epoch: Int64?
    /// What the epoch's property is in the table.
    private var epochText: String?

    /// Whether any sink has ever written to the table.
    static func hasSinks(_ table: TableMetadata) -> Bool {
        table.properties.keys.contains { $0.hasPrefix("millrace.sink.") && $0.hasSuffix(".epoch") }
    }

    /// - Throws: 55006 when another sink keeps the keys by now, XX001 for a property that is no epoch.
    init(_ sink: SinkName, _ table: TableMetadata, keepsKeys: Bool, takesOver: Bool) throws(SQLError) {
        self.sink = sink
        self.keepsKeys = keepsKeys
        owner = table.properties[Self.ownerProperty]
        epochText = table.properties["millrace.sink.\(sink).epoch"]
        if let text = epochText {
            guard let epoch = Int64(text) else {
                throw SQLError(.dataCorrupted, "property \"millrace.sink.\(sink).epoch\" of the table is \"\(text)\", which is no epoch")
            }
            self.epoch = epoch
        }
        guard keepsKeys, let owner, owner != "\(sink)" else { return }
        // A sink that was here before and has lost the table does not take it back.
        guard takesOver, epoch == nil else {
            throw SQLError(
                .objectInUse, "the keys of the table are kept by another sink", detail: "That sink is known as \(owner).",
                hint: "Drop one of the two sinks.")
        }
    }

    var epochProperty: String { "millrace.sink.\(sink).epoch" }

    func summary(_ epoch: Int64) -> [(key: String, value: String)] {
        [("millrace.sink", "\(sink)"), ("millrace.epoch", "\(epoch)")]
    }

    func properties(_ epoch: Int64) -> [String: String] {
        keepsKeys ? [epochProperty: "\(epoch)", Self.ownerProperty: "\(sink)"] : [epochProperty: "\(epoch)"]
    }

    /// What the properties have to be for a commit.
    var expected: [String: String?] {
        var result: [String: String?] = [epochProperty: epochText]
        if keepsKeys { result.updateValue(self.epoch == nil ? owner : "\(sink)", forKey: Self.ownerProperty) }
        return result
    }

    mutating func advance(to epoch: Int64) {
        self.epoch = epoch
        epochText = "\(epoch)"
    }
}

/// Commits of this process whose outcome is not known. Should one arrive after the table was opened again, it is no other writer's.
///
/// Threading: any thread. One for the process: a sink that opens its table again is another connector.
final class SentCommits: Sendable {
    static let ofThisProcess = SentCommits()

    private struct Commit: Hashable {
        var sink: String
        var epoch: Int64
    }

    /// More than any process has, unless a catalog loses answers for days.
    private static let countMax = 100_000
    private let commits = Mutex<Set<Commit>>([])

    func note(_ sink: SinkName, _ epoch: Int64) {
        commits.withLock { commits in
            if commits.count >= Self.countMax { commits = [] }
            commits.insert(Commit(sink: "\(sink)", epoch: epoch))
        }
    }

    func contains(_ sink: SinkName, _ epoch: Int64) -> Bool {
        commits.withLock { $0.contains(Commit(sink: "\(sink)", epoch: epoch)) }
    }
}
