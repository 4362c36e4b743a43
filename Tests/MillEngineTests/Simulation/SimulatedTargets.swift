import MillBase
import MillColumnar
import MillDataflow
import MillTestKit
import Synchronization

/// The targets of a simulation's sinks: they outlive all servers, fail and lose answers as a seed says, and know what a sink has promised.
final class SimulatedTargets: Sendable {
    /// Of the sink with a key, and of the one that only adds.
    let keyed = ScriptedTarget()
    let added = ScriptedTarget()

    init(seed: UInt64) {
        let random = SeededSource(seed)
        let isCalm = calm
        for target in [keyed, added] {
            target.change { state in
                state.fault = { call in
                    guard call != .prepare, !isCalm.isSet, random.below(12) == 0 else { return nil }
                    return SQLError(.connectionFailure, "the target is away in \(call.rawValue)")
                }
                state.lostAnswer = {
                    guard !isCalm.isSet, random.below(8) == 0 else { return nil }
                    return SQLError(.connectionFailure, "the answer is lost")
                }
            }
        }
    }

    private let calm = Flag()

    private final class Flag: Sendable {
        private let value = Atomic<Bool>(false)
        var isSet: Bool { value.load(ordering: .relaxed) }
        func set() { value.store(true, ordering: .relaxed) }
    }

    /// From here on they do as they are told.
    func calmDown() { calm.set() }

    /// For a new life of the server.
    func nextLife(_ connectors: [String: ScriptedConnector]) -> SinkAssembly {
        SinkAssembly(connectors: connectors, targets: ["keyed": keyed.nextLife(), "added": added.nextLife()])
    }

    static let definitions = [
        "CREATE SINK keyed FROM sums WITH (connector = 'keyed', type = 'upsert')",
        "CREATE SINK added AS SELECT id, k, v FROM s WITH (connector = 'added', type = 'append-only')",
    ]
    /// What each must hold at last.
    static let queries = ["SELECT * FROM sums", "SELECT id, k, v FROM s"]

    /// What is broken at any moment; nil when nothing is.
    var problem: String? {
        for (name, target) in [("keyed", keyed), ("added", added)] {
            if let problem = target.state.withLock({ $0.problems.first }) { return "sink \(name): \(problem)" }
        }
        return nil
    }

    /// What differs from the answers; nil when nothing does.
    func difference(_ answers: [EngineWorld.Answer]) -> String? {
        for (target, answer) in zip([keyed, added], answers) {
            var wanted: [String: Int64] = [:]
            for batch in answer.batches {
                let fields = batch.columns.indices.map { Field("c\($0)", batch.columns[$0].type) }
                for row in 0..<batch.count { wanted[LateRows.json(batch, row, fields), default: 0] += batch.weight(row) }
            }
            let found = target.rows
            if found != wanted { return "a target has \(found), not \(wanted)" }
        }
        return nil
    }
}
