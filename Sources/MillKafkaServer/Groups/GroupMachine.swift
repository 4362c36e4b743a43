import MillKafkaWire

/// One consumer group's membership as a machine: requests and the clock go in, answers come out.
///
/// Place in the path: `GroupCoordinator` holds one per group, feeds it what connections receive and sends what it answers.
/// The protocol is Kafka's classic one (JoinGroup, SyncGroup, Heartbeat, LeaveGroup) with KIP-394 (a new member first gets its id) and
/// KIP-345 (a member with an instance id may restart under it without a rebalance).
///
///     empty --join--> preparing --all joined, or time is up--> completing --leader's sync--> stable
///                         ^                                        |                            |
///                         +------ join, leave, a member silent ----+----------------------------+
///                         +--nobody left--> empty
///
/// Invariants: every join and sync is answered exactly once, at once or by a later event; a generation has one leader and one
/// protocol that all its members named; only members of the current generation get an assignment.
///
/// Threading: none of its own; whoever holds it serialises. Time is monotonic nanoseconds, given with each event.
struct GroupMachine {
    /// Names the request that is to be answered.
    typealias ReplyToken = UInt64

    enum Phase: String, Sendable {
        case empty = "Empty"
        case preparing = "PreparingRebalance"
        case completing = "CompletingRebalance"
        case stable = "Stable"
    }

    struct Member {
        var id: String
        var instanceID: String?
        var clientID: String
        var clientHost: String
        var sessionNanos: UInt64
        var rebalanceNanos: UInt64
        /// In order of preference.
        var protocols: [GroupProtocol]
        var assignment = WireBytes()
        var join: ReplyToken?
        var sync: ReplyToken?
        /// When it is given up unless it is heard of; not looked at while one of its requests waits with us.
        var sessionDeadline: UInt64
        var hasSynced = false

        func metadata(of name: String) -> WireBytes { protocols.first { $0.name == name }?.metadata ?? WireBytes() }
    }

    struct GroupProtocol: Equatable {
        var name: String
        var metadata: WireBytes
    }

    struct Join {
        var memberID: String
        var instanceID: String?
        var clientID: String
        var clientHost: String
        var sessionNanos: UInt64
        var rebalanceNanos: UInt64
        var protocolType: String
        var protocols: [GroupProtocol]
        /// The client can take `memberIDRequired` for an answer.
        var canRetryWithID: Bool
        /// What the member is called if it has no name yet; fresh for every request.
        var newMemberID: String
    }

    struct JoinAnswer: Equatable {
        var error: KafkaErrorCode
        var generation: Int32 = -1
        var protocolType: String?
        var protocolName: String?
        var leader = ""
        var memberID: String
        /// Only for the leader: who is there, with the chosen protocol's metadata.
        var members: [MemberMetadata] = []
    }

    struct MemberMetadata: Equatable {
        var memberID: String
        var instanceID: String?
        var metadata: WireBytes
    }

    struct SyncAnswer: Equatable {
        var error: KafkaErrorCode
        var protocolType: String?
        var protocolName: String?
        var assignment = WireBytes()
    }

    enum Action: Equatable {
        case joined(ReplyToken, JoinAnswer)
        case synced(ReplyToken, SyncAnswer)
    }

    private(set) var phase = Phase.empty
    private(set) var generation: Int32 = 0
    private(set) var protocolType: String?
    private(set) var protocolName: String?
    private(set) var leader: String?
    /// In order of first joining.
    private(set) var members: [Member] = []
    /// Ids given out and not used yet, with their deadline.
    private var pending: [String: UInt64] = [:]
    /// When waiting for joins or syncs ends.
    private var phaseDeadline: UInt64 = 0
    /// How long the first generation of an empty group waits for more members; Kafka's `group.initial.rebalance.delay.ms`.
    private let gatheringNanos: UInt64
    /// Joins are not answered before.
    private var gatheringDeadline: UInt64 = 0

    init(gatheringNanos: UInt64 = 0) { self.gatheringNanos = gatheringNanos }

    /// Nobody is in it or about to be.
    var isUnused: Bool { members.isEmpty && pending.isEmpty }

    // MARK: Events

    mutating func join(_ request: Join, token: ReplyToken, now: UInt64) -> [Action] {
        func refuse(_ error: KafkaErrorCode, _ memberID: String) -> [Action] { [.joined(token, JoinAnswer(error: error, memberID: memberID))] }
        guard accepts(request) else { return refuse(.inconsistentGroupProtocol, request.memberID) }
        if request.memberID.isEmpty {
            if let instance = request.instanceID, let old = position(ofInstance: instance) { return replaceStatic(old, request, token, now) }
            if request.instanceID == nil, request.canRetryWithID {
                pending[request.newMemberID] = now + request.sessionNanos
                return refuse(.memberIDRequired, request.newMemberID)
            }
            return add(request.newMemberID, request, token, now)
        }
        if pending.removeValue(forKey: request.memberID) != nil { return add(request.memberID, request, token, now) }
        if let instance = request.instanceID, let holder = position(ofInstance: instance), members[holder].id != request.memberID {
            return refuse(.fencedInstanceID, request.memberID)
        }
        guard let place = position(of: request.memberID) else { return refuse(.unknownMemberID, request.memberID) }
        let isChanged = members[place].protocols != request.protocols
        switch phase {
        case .empty: return refuse(.unknownMemberID, request.memberID)
        case .preparing: return rejoin(place, request, token, now) + completeJoinIfAllAreHere(now)
        case .completing where !isChanged, .stable where !isChanged && request.memberID != leader:
            members[place].sessionDeadline = now + members[place].sessionNanos
            return [.joined(token, joinAnswer(for: members[place]))]
        case .completing, .stable: return rejoin(place, request, token, now) + prepareRebalance(now)
        }
    }

    mutating func sync(
        memberID: String, instanceID: String?, generation: Int32, protocolType: String?, protocolName: String?, assignments: [String: WireBytes],
        token: ReplyToken, now: UInt64
    ) -> [Action] {
        func refuse(_ error: KafkaErrorCode) -> [Action] { [.synced(token, SyncAnswer(error: error))] }
        if let error = fault(memberID, instanceID, generation) { return refuse(error) }
        guard let place = position(of: memberID) else { return refuse(.unknownMemberID) }
        if let protocolType, protocolType != self.protocolType { return refuse(.inconsistentGroupProtocol) }
        if let protocolName, protocolName != self.protocolName { return refuse(.inconsistentGroupProtocol) }
        members[place].sessionDeadline = now + members[place].sessionNanos
        switch phase {
        case .empty: return refuse(.unknownMemberID)
        case .preparing: return refuse(.rebalanceInProgress)
        case .stable: return [.synced(token, syncAnswer(for: members[place]))]
        case .completing:
            var actions: [Action] = []
            // A repeated request takes the place of the first, whose connection is gone.
            if let old = members[place].sync { actions.append(.synced(old, SyncAnswer(error: .rebalanceInProgress))) }
            members[place].sync = token
            members[place].hasSynced = true
            guard memberID == leader else { return actions }
            for place in members.indices { members[place].assignment = assignments[members[place].id] ?? WireBytes() }
            phase = .stable
            for place in members.indices {
                members[place].sessionDeadline = now + members[place].sessionNanos
                guard let waiting = members[place].sync else { continue }
                members[place].sync = nil
                actions.append(.synced(waiting, syncAnswer(for: members[place])))
            }
            return actions
        }
    }

    mutating func heartbeat(memberID: String, instanceID: String?, generation: Int32, now: UInt64) -> KafkaErrorCode {
        if let error = fault(memberID, instanceID, generation) { return error }
        guard let place = position(of: memberID) else { return .unknownMemberID }
        members[place].sessionDeadline = now + members[place].sessionNanos
        return phase == .preparing ? .rebalanceInProgress : .none
    }

    mutating func leave(memberID: String, instanceID: String?, now: UInt64) -> (KafkaErrorCode, [Action]) {
        if pending.removeValue(forKey: memberID) != nil { return (.none, phase == .preparing ? completeJoinIfAllAreHere(now) : []) }
        if let instanceID {
            guard let holder = position(ofInstance: instanceID) else { return (.unknownMemberID, []) }
            guard memberID.isEmpty || members[holder].id == memberID else { return (.fencedInstanceID, []) }
            return (.none, remove([holder], now))
        }
        guard let place = position(of: memberID) else { return (.unknownMemberID, []) }
        return (.none, remove([place], now))
    }

    /// Whether a commit of this member is taken; an empty group takes commits of consumers that assign partitions themselves.
    func commitFault(memberID: String, instanceID: String?, generation: Int32) -> KafkaErrorCode? {
        if generation < 0, memberID.isEmpty { return members.isEmpty ? nil : .unknownMemberID }
        if let error = fault(memberID, instanceID, generation) { return error }
        return phase == .completing ? .rebalanceInProgress : nil
    }

    /// Lets time pass.
    mutating func tick(now: UInt64) -> [Action] {
        pending = pending.filter { $0.value > now }
        let silent = members.indices.filter { members[$0].join == nil && members[$0].sync == nil && members[$0].sessionDeadline <= now }
        var actions = silent.isEmpty ? [] : remove(silent, now)
        switch phase {
        case .preparing:
            actions += now >= phaseDeadline ? completeJoin(now) : completeJoinIfAllAreHere(now)
        case .completing where now >= phaseDeadline:
            actions += remove(members.indices.filter { !members[$0].hasSynced }, now)
        case .empty, .completing, .stable: break
        }
        return actions
    }

    // MARK: Parts

    private func position(of memberID: String) -> Int? { members.firstIndex { $0.id == memberID } }
    private func position(ofInstance instance: String) -> Int? { members.firstIndex { $0.instanceID == instance } }

    private func fault(_ memberID: String, _ instanceID: String?, _ generation: Int32) -> KafkaErrorCode? {
        if let instanceID, let holder = position(ofInstance: instanceID), members[holder].id != memberID { return .fencedInstanceID }
        guard position(of: memberID) != nil else { return .unknownMemberID }
        return generation == self.generation ? nil : .illegalGeneration
    }

    private func accepts(_ request: Join) -> Bool {
        guard !request.protocolType.isEmpty, !request.protocols.isEmpty else { return false }
        let others = members.filter { $0.id != request.memberID && ($0.instanceID == nil || $0.instanceID != request.instanceID) }
        guard !others.isEmpty else { return true }
        guard request.protocolType == protocolType else { return false }
        return request.protocols.contains { offered in others.allSatisfy { $0.protocols.contains { $0.name == offered.name } } }
    }

    private mutating func add(_ id: String, _ request: Join, _ token: ReplyToken, _ now: UInt64) -> [Action] {
        members.append(Member(
            id: id, instanceID: request.instanceID, clientID: request.clientID, clientHost: request.clientHost, sessionNanos: request.sessionNanos,
            rebalanceNanos: request.rebalanceNanos, protocols: request.protocols, join: token, sessionDeadline: now + request.sessionNanos))
        if members.count == 1 { protocolType = request.protocolType }
        return phase == .preparing ? completeJoinIfAllAreHere(now) : prepareRebalance(now)
    }

    /// A known member's join that waits for the others; answers the one it replaces.
    private mutating func rejoin(_ place: Int, _ request: Join, _ token: ReplyToken, _ now: UInt64) -> [Action] {
        var actions: [Action] = []
        if let old = members[place].join { actions.append(.joined(old, JoinAnswer(error: .rebalanceInProgress, memberID: members[place].id))) }
        members[place].join = token
        members[place].protocols = request.protocols
        members[place].sessionNanos = request.sessionNanos
        members[place].rebalanceNanos = request.rebalanceNanos
        members[place].sessionDeadline = now + request.sessionNanos
        return actions
    }

    /// A static member is back under its instance id: it gets a new member id, and if nothing else changed, its old assignment.
    private mutating func replaceStatic(_ place: Int, _ request: Join, _ token: ReplyToken, _ now: UInt64) -> [Action] {
        var actions: [Action] = []
        let oldID = members[place].id
        if let old = members[place].join { actions.append(.joined(old, JoinAnswer(error: .fencedInstanceID, memberID: oldID))) }
        if let old = members[place].sync { actions.append(.synced(old, SyncAnswer(error: .fencedInstanceID))) }
        let isUnchanged = members[place].protocols == request.protocols
        members[place].id = request.newMemberID
        (members[place].join, members[place].sync) = (nil, nil)
        // The answer names the old leader, so that the member does not take itself for a leader who has to assign.
        let answeredLeader = leader ?? ""
        if leader == oldID { leader = request.newMemberID }
        if phase == .stable, isUnchanged {
            members[place].sessionDeadline = now + request.sessionNanos
            var answer = joinAnswer(for: members[place])
            answer.leader = answeredLeader
            answer.members = []
            return actions + [.joined(token, answer)]
        }
        actions += rejoin(place, request, token, now)
        return actions + (phase == .preparing ? completeJoinIfAllAreHere(now) : prepareRebalance(now))
    }

    private mutating func remove(_ places: [Int], _ now: UInt64) -> [Action] {
        var actions: [Action] = []
        for place in places.reversed() {
            let gone = members.remove(at: place)
            if let token = gone.join { actions.append(.joined(token, JoinAnswer(error: .unknownMemberID, memberID: gone.id))) }
            if let token = gone.sync { actions.append(.synced(token, SyncAnswer(error: .unknownMemberID))) }
            if gone.id == leader { leader = nil }
        }
        switch phase {
        case .empty: return actions
        case .preparing: return actions + completeJoinIfAllAreHere(now)
        case .completing, .stable: return actions + prepareRebalance(now)
        }
    }

    private mutating func prepareRebalance(_ now: UInt64) -> [Action] {
        var actions: [Action] = []
        for place in members.indices {
            guard let token = members[place].sync else { continue }
            members[place].sync = nil
            actions.append(.synced(token, SyncAnswer(error: .rebalanceInProgress)))
        }
        if phase == .empty { gatheringDeadline = now + gatheringNanos }
        phase = .preparing
        phaseDeadline = max(now + (members.map(\.rebalanceNanos).max() ?? 0), gatheringDeadline)
        return actions + completeJoinIfAllAreHere(now)
    }

    private mutating func completeJoinIfAllAreHere(_ now: UInt64) -> [Action] {
        guard now >= gatheringDeadline, pending.isEmpty, members.allSatisfy({ $0.join != nil }) else { return [] }
        return completeJoin(now)
    }

    /// Starts the next generation with who is here.
    private mutating func completeJoin(_ now: UInt64) -> [Action] {
        // A static member may be restarting: its session decides.
        members.removeAll { $0.join == nil && $0.instanceID == nil }
        guard members.contains(where: { $0.join != nil }) else {
            phaseDeadline = now + (members.map(\.rebalanceNanos).max() ?? 0)
            guard members.isEmpty else { return [] }
            generation &+= 1
            phase = .empty
            (protocolName, leader) = (nil, nil)
            return []
        }
        generation &+= 1
        protocolName = vote()
        if leader == nil || !members.contains(where: { $0.id == leader && $0.join != nil }) { leader = members.first { $0.join != nil }?.id }
        phase = .completing
        phaseDeadline = now + (members.map(\.rebalanceNanos).max() ?? 0)
        var actions: [Action] = []
        for place in members.indices {
            members[place].hasSynced = members[place].join == nil
            members[place].sessionDeadline = now + members[place].sessionNanos
            guard let token = members[place].join else { continue }
            members[place].join = nil
            actions.append(.joined(token, joinAnswer(for: members[place])))
        }
        return actions
    }

    /// The protocol that most members prefer among those that all know; on a tie the first member's order decides.
    private func vote() -> String? {
        guard let first = members.first else { return nil }
        let common = first.protocols.map(\.name).filter { name in members.allSatisfy { $0.protocols.contains { $0.name == name } } }
        var best: (name: String, votes: Int)?
        for name in common {
            let votes = members.count { member in member.protocols.first { common.contains($0.name) }?.name == name }
            if votes > best?.votes ?? -1 { best = (name, votes) }
        }
        return best?.name
    }

    private func joinAnswer(for member: Member) -> JoinAnswer {
        let name = protocolName ?? ""
        return JoinAnswer(
            error: .none, generation: generation, protocolType: protocolType, protocolName: name, leader: leader ?? "", memberID: member.id,
            members: member.id == leader
                ? members.map { MemberMetadata(memberID: $0.id, instanceID: $0.instanceID, metadata: $0.metadata(of: name)) } : [])
    }

    private func syncAnswer(for member: Member) -> SyncAnswer {
        SyncAnswer(error: .none, protocolType: protocolType, protocolName: protocolName, assignment: member.assignment)
    }
}
