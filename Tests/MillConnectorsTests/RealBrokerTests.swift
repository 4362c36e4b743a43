import MillBase
import MillConnectorKit
import Testing

@testable import MillConnectors

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Against the broker that `MILLRACE_TEST_KAFKA` names (host:port), which must create topics by itself.
private let realBroker = getenv("MILLRACE_TEST_KAFKA").map { String(cString: $0) }

@Suite(.enabled(if: realBroker != nil, "MILLRACE_TEST_KAFKA names no broker")) struct RealBrokerTests {
    private func connector(_ topic: String, _ more: [String: String] = [:]) throws -> KafkaConnector {
        let options = ["topic": topic, "properties.bootstrap.server": try #require(realBroker)].merging(more) { $1 }
        return try KafkaConnector(options: ConnectorOptions(connector: "kafka", options), embedded: nil)
    }

    @Test func aTopicIsReadFromEveryStartAndFollowed() throws {
        let topic = "millrace-\(getpid())-\(time(nil))"
        let servers = try #require(realBroker)
        #expect(try connector(topic, ["scan.startup.mode": "latest"]).resolveOrigin() == [:])
        let values = (0..<5000).map { "{\"i\":\($0),\"text\":\"some text to fill the record\"}" }
        MockCluster.produce(to: servers, topic, 0, values, millis: 1_700_000_000_000)
        let split = SourceSplit(name: "\(topic)/0", topic: topic, partition: 0)
        let earliest = try connector(topic, ["scan.startup.mode": "earliest"])
        #expect(try earliest.resolveOrigin()[split] == SplitOffset(0))
        #expect(try earliest.highWatermarks([split]) == [split: SplitOffset(5000)])
        #expect(try connector(topic, ["scan.startup.mode": "latest"]).resolveOrigin()[split] == SplitOffset(5000))
        let bell = Bell()
        let reader = try earliest.openReader(split, at: SplitOffset(0)) { bell.ring() }
        #expect(try read(reader, bell, count: 5000) == values.enumerated().map { ReadRecord(position: Int64($0.offset), value: $0.element) })
        MockCluster.produce(to: servers, topic, 0, ["later", nil])
        #expect(try read(reader, bell, count: 2).map(\.value) == ["later", nil])
        reader.close()
        let beyond = try earliest.openReader(split, at: SplitOffset(1_000_000)) { bell.ring() }
        #expect(failure(of: beyond, bell)?.message == "offset 1000000 of \"\(topic)/0\" is out of range")
        beyond.close()
    }

    @Test func aTimeIsResolvedToTheFirstRecordAtOrAfterIt() throws {
        let topic = "millrace-time-\(getpid())-\(time(nil))"
        MockCluster.produce(to: try #require(realBroker), topic, 0, ["a", "b", "c"], millis: 1_700_000_000_000)
        let split = SourceSplit(name: "\(topic)/0", topic: topic, partition: 0)
        for (millis, offset) in [("1600000000000", 0), ("1700000000001", 1), ("1800000000000", 3)] as [(String, Int64)] {
            #expect(try connector(topic, ["scan.startup.timestamp.millis": millis]).resolveOrigin()[split] == SplitOffset(offset), "\(millis)")
        }
    }
}
