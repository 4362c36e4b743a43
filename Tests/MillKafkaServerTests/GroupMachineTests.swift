import MillKafkaWire
import Testing

@testable import MillKafkaServer

private let second: UInt64 = 1_000_000_000

/// A group with a clock, and what it answered.
private struct Driver {
    var machine = GroupMachine()
    var now: UInt64 = 0
    var token: UInt64 = 0
    var joined: [UInt64: GroupMachine.JoinAnswer] = [:]
    var synced: [UInt64: GroupMachine.SyncAnswer] = [:]

    mutating func take(_ actions: [GroupMachine.Action]) {
        for action in actions {
            switch action {
            case .joined(let token, let answer):
                #expect(joined[token] == nil, "a join is answered once")
                joined[token] = answer
            case .synced(let token, let answer):
                #expect(synced[token] == nil, "a sync is answered once")
                synced[token] = answer
            }
        }
    }

    /// `protocols` as `name:metadata`. Returns the request's token.
    mutating func join(
        _ id: String, new: String = "", instance: String? = nil, protocols: [String] = ["range:x"], type: String = "consumer", retry: Bool = false,
        session: UInt64 = 10, rebalance: UInt64 = 60
    ) -> UInt64 {
        token += 1
        let request = GroupMachine.Join(
            memberID: id, instanceID: instance, clientID: "c", clientHost: "/h", sessionNanos: session * second, rebalanceNanos: rebalance * second,
            protocolType: type,
            protocols: protocols.map { text in
                let parts = text.split(separator: ":", omittingEmptySubsequences: false)
                return .init(name: String(parts[0]), metadata: WireBytes(Array(parts[1].utf8)))
            }, canRetryWithID: retry, newMemberID: new)
        take(machine.join(request, token: token, now: now))
        return token
    }

    mutating func sync(_ id: String, _ generation: Int32, instance: String? = nil, assign: [String: String] = [:]) -> UInt64 {
        token += 1
        take(machine.sync(
            memberID: id, instanceID: instance, generation: generation, protocolType: nil, protocolName: nil,
            assignments: assign.mapValues { WireBytes(Array($0.utf8)) }, token: token, now: now))
        return token
    }

    mutating func beat(_ id: String, _ generation: Int32) -> KafkaErrorCode { machine.heartbeat(memberID: id, instanceID: nil, generation: generation, now: now) }

    mutating func leave(_ id: String) -> KafkaErrorCode {
        let (error, actions) = machine.leave(memberID: id, instanceID: nil, now: now)
        take(actions)
        return error
    }

    /// In steps of a tenth of a second, as the server does it.
    mutating func pass(_ seconds: UInt64, beating: [(String, Int32)] = []) {
        for _ in 0..<seconds * 10 {
            now += second / 10
            for (id, generation) in beating { _ = beat(id, generation) }
            take(machine.tick(now: now))
        }
    }

    /// Two members, stable in generation 2.
    static func withTwo() -> Driver {
        var driver = Driver()
        let a = driver.join("", new: "a")
        #expect(driver.joined[a]?.leader == "a")
        let b = driver.join("", new: "b")
        let again = driver.join("a")
        #expect(driver.joined[again]?.generation == 2 && driver.joined[b]?.generation == 2)
        #expect(driver.joined[again]?.members.map(\.memberID) == ["a", "b"] && driver.joined[b]?.members.isEmpty == true)
        let follower = driver.sync("b", 2)
        #expect(driver.synced[follower] == nil, "the follower waits for the leader")
        let leader = driver.sync("a", 2, assign: ["a": "1", "b": "2"])
        #expect(driver.synced[leader]?.assignment == WireBytes([0x31]) && driver.synced[follower]?.assignment == WireBytes([0x32]))
        #expect(driver.machine.phase == .stable)
        return driver
    }
}

@Suite struct GroupMachineTests {
    @Test func twoMembersShareAGeneration() { _ = Driver.withTwo() }

    @Test func aNewMemberGetsItsIdFirst() {
        var driver = Driver()
        let first = driver.join("", new: "a", retry: true)
        #expect(driver.joined[first]?.error == .memberIDRequired && driver.joined[first]?.memberID == "a")
        #expect(driver.machine.members.isEmpty && !driver.machine.isUnused)
        let second = driver.join("a", retry: true)
        #expect(driver.joined[second]?.error == KafkaErrorCode.none)
        let unknown = driver.join("z", retry: true)
        #expect(driver.joined[unknown]?.error == .unknownMemberID)
    }

    @Test func membersThatStartTogetherShareTheFirstGeneration() {
        var driver = Driver(machine: GroupMachine(gatheringNanos: second))
        let a = driver.join("", new: "a")
        driver.now += second / 2
        let b = driver.join("", new: "b")
        driver.take(driver.machine.tick(now: driver.now))
        #expect(driver.joined.isEmpty, "the group still gathers")
        driver.pass(1)
        #expect(driver.joined[a]?.generation == 1 && driver.joined[b]?.generation == 1)
        #expect(driver.joined[a]?.members.map(\.memberID) == ["a", "b"])
        let c = driver.join("", new: "c")
        _ = (driver.join("a"), driver.join("b"))
        #expect(driver.joined[c]?.generation == 2, "only the first generation gathers")
    }

    @Test func anIdThatIsNeverUsedIsForgotten() {
        var driver = Driver()
        _ = driver.join("", new: "a", retry: true, session: 6)
        driver.pass(7)
        #expect(driver.machine.isUnused)
    }

    @Test func aRebalanceWaitsForAllAndThenForTheTimeLimit() {
        var driver = Driver.withTwo()
        let c = driver.join("", new: "c")
        #expect(driver.machine.phase == .preparing && driver.joined[c] == nil)
        #expect(driver.beat("a", 2) == .rebalanceInProgress)
        let a = driver.join("a")
        driver.pass(59, beating: [("b", 2)])
        #expect(driver.joined[a] == nil, "b is alive and may still come")
        driver.pass(2, beating: [("b", 2)])
        #expect(driver.joined[a]?.generation == 3 && driver.joined[a]?.members.map(\.memberID) == ["a", "c"])
        #expect(driver.beat("b", 2) == .unknownMemberID)
    }

    @Test func aSilentMemberIsGivenUp() {
        var driver = Driver.withTwo()
        driver.pass(9, beating: [("a", 2)])
        #expect(driver.machine.phase == .stable)
        driver.pass(2, beating: [("a", 2)])
        #expect(driver.machine.phase == .preparing && driver.machine.members.map(\.id) == ["a"])
        let a = driver.join("a")
        #expect(driver.joined[a]?.generation == 3 && driver.joined[a]?.leader == "a")
    }

    @Test func aMemberWhoseJoinWaitsIsNotGivenUp() {
        var driver = Driver.withTwo()
        let c = driver.join("", new: "c", session: 6)
        driver.pass(20, beating: [("a", 2), ("b", 2)])
        #expect(driver.joined[c] == nil && driver.machine.members.map(\.id).contains("c"))
        _ = driver.join("a")
        _ = driver.join("b")
        #expect(driver.joined[c]?.generation == 3)
    }

    @Test func leavingStartsARebalanceAndTheLastOneEmptiesTheGroup() {
        var driver = Driver.withTwo()
        #expect(driver.leave("b") == .none)
        #expect(driver.beat("a", 2) == .rebalanceInProgress)
        let a = driver.join("a")
        #expect(driver.joined[a]?.generation == 3)
        #expect(driver.leave("b") == .unknownMemberID && driver.leave("a") == .none)
        #expect(driver.machine.phase == .empty && driver.machine.isUnused)
    }

    @Test func whoDoesNotSyncIsRemoved() {
        var driver = Driver.withTwo()
        _ = driver.join("", new: "c", rebalance: 5)
        _ = driver.join("a", rebalance: 5)
        _ = driver.join("b", rebalance: 5)
        #expect(driver.machine.phase == .completing)
        let b = driver.sync("b", 3)
        driver.pass(6, beating: [("a", 3), ("c", 3)])
        #expect(driver.synced[b]?.error == .rebalanceInProgress, "the leader never assigned")
        #expect(driver.machine.members.map(\.id) == ["b"])
    }

    @Test func wrongGenerationsAndStrangersAreRefused() {
        var driver = Driver.withTwo()
        #expect(driver.beat("a", 1) == .illegalGeneration && driver.beat("z", 2) == .unknownMemberID && driver.beat("a", 2) == .none)
        let old = driver.sync("a", 1)
        let stranger = driver.sync("z", 2)
        #expect(driver.synced[old]?.error == .illegalGeneration && driver.synced[stranger]?.error == .unknownMemberID)
        #expect(driver.machine.commitFault(memberID: "a", instanceID: nil, generation: 2) == nil)
        #expect(driver.machine.commitFault(memberID: "a", instanceID: nil, generation: 1) == .illegalGeneration)
        #expect(driver.machine.commitFault(memberID: "", instanceID: nil, generation: -1) == .unknownMemberID)
        #expect(GroupMachine().commitFault(memberID: "", instanceID: nil, generation: -1) == nil)
    }

    @Test func theProtocolThatMostPreferAmongTheCommonOnesIsChosen() {
        var driver = Driver()
        _ = driver.join("", new: "a", protocols: ["sticky:1", "range:1", "own:1"])
        let b = driver.join("", new: "b", protocols: ["range:2", "sticky:2"])
        let c = driver.join("", new: "c", protocols: ["range:3", "sticky:3"])
        let a = driver.join("a", protocols: ["sticky:1", "range:1", "own:1"])
        #expect(driver.joined[a]?.protocolName == "range" && driver.joined[b]?.protocolName == "range")
        #expect(driver.joined[a]?.members.map(\.metadata) == [WireBytes([0x31]), WireBytes([0x32]), WireBytes([0x33])])
        _ = c
        let odd = driver.join("", new: "d", protocols: ["other:1"])
        let connect = driver.join("", new: "e", type: "connect")
        #expect(driver.joined[odd]?.error == .inconsistentGroupProtocol && driver.joined[connect]?.error == .inconsistentGroupProtocol)
    }

    @Test func aFollowersSameJoinIsAnsweredWithoutARebalance() {
        var driver = Driver.withTwo()
        let b = driver.join("b")
        #expect(driver.joined[b]?.generation == 2 && driver.machine.phase == .stable)
        let changed = driver.join("b", protocols: ["range:y"])
        #expect(driver.joined[changed] == nil && driver.machine.phase == .preparing)
    }

    @Test func aStaticMemberReturnsWithoutARebalance() {
        var driver = Driver()
        let first = driver.join("", new: "a", instance: "one")
        #expect(driver.joined[first]?.generation == 1)
        _ = driver.sync("a", 1, instance: "one", assign: ["a": "1"])
        driver.pass(3)
        let back = driver.join("", new: "b", instance: "one")
        #expect(driver.joined[back]?.generation == 1 && driver.joined[back]?.memberID == "b" && driver.joined[back]?.leader == "a")
        let sync = driver.sync("b", 1, instance: "one")
        #expect(driver.synced[sync]?.assignment == WireBytes([0x31]))
        let ghost = driver.sync("a", 1, instance: "one")
        #expect(driver.synced[ghost]?.error == .fencedInstanceID)
        driver.pass(11)
        #expect(driver.machine.isUnused)
    }

    /// Random members that come, go, lag and die: answers stay unique, and when all is quiet the group settles.
    @Test func everyRandomHistorySettles() {
        for seed in UInt64(0)..<300 {
            var random = Source(state: seed)
            var driver = Driver(machine: GroupMachine(gatheringNanos: seed % 3 * second))
            var generations: [String: Int32] = [:]
            var waiting: [UInt64: String] = [:]
            for step in 0..<80 {
                switch Int.random(in: 0..<5, using: &random) {
                case 0: waiting[driver.join("", new: "m\(step)", session: 6, rebalance: 10)] = "m\(step)"
                case 1:
                    if let id = generations.keys.sorted().randomElement(using: &random) { waiting[driver.join(id, session: 6, rebalance: 10)] = id }
                case 2:
                    if let id = generations.keys.sorted().randomElement(using: &random), let generation = generations[id] {
                        let members = driver.machine.members.map(\.id)
                        _ = driver.sync(id, generation, assign: Dictionary(uniqueKeysWithValues: members.map { ($0, $0) }))
                    }
                case 3:
                    if let id = generations.keys.sorted().randomElement(using: &random) {
                        _ = driver.leave(id)
                        generations[id] = nil
                    }
                default: driver.pass(UInt64.random(in: 0..<3, using: &random))
                }
                for (token, id) in waiting {
                    guard let answer = driver.joined[token] else { continue }
                    waiting[token] = nil
                    if answer.error == .none { generations[id] = answer.generation }
                }
                let leaders = driver.machine.members.filter { $0.id == driver.machine.leader }
                #expect(leaders.count <= 1 && Set(driver.machine.members.map(\.id)).count == driver.machine.members.count, "seed \(seed)")
            }
            driver.pass(60)
            #expect(driver.machine.isUnused && driver.machine.phase == .empty, "seed \(seed): \(driver.machine.phase)")
            let left = waiting.keys.filter { driver.joined[$0] == nil }
            #expect(left.isEmpty, "seed \(seed): every join was answered")
        }
    }
}

private struct Source: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
