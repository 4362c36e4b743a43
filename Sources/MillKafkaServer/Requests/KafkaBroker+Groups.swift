import MillIO
import MillKafkaWire
import MillLog

extension KafkaBroker {
    private static let nanosPerMilli: UInt64 = 1_000_000
    /// Kafka's `group.max.session.timeout.ms`.
    private static let sessionMillisMax: Int32 = 1_800_000
    /// Kafka's `offset.metadata.max.bytes`.
    private static let metadataBytesMax = 4096

    func joinGroup(_ request: JoinGroupRequest, _ header: RequestHeader, _ client: Client, _ reply: @escaping Reply) {
        let version = header.apiVersion
        func refuse(_ error: KafkaErrorCode) { reply(response(JoinGroupResponse(errorCode: error.rawValue, memberID: request.memberID), version)) }
        guard !request.groupID.isEmpty else { return refuse(.invalidGroupID) }
        guard (1...Self.sessionMillisMax).contains(request.sessionTimeoutMs) else { return refuse(.invalidSessionTimeout) }
        let clientID = header.clientID ?? ""
        let session = UInt64(request.sessionTimeoutMs) * Self.nanosPerMilli
        let rebalance = version >= 1 ? UInt64(max(0, request.rebalanceTimeoutMs)) * Self.nanosPerMilli : session
        let join = GroupMachine.Join(
            memberID: request.memberID, instanceID: request.groupInstanceID, clientID: clientID, clientHost: "/" + client.host, sessionNanos: session,
            rebalanceNanos: rebalance, protocolType: request.protocolType,
            protocols: request.protocols.map { .init(name: $0.name, metadata: $0.metadata) }, canRetryWithID: version >= 4,
            newMemberID: groups.newMemberID(clientID: clientID))
        groups.join(group: request.groupID, join) { [self] answer in
            reply(response(
                JoinGroupResponse(
                    errorCode: answer.error.rawValue, generationID: answer.generation, protocolType: answer.protocolType,
                    protocolName: answer.protocolName ?? (version >= 7 ? nil : ""), leader: answer.leader, memberID: answer.memberID,
                    members: answer.members.map { .init(memberID: $0.memberID, groupInstanceID: $0.instanceID, metadata: $0.metadata) }),
                version))
        }
    }

    func syncGroup(_ request: SyncGroupRequest, _ version: Int16, _ reply: @escaping Reply) {
        groups.sync(request) { [self] answer in
            reply(response(
                SyncGroupResponse(
                    errorCode: answer.error.rawValue, protocolType: answer.protocolType, protocolName: answer.protocolName, assignment: answer.assignment),
                version))
        }
    }

    func heartbeat(_ request: HeartbeatRequest, _ version: Int16, _ reply: Reply) {
        let error = groups.heartbeat(
            group: request.groupID, memberID: request.memberID, instanceID: request.groupInstanceID, generation: request.generationID)
        reply(response(HeartbeatResponse(errorCode: error.rawValue), version))
    }

    func leaveGroup(_ request: LeaveGroupRequest, _ version: Int16, _ reply: Reply) {
        guard version >= 3 else {
            let error = groups.leave(group: request.groupID, memberID: request.memberID, instanceID: nil)
            return reply(response(LeaveGroupResponse(errorCode: error.rawValue), version))
        }
        let members = request.members.map { member in
            LeaveGroupResponse.MemberResponse(
                memberID: member.memberID, groupInstanceID: member.groupInstanceID,
                errorCode: groups.leave(group: request.groupID, memberID: member.memberID, instanceID: member.groupInstanceID).rawValue)
        }
        reply(response(LeaveGroupResponse(members: members), version))
    }

    // MARK: Offsets

    func offsetCommit(_ request: OffsetCommitRequest, _ version: Int16, _ reply: @escaping Reply) {
        let fault =
            request.groupID.isEmpty
            ? KafkaErrorCode.invalidGroupID
            : groups.commitFault(
                group: request.groupID, memberID: request.memberID, instanceID: request.groupInstanceID, generation: request.generationIDOrMemberEpoch)
        let nowMillis = log.environment.clock.nowMicros / 1000
        var offsets: [(PartitionPlace, GroupOffsets.Committed)] = []
        let topics = request.topics.map { topic in
            OffsetCommitResponse.OffsetCommitResponseTopic(name: topic.name, partitions: topic.partitions.map { part in
                let place = PartitionPlace(topic: topic.name, partition: part.partitionIndex)
                let committed = GroupOffsets.Committed(
                    offset: part.committedOffset, leaderEpoch: part.committedLeaderEpoch, metadata: part.committedMetadata ?? "", committedMillis: nowMillis)
                let error = fault ?? commitFault(place, committed)
                if error == .none { offsets.append((place, committed)) }
                return .init(partitionIndex: part.partitionIndex, errorCode: error.rawValue)
            })
        }
        let answer = OffsetCommitResponse(topics: topics)
        guard !offsets.isEmpty else { return reply(response(answer, version)) }
        log.groupOffsets.commit(group: request.groupID, offsets) { [self] error in
            var answer = answer
            if let error {
                for topic in answer.topics.indices {
                    for part in answer.topics[topic].partitions.indices where answer.topics[topic].partitions[part].errorCode == 0 {
                        answer.topics[topic].partitions[part].errorCode = KafkaErrorCode(error).rawValue
                    }
                }
            }
            reply(response(answer, version))
        }
    }

    /// What is wrong with a position, whoever commits it.
    func commitFault(_ place: PartitionPlace, _ committed: GroupOffsets.Committed) -> KafkaErrorCode {
        if log.topic(named: place.topic)?.partition(place.partition) == nil { return .unknownTopicOrPartition }
        return committed.metadata.utf8.count > Self.metadataBytesMax ? .offsetMetadataTooLarge : .none
    }

    func offsetFetch(_ request: OffsetFetchRequest, _ version: Int16, _ reply: Reply) {
        typealias Answer = OffsetFetchResponse
        func error(_ group: String, _ topic: String, _ index: Int32) -> Int16 {
            let isPending = request.requireStable && log.groupOffsets.hasPendingCommit(group: group, .init(topic: topic, partition: index))
            return (isPending ? KafkaErrorCode.unstableOffsetCommit : .none).rawValue
        }
        guard version >= 8 else {
            let topics = committed(request.groupID, request.topics?.map { ($0.name, $0.partitionIndexes) }).map { name, partitions in
                Answer.OffsetFetchResponseTopic(name: name, partitions: partitions.map { index, found in
                    .init(
                        partitionIndex: index, committedOffset: found?.offset ?? -1, committedLeaderEpoch: found?.leaderEpoch ?? -1,
                        metadata: found?.metadata ?? "", errorCode: error(request.groupID, name, index))
                })
            }
            return reply(response(Answer(topics: topics), version))
        }
        let groups = request.groups.map { group in
            Answer.OffsetFetchResponseGroup(
                groupID: group.groupID,
                topics: committed(group.groupID, group.topics?.map { ($0.name, $0.partitionIndexes) }).map { name, partitions in
                    .init(name: name, partitions: partitions.map { index, found in
                        .init(
                            partitionIndex: index, committedOffset: found?.offset ?? -1, committedLeaderEpoch: found?.leaderEpoch ?? -1,
                            metadata: found?.metadata ?? "", errorCode: error(group.groupID, name, index))
                    })
                })
        }
        reply(response(Answer(groups: groups), version))
    }

    /// A group's positions in the partitions asked for, or, for nil, in all it has.
    private func committed(_ group: String, _ topics: [(String, [Int32])]?) -> [(String, [(Int32, GroupOffsets.Committed?)])] {
        guard let topics else {
            let all = log.groupOffsets.committed(group: group) ?? [:]
            return Dictionary(grouping: all.sorted { $0.key < $1.key }, by: \.key.topic).sorted { $0.key < $1.key }
                .map { ($0.key, $0.value.map { ($0.key.partition, $0.value) }) }
        }
        return topics.map { name, partitions in
            (name, partitions.map { ($0, log.groupOffsets.committed(group: group, .init(topic: name, partition: $0))) })
        }
    }

    // MARK: Looking at groups

    func describeGroups(_ request: DescribeGroupsRequest, _ version: Int16, _ reply: Reply) {
        let allowed = request.includeAuthorizedOperations ? Self.groupOperations : Self.operationsNotAsked
        let described = request.groups.map { name -> DescribeGroupsResponse.DescribedGroup in
            guard let machine = groups.group(name) else {
                return .init(groupID: name, groupState: log.groupOffsets.committed(group: name) == nil ? "Dead" : "Empty", protocolType: "", protocolData: "", authorizedOperations: allowed)
            }
            let isSettled = machine.phase == .stable
            return .init(
                groupID: name, groupState: machine.phase.rawValue, protocolType: machine.protocolType ?? "",
                protocolData: isSettled ? machine.protocolName ?? "" : "",
                members: machine.members.map {
                    .init(
                        memberID: $0.id, groupInstanceID: $0.instanceID, clientID: $0.clientID, clientHost: $0.clientHost,
                        memberMetadata: isSettled ? $0.metadata(of: machine.protocolName ?? "") : WireBytes(), memberAssignment: $0.assignment)
                }, authorizedOperations: allowed)
        }
        reply(response(DescribeGroupsResponse(groups: described), version))
    }

    func listGroups(_ request: ListGroupsRequest, _ version: Int16, _ reply: Reply) {
        let machines = groups.groups
        let names = Set(machines.keys).union(log.groupOffsets.groups).sorted()
        let listed = names.map { name -> ListGroupsResponse.ListedGroup in
            let machine = machines[name]
            return .init(
                groupID: name, protocolType: machine?.protocolType ?? "", groupState: (machine?.phase ?? .empty).rawValue, groupType: "classic")
        }
        let states = Set(request.statesFilter.map { $0.lowercased() })
        let types = Set(request.typesFilter.map { $0.lowercased() })
        let wanted = listed.filter {
            (states.isEmpty || states.contains($0.groupState.lowercased())) && (types.isEmpty || types.contains($0.groupType))
        }
        reply(response(ListGroupsResponse(groups: wanted), version))
    }

    func deleteGroups(_ request: DeleteGroupsRequest, _ version: Int16, _ reply: @escaping Reply) {
        blocking { [self] in
            let results = request.groupsNames.map { name -> DeleteGroupsResponse.DeletableGroupResult in
                let exists = groups.group(name) != nil || log.groupOffsets.committed(group: name) != nil
                guard exists else { return .init(groupID: name, errorCode: KafkaErrorCode.groupIDNotFound.rawValue) }
                let error = groups.remove(group: name)
                guard error == .none else { return .init(groupID: name, errorCode: error.rawValue) }
                let failure = log.groupOffsets.deleteAndWait(group: name)
                return .init(groupID: name, errorCode: failure.map { KafkaErrorCode($0).rawValue } ?? 0)
            }
            reply(response(DeleteGroupsResponse(results: results), version))
        }
    }
}
