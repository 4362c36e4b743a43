import MillIO
import MillKafkaWire
import Synchronization

/// All groups' machines, and the connections that wait for their answers.
///
/// Threading: any thread. Answers run after the lock is given up, on the thread whose event caused them.
final class GroupCoordinator: Sendable {
    typealias JoinReply = @Sendable (GroupMachine.JoinAnswer) -> Void
    typealias SyncReply = @Sendable (GroupMachine.SyncAnswer) -> Void

    private struct State {
        var groups: [String: GroupMachine] = [:]
        var nextToken: UInt64 = 0
        var joins: [UInt64: JoinReply] = [:]
        var syncs: [UInt64: SyncReply] = [:]
    }

    private let state = Mutex(State())
    private let environment: Environment
    private let gatheringNanos: UInt64

    init(environment: Environment, gatheringNanos: UInt64) {
        self.environment = environment
        self.gatheringNanos = gatheringNanos
    }

    private var now: UInt64 { environment.clock.monotonicNanos }

    /// A name for a member that has none: its client's id and 128 random bits.
    func newMemberID(clientID: String) -> String {
        "\(clientID)-\(WireUUID(high: environment.random.next(), low: environment.random.next()))"
    }

    func join(group: String, _ request: GroupMachine.Join, reply: @escaping JoinReply) {
        perform(group, creating: true) { machine, state, now in
            state.nextToken += 1
            state.joins[state.nextToken] = reply
            return machine.join(request, token: state.nextToken, now: now)
        } orElse: {}
    }

    func sync(_ request: SyncGroupRequest, reply: @escaping SyncReply) {
        let assignments = Dictionary(request.assignments.map { ($0.memberID, $0.assignment) }) { first, _ in first }
        perform(request.groupID, creating: false) { machine, state, now in
            state.nextToken += 1
            state.syncs[state.nextToken] = reply
            return machine.sync(
                memberID: request.memberID, instanceID: request.groupInstanceID, generation: request.generationID, protocolType: request.protocolType,
                protocolName: request.protocolName, assignments: assignments, token: state.nextToken, now: now)
        } orElse: {
            reply(GroupMachine.SyncAnswer(error: .unknownMemberID))
        }
    }

    func heartbeat(group: String, memberID: String, instanceID: String?, generation: Int32) -> KafkaErrorCode {
        var result = KafkaErrorCode.unknownMemberID
        perform(group, creating: false) { machine, _, now in
            result = machine.heartbeat(memberID: memberID, instanceID: instanceID, generation: generation, now: now)
            return []
        } orElse: {}
        return result
    }

    func leave(group: String, memberID: String, instanceID: String?) -> KafkaErrorCode {
        var result = KafkaErrorCode.unknownMemberID
        perform(group, creating: false) { machine, _, now in
            let (error, actions) = machine.leave(memberID: memberID, instanceID: instanceID, now: now)
            result = error
            return actions
        } orElse: {}
        return result
    }

    func commitFault(group: String, memberID: String, instanceID: String?, generation: Int32) -> KafkaErrorCode? {
        state.withLock { state in
            guard let machine = state.groups[group] else {
                return generation < 0 && memberID.isEmpty ? nil : .illegalGeneration
            }
            return machine.commitFault(memberID: memberID, instanceID: instanceID, generation: generation)
        }
    }

    func group(_ name: String) -> GroupMachine? { state.withLock { $0.groups[name] } }
    var groups: [String: GroupMachine] { state.withLock { $0.groups } }

    /// Forgets a group unless somebody is in it.
    func remove(group: String) -> KafkaErrorCode {
        state.withLock { state in
            guard let machine = state.groups[group] else { return .none }
            guard machine.isUnused else { return .nonEmptyGroup }
            state.groups[group] = nil
            return .none
        }
    }

    /// Lets time pass for all groups; called several times a second.
    func tick() {
        let now = now
        run(state.withLock { state in
            var replies: [@Sendable () -> Void] = []
            for (name, var machine) in state.groups {
                let actions = machine.tick(now: now)
                state.groups[name] = machine.isUnused ? nil : machine
                replies += Self.replies(to: actions, &state)
            }
            return replies
        })
    }

    private func perform(
        _ group: String, creating: Bool, _ event: (inout GroupMachine, inout State, UInt64) -> [GroupMachine.Action], orElse: () -> Void
    ) {
        let now = now
        let replies: [@Sendable () -> Void]? = state.withLock { state in
            guard var machine = state.groups[group] ?? (creating ? GroupMachine(gatheringNanos: gatheringNanos) : nil) else { return nil }
            let actions = event(&machine, &state, now)
            state.groups[group] = machine.isUnused ? nil : machine
            return Self.replies(to: actions, &state)
        }
        if let replies { run(replies) } else { orElse() }
    }

    private static func replies(to actions: [GroupMachine.Action], _ state: inout State) -> [@Sendable () -> Void] {
        var replies: [@Sendable () -> Void] = []
        for action in actions {
            switch action {
            case .joined(let token, let answer):
                if let reply = state.joins.removeValue(forKey: token) { replies.append { reply(answer) } }
            case .synced(let token, let answer):
                if let reply = state.syncs.removeValue(forKey: token) { replies.append { reply(answer) } }
            }
        }
        return replies
    }

    private func run(_ replies: [@Sendable () -> Void]) {
        for reply in replies { reply() }
    }
}
