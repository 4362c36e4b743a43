import MillBase
import MillConnectorKit
import Testing

@testable import MillConnectors

@Suite(.serialized) struct KafkaConnectorTests {
    private func connector(_ servers: String, _ topic: String, _ more: [String: String] = [:], timeoutMillis: Int = 5000) throws -> KafkaConnector {
        let options = ["topic": topic, "properties.bootstrap.server": servers].merging(more) { $1 }
        return try KafkaConnector(options: ConnectorOptions(connector: "kafka", options), embedded: nil, timeoutMillis: timeoutMillis)
    }

    private func split(_ topic: String, _ partition: Int32) -> SourceSplit {
        SourceSplit(name: "\(topic)/\(partition)", topic: topic, partition: partition)
    }

    @Test func earliestReadsEveryPartitionFromItsFirstRecord() throws {
        let cluster = MockCluster()
        cluster.createTopic("events", partitions: 3)
        for partition in 0..<3 { cluster.produce("events", Int32(partition), (0..<50).map { "{\"p\":\(partition),\"i\":\($0)}" }) }
        let connector = try connector(cluster.bootstrapServers, "events", ["scan.startup.mode": "earliest"])
        let origin = try connector.resolveOrigin()
        #expect(origin == Dictionary(uniqueKeysWithValues: (0..<3).map { (split("events", $0), SplitOffset(0)) }))
        #expect(try connector.highWatermarks(origin.keys.sorted()).values.allSatisfy { $0 == SplitOffset(50) })
        for (split, offset) in origin {
            let bell = Bell()
            let reader = try connector.openReader(split, at: offset) { bell.ring() }
            let records = try read(reader, bell, count: 50, maxRecords: 7)
            #expect(records == (0..<50).map { ReadRecord(position: Int64($0), value: "{\"p\":\(split.partition),\"i\":\($0)}") })
            #expect(reader.highWatermark == SplitOffset(50))
            #expect(connector.status == nil)
            reader.close()
        }
    }

    @Test func latestIsFixedWhenTheOriginIsResolved() throws {
        let cluster = MockCluster()
        cluster.createTopic("events", partitions: 1)
        cluster.produce("events", 0, ["a", "b"])
        let connector = try connector(cluster.bootstrapServers, "events", ["scan.startup.mode": "latest-offset"])
        let origin = try connector.resolveOrigin()
        cluster.produce("events", 0, ["c", nil, ""])
        let bell = Bell()
        let reader = try connector.openReader(split("events", 0), at: origin[split("events", 0)]!) { bell.ring() }
        #expect(try read(reader, bell, count: 3) == [.init(position: 2, value: "c"), .init(position: 3, value: nil), .init(position: 4, value: "")])
        reader.close()
    }

    @Test func aRestartGoesOnAtTheStoredOffset() throws {
        let cluster = MockCluster()
        cluster.createTopic("events", partitions: 1)
        cluster.produce("events", 0, (0..<20).map(String.init))
        let connector = try connector(cluster.bootstrapServers, "events")
        let bell = Bell()
        let first = try connector.openReader(split("events", 0), at: SplitOffset(0)) { bell.ring() }
        // At least: what comes in two fetches may be more.
        #expect(try read(first, bell, count: 8, maxRecords: 8).count >= 8)
        // A second reader of the same partition while the first is open.
        let second = try connector.openReader(split("events", 0), at: SplitOffset(8)) { bell.ring() }
        #expect(try read(second, bell, count: 12).map(\.position) == Array(8..<20))
        first.close()
        second.close()
        let third = try connector.openReader(split("events", 0), at: SplitOffset(19)) { bell.ring() }
        #expect(try read(third, bell, count: 1).map(\.value) == ["19"])
        third.close()
    }

    @Test func consumersOfReadersThatHaveCaughtUpAreGivenUp() throws {
        let cluster = MockCluster()
        cluster.createTopic("events", partitions: 1)
        cluster.produce("events", 0, (0..<20).map(String.init))
        let connector = try connector(cluster.bootstrapServers, "events")
        let bell = Bell()
        let readers = try (0..<4).map { _ in try connector.openReader(split("events", 0), at: SplitOffset(0)) { bell.ring() } }
        for reader in readers[1...] { reader.close() }
        #expect(connector.readingClientCount == 4)
        #expect(try connector.currentSplits() == [split("events", 0)])
        #expect(connector.readingClientCount == 2, "one that reads, and one for the next reader")
        let next = try connector.openReader(split("events", 0), at: SplitOffset(10)) { bell.ring() }
        #expect(connector.readingClientCount == 2)
        for (reader, first) in [(readers[0], 0), (next, 10)] { #expect(try read(reader, bell, count: 20 - first).map(\.position) == Array(Int64(first)..<20)) }
    }

    @Test func aTimeIsResolvedToTheFirstRecordAtOrAfterIt() throws {
        let cluster = MockCluster()
        cluster.createTopic("events", partitions: 1)
        cluster.produce("events", 0, ["a", "b", "c"], millis: 5000)
        let modes = ["scan.startup.mode": "timestamp", "scan.startup.timestamp.millis": "5001"]
        let origin = try connector(cluster.bootstrapServers, "events", modes).resolveOrigin()
        // librdkafka's mock cluster does not look at times: it answers with the partition's end for all but the two ends.
        #expect(origin.count == 1)
        #expect((0...3).contains(origin[split("events", 0)]!.position))
    }

    @Test func anOffsetThatTheBrokerDoesNotHaveStopsTheReader() throws {
        let cluster = MockCluster()
        cluster.createTopic("events", partitions: 1)
        cluster.produce("events", 0, ["a", "b"])
        let connector = try connector(cluster.bootstrapServers, "events")
        let bell = Bell()
        let reader = try connector.openReader(split("events", 0), at: SplitOffset(100)) { bell.ring() }
        let error = failure(of: reader, bell)
        #expect(error?.sqlState == .objectNotInPrerequisiteState)
        #expect(error?.message == "offset 100 of \"events/0\" is out of range")
        #expect(throws: SQLError.self) { try reader.poll(maxRecords: 1, maxBytes: 1) }
        reader.close()
    }

    @Test func aBrokerThatIsDownIsNamedWithinTheTimeLimit() throws {
        let connector = try connector("127.0.0.1:1", "events", timeoutMillis: 400)
        let clock = ContinuousClock()
        let start = clock.now
        let error = #expect(throws: SQLError.self) { try connector.resolveOrigin() }
        #expect(clock.now - start < .seconds(3))
        #expect(error?.sqlState == .connectionFailure)
        #expect(error?.message.contains("127.0.0.1:1") == true)
        #expect(error?.message.contains("refused") == true, "\(error?.message ?? "")")
        #expect(connector.status != nil)
    }

    @Test func recordsOfABrokerThatWentAwayAreNoErrorButAStatus() throws {
        let bell = Bell()
        let connector: KafkaConnector
        let reader: any SplitReader
        do {
            let cluster = MockCluster()
            cluster.createTopic("events", partitions: 1)
            cluster.produce("events", 0, ["a"])
            connector = try self.connector(cluster.bootstrapServers, "events")
            reader = try connector.openReader(split("events", 0), at: SplitOffset(0)) { bell.ring() }
            #expect(try read(reader, bell, count: 1).count == 1)
        }
        #expect(try reader.poll(maxRecords: 10, maxBytes: 100) == nil)
        reader.close()
    }

    @Test func aTopicThatIsUnknownHasNoSplits() throws {
        let cluster = MockCluster()
        let connector = try connector(cluster.bootstrapServers, "later", ["scan.startup.mode": "latest", "properties.allow.auto.create.topics": "false"])
        // The mock cluster makes every topic that is asked for; a real broker does not.
        #expect(try connector.resolveOrigin().values.allSatisfy { $0 == SplitOffset(0) })
    }
}
