import MillIO
import MillKafkaWire
import MillTestKit
import Synchronization
import Testing

@testable import MillLog

private let small: @Sendable (inout LogOptions) -> Void = { ($0.segmentBytesMax, $0.indexIntervalBytes) = (1100, 200) }

private func numbered(_ range: Range<Int>) -> [String] { range.map { "\($0)" } }

/// One record a batch; about ten batches a segment.
private func fill(_ partition: PartitionLog, _ range: Range<Int>, timestamp: Int64 = 1) throws {
    for number in range { try partition.appendAndWait(batch(["\(number)"], timestamp: timestamp)) }
}

@Suite struct RetentionTests {
    @Test func everythingIsKeptUnlessSomebodyAsks() throws {
        let disk = try Disk()
        let log = try disk.open(small)
        let partition = try log.createTopic(name: "t").partitions[0]
        // Times that a producer gave long ago.
        try fill(partition, 0..<100, timestamp: 1)
        disk.clock.advance(by: .seconds(400 * 24 * 3600))
        log.maintain()
        #expect(try readAll(partition) == numbered(0..<100))
        #expect(partition.logStartOffset == 0)
    }

    @Test func theOldestSegmentsGoBySize() throws {
        let disk = try Disk()
        var log = try disk.open(small)
        let partition = try log.createTopic(name: "t", config: TopicConfig(["retention.bytes": "3000"])).partitions[0]
        try fill(partition, 0..<100)
        log.maintain()
        let start = partition.logStartOffset
        #expect(start > 0 && partition.byteCount >= 3000 && partition.byteCount < 3000 + 1100)
        #expect(try readAll(partition, from: start) == numbered(Int(start)..<100))
        #expect(throws: LogError.offsetOutOfRange(requested: start - 1, start: start, end: 100)) {
            try partition.read(from: start - 1, maxBytes: 10)
        }
        log.close()
        log = try disk.open(small)
        let again = try #require(log.topic(named: "t")?.partition(0))
        #expect(again.logStartOffset == start)
        #expect(try readAll(again, from: start) == numbered(Int(start)..<100))
        #expect(log.takeMaintenanceFailures().isEmpty)
    }

    @Test func segmentsGoByTheTimeAtWhichTheyWereTaken() throws {
        let disk = try Disk()
        let log = try disk.open(small)
        let partition = try log.createTopic(name: "t", config: TopicConfig(["retention.ms": "60000"])).partitions[0]
        try fill(partition, 0..<20, timestamp: 1)
        log.maintain()
        #expect(partition.logStartOffset == 0)
        disk.clock.advance(by: .seconds(50))
        try fill(partition, 20..<40, timestamp: 1)
        disk.clock.advance(by: .seconds(20))
        log.maintain()
        #expect((1...20).contains(partition.logStartOffset))
        disk.clock.advance(by: .seconds(120))
        log.maintain()
        #expect(partition.logStartOffset == 40 && partition.highWatermark == 40)
        #expect(try partition.appendAndWait(batch(["next"])).baseOffset == 40)
    }

    @Test func aSegmentEndsByAge() throws {
        let disk = try Disk()
        let log = try disk.open()
        let partition = try log.createTopic(name: "t", config: TopicConfig(["segment.ms": "1000"])).partitions[0]
        try fill(partition, 0..<3)
        disk.clock.advance(by: .seconds(2))
        try fill(partition, 3..<5)
        #expect(partition.state.withLock { $0.segments.map(\.baseOffset) } == [0, 3])
        disk.clock.advance(by: .seconds(2))
        log.maintain()
        #expect(partition.state.withLock { $0.segments.map(\.baseOffset) } == [0, 3, 5])
        #expect(try readAll(partition) == numbered(0..<5))
    }

    @Test func deletedRecordsStayDeleted() throws {
        let disk = try Disk()
        var log = try disk.open(small)
        var partition = try log.createTopic(name: "t").partitions[0]
        try fill(partition, 0..<50)
        #expect(try partition.deleteRecords(before: 25) == 25)
        #expect(try partition.deleteRecords(before: 10) == 25)
        #expect(throws: LogError.offsetOutOfRange(requested: 51, start: 25, end: 50)) { try partition.deleteRecords(before: 51) }
        #expect(try partition.offset(forTimestamp: 0)?.offset == 25)
        disk.files.crash(random: disk.random)
        log = try disk.open(small)
        partition = try #require(log.topic(named: "t")?.partition(0))
        #expect(partition.logStartOffset == 25)
        #expect(try readAll(partition, from: 25) == numbered(25..<50))
        #expect(try partition.deleteRecords(before: 50) == 50)
        disk.files.crash(random: disk.random)
        log = try disk.open(small)
        partition = try #require(log.topic(named: "t")?.partition(0))
        #expect((partition.logStartOffset, partition.highWatermark) == (50, 50))
        #expect(try partition.appendAndWait(batch(["50"])).baseOffset == 50)
    }

    @Test func whatIsKeptSurvivesAPowerCutAtAnyMoment() throws {
        try atEveryOperation(
            small,
            { log, _ in
                let partition = try log.createTopic(name: "t", config: TopicConfig(["retention.bytes": "2000"])).partitions[0]
                try fill(partition, 0..<60)
            }
        ) { log in
            let partition = try #require(log.topic(named: "t")?.partition(0))
            try partition.maintain()
            _ = try partition.deleteRecords(before: 55)
        } _: { log in
            let partition = try #require(log.topic(named: "t")?.partition(0))
            #expect(partition.failure == nil && partition.logStartOffset <= 55)
            #expect(try readAll(partition, from: partition.logStartOffset) == numbered(Int(partition.logStartOffset)..<60))
            #expect(try partition.appendAndWait(batch(["60"])).baseOffset == 60)
        }
    }

    @Test func abortedTransactionsAreForgottenWithTheirRecords() throws {
        let log = try Disk().open(small)
        var index = TransactionIndex()
        _ = log
        for number in Int64(0)..<10 {
            let data = try #require(try RecordBatch(firstIn: transactional(producer: number)))
            data.assign(baseOffset: number * 2, leaderEpoch: 0)
            let marker = try #require(
                try RecordBatch(firstIn: RecordBatchBuilder.marker(producerID: number, producerEpoch: 0, isCommit: false, timestamp: 0)))
            marker.assign(baseOffset: number * 2 + 1, leaderEpoch: 0)
            index.note(data)
            index.note(marker)
        }
        #expect(index.aborted(in: 4..<8).map(\.producerID) == [2, 3])
        index.removeAborted(before: 6)
        #expect(index.aborted(in: 0..<100).map(\.producerID) == [3, 4, 5, 6, 7, 8, 9])
    }

    private func transactional(producer: Int64) throws -> WireBytes {
        var builder = RecordBatchBuilder()
        builder.append(value: [1], timestamp: 0)
        (builder.producerID, builder.producerEpoch, builder.baseSequence, builder.isTransactional) = (producer, 0, 0, true)
        return try builder.finish()
    }

    @Test func settingsAreCheckedAndSurvive() throws {
        let disk = try Disk()
        var log = try disk.open()
        try log.createTopic(name: "t", config: TopicConfig(["retention.ms": "5", "min.insync.replicas": "1", "flush.ms": "9"]))
        try log.alterTopic(named: "t") { old throws(LogError) in
            var config = old
            try config.set("cleanup.policy", to: "compact,delete")
            try config.set("retention.ms", to: nil)
            return config
        }
        disk.files.crash(random: disk.random)
        log = try disk.open()
        let config = try #require(log.topic(named: "t")?.config)
        #expect(config.values == ["cleanup.policy": "compact,delete", "min.insync.replicas": "1", "flush.ms": "9"])
        #expect(config.isCompacted && config.deletesOld && config.retentionMillis == -1 && !TopicConfig.hasEffect("flush.ms"))
        for (name, value) in [
            ("retention.ms", "-2"), ("retention.bytes", "many"), ("cleanup.policy", "shred"), ("cleanup.policy", ""),
            ("compression.type", "gzip"),
            ("segment.bytes", "5"), ("min.cleanable.dirty.ratio", "2"), ("no.such.thing", "1"), ("message.timestamp.type", "Now"),
        ] {
            #expect(throws: LogError.self, "\(name)=\(value)") { try TopicConfig([name: value]) }
        }
    }

    @Test func readersGetTheTimeOfTheBrokerWhereATopicSaysSo() throws {
        let disk = try Disk()
        let log = try disk.open()
        let partition = try log.createTopic(name: "t", config: TopicConfig(["message.timestamp.type": "LogAppendTime"])).partitions[0]
        disk.clock.advance(by: .seconds(5))
        let now = disk.clock.nowMicros / 1000
        let appended = try partition.appendAndWait(batch(["a", "b"], timestamp: 1))
        #expect(appended.appendedAtMillis == now)
        #expect(try readAll(partition) == ["a", "b"])
        var batches = try partition.read(from: 0, maxBytes: 500).batches
        let stored = try #require(try batches.next())
        let decoder = RecordDecoder()
        var cursor = try decoder.records(of: stored)
        var times: [Int64] = []
        while let record = try cursor.next() { times.append(record.timestamp) }
        #expect(times == [now, now])
    }
}
