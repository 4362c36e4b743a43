import MillIO
import MillKafkaWire
import Synchronization
import Testing

@testable import MillLog

@Suite struct PartitionLogTests {
    @Test(arguments: [LogOptions.Flush.sync, .os]) func whatIsAppendedIsReadAcrossSegments(_ flush: LogOptions.Flush) throws {
        let disk = try Disk()
        let log = try disk.open { ($0.segmentBytesMax, $0.indexIntervalBytes, $0.flush) = (2000, 300, flush) }
        let partition = try #require(log.createTopic(name: "t", partitions: 2).partition(1))
        var expected: [String] = []
        for index in 0..<100 {
            let values = (0...(index % 4)).map { "value \(index).\($0)" }
            let appended = try partition.appendAndWait(batch(values, compression: Compression.allCases[index % 5]))
            #expect(appended.baseOffset == Int64(expected.count) && appended.endOffset == appended.baseOffset + Int64(values.count))
            expected += values
        }
        #expect(partition.highWatermark == Int64(expected.count))
        for maxBytes in [1, 100, 700, 100_000] { #expect(try readAll(partition, maxBytes: maxBytes) == expected) }
        for offset in stride(from: 0, to: expected.count, by: 7) {
            #expect(try readAll(partition, from: Int64(offset)) == Array(expected[offset...]))
        }
        #expect(try disk.files.list("/data/log/t/1").filter { $0.hasSuffix(".log") }.count > 5)
        log.close()
        let again = try disk.open { ($0.segmentBytesMax, $0.indexIntervalBytes) = (2000, 300) }
        #expect(again.truncatedTails.isEmpty)
        #expect(try readAll(#require(again.topic(named: "t")?.partition(1))) == expected)
        #expect(try readAll(#require(again.topic(named: "t")?.partition(0))).isEmpty)
    }

    @Test func whoListensIsToldOfTopics() throws {
        let log = try Disk().open()
        let told = Mutex<[String]>([])
        let subscription = log.onTopicChange { name in told.withLock { $0.append(name) } }
        try log.createTopic(name: "a")
        try log.growTopic(named: "a", toPartitions: 2)
        #expect(throws: LogError.topicExists("a")) { try log.createTopic(name: "a") }
        try log.createTopic(name: "b")
        try log.deleteTopic(named: "a")
        subscription.cancel()
        try log.deleteTopic(named: "b")
        #expect(told.withLock { $0 } == ["a", "a", "b", "a"])
    }

    @Test func readsOutOfRangeAreRefused() throws {
        let log = try Disk().open()
        let partition = try #require(log.createTopic(name: "t").partition(0))
        try partition.appendAndWait(batch(["a", "b"]))
        #expect(throws: LogError.offsetOutOfRange(requested: 3, start: 0, end: 2)) { try partition.read(from: 3, maxBytes: 10) }
        #expect(throws: LogError.offsetOutOfRange(requested: -1, start: 0, end: 2)) { try partition.read(from: -1, maxBytes: 10) }
        #expect(try partition.read(from: 2, maxBytes: 10).isEmpty)
    }

    @Test func damagedBatchesAreRefusedAndNothingIsStored() throws {
        let log = try Disk().open { $0.batchBytesMax = 200 }
        let partition = try #require(log.createTopic(name: "t").partition(0))
        var bytes = try batch(["a"]).array
        bytes[bytes.count - 2] ^= 1
        #expect(throws: LogError.self) { try partition.appendAndWait(WireBytes(bytes)) }
        #expect(throws: LogError.self) { try partition.appendAndWait(WireBytes()) }
        #expect(throws: LogError.self) { try partition.appendAndWait(WireBytes(try batch(["a"]).array.dropLast())) }
        #expect(throws: LogError.self) { try partition.appendAndWait(batch([String(repeating: "x", count: 300)])) }
        #expect(partition.highWatermark == 0)
        #expect(try partition.appendAndWait(batch(["b"])).baseOffset == 0)
    }

    @Test func aRepeatedBatchIsAcknowledgedOnceStored() throws {
        let disk = try Disk()
        var log = try disk.open { $0.segmentBytesMax = 400 }
        func send(_ sequence: Int32, _ count: Int, epoch: Int16 = 0) throws -> PartitionLog.Appended {
            let values = (0..<count).map { "\(sequence + Int32($0))" }
            return try #require(log.topic(named: "t")?.partition(0)).appendAndWait(batch(values, producer: (7, epoch, sequence)))
        }
        try log.createTopic(name: "t")
        for sequence in Int32(0)..<8 { #expect(try send(sequence * 2, 2).baseOffset == Int64(sequence * 2)) }
        for sequence in Int32(3)..<8 {
            let again = try send(sequence * 2, 2)
            #expect(again.isDuplicate && again.baseOffset == Int64(sequence * 2) && again.endOffset == Int64(sequence * 2 + 2))
        }
        #expect(throws: LogError.outOfOrderSequence(expected: 16, found: 17)) { try send(17, 1) }
        #expect(throws: LogError.outOfOrderSequence(expected: 16, found: 14)) { try send(14, 1) }
        for isClean in [true, false] {
            if isClean { log.close() } else { disk.files.crash(random: disk.random) }
            log = try disk.open { $0.segmentBytesMax = 400 }
            #expect(try send(14, 2).isDuplicate)
            #expect(throws: LogError.outOfOrderSequence(expected: 16, found: 18)) { try send(18, 1) }
        }
        #expect(try send(16, 1).baseOffset == 16)
        #expect(throws: LogError.outOfOrderSequence(expected: 0, found: 17)) { try send(17, 1, epoch: 1) }
        #expect(try send(0, 1, epoch: 1).baseOffset == 17)
        #expect(throws: LogError.staleProducerEpoch(current: 1, found: 0)) { try send(1, 1) }
    }

    @Test func recordsAreFoundByTime() throws {
        let log = try Disk().open { ($0.segmentBytesMax, $0.indexIntervalBytes) = (600, 100) }
        let partition = try #require(log.createTopic(name: "t").partition(0))
        #expect(try partition.offset(forTimestamp: 0) == nil && partition.offsetOfMaxTimestamp() == nil)
        for index in 0..<40 { try partition.appendAndWait(batch(["a", "b", "c"], timestamp: Int64(index * 10), compression: index % 2 == 0 ? .none : .lz4)) }
        #expect(try partition.offset(forTimestamp: 0) == .init(offset: 0, timestamp: 0))
        #expect(try partition.offset(forTimestamp: 101) == .init(offset: 31, timestamp: 101))
        #expect(try partition.offset(forTimestamp: 103) == .init(offset: 33, timestamp: 110))
        #expect(try partition.offset(forTimestamp: 392) == .init(offset: 119, timestamp: 392))
        #expect(try partition.offset(forTimestamp: 393) == nil)
        #expect(try partition.offsetOfMaxTimestamp() == .init(offset: 119, timestamp: 392))
    }

    @Test func listenersHearOfEachAdvance() throws {
        let log = try Disk().open()
        let partition = try #require(log.createTopic(name: "t").partition(0))
        let heard = Mutex<[Int64]>([])
        var subscription: LogSubscription? = partition.onAppend { watermark in heard.withLock { $0.append(watermark) } }
        try partition.appendAndWait(batch(["a"]))
        try partition.appendAndWait(batch(["b", "c"]))
        log.coordinator.flush()
        subscription?.cancel()
        subscription = nil
        try partition.appendAndWait(batch(["d"]))
        log.close()
        #expect(heard.withLock { $0 } == [1, 3])
    }

    @Test func appendsFromManyTasksKeepOneOrder() async throws {
        let log = try Disk().open { $0.segmentBytesMax = 3000 }
        let partition = try #require(log.createTopic(name: "t").partition(0))
        let offsets = try await withThrowingTaskGroup(of: [Int64].self) { group in
            for task in 0..<8 {
                group.addTask {
                    var mine: [Int64] = []
                    for index in 0..<50 { mine.append(try await partition.append(batch(["\(task).\(index)"])).baseOffset) }
                    return mine
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(offsets.joined()) == Set(0..<400))
        #expect(offsets.allSatisfy { $0 == $0.sorted() })
        let values = try readAll(partition)
        for task in 0..<8 { #expect(values.filter { $0.hasPrefix("\(task).") } == (0..<50).map { "\(task).\($0)" }) }
    }

    @Test func aFullDiskRefusesAppendsAndRecovers() throws {
        let disk = try Disk()
        let log = try disk.open()
        let partition = try #require(log.createTopic(name: "t").partition(0))
        try partition.appendAndWait(batch(["a"]))
        disk.files.setFault { operation, path in operation == .write && path.hasSuffix(".log") ? 28 : nil }
        #expect(throws: LogError.self) { try partition.appendAndWait(batch(["b"])) }
        disk.files.setFault(nil)
        #expect(try partition.appendAndWait(batch(["c"])).baseOffset == 1)
        #expect(try readAll(partition) == ["a", "c"])
    }

    @Test func aFailedFsyncStopsThePartition() throws {
        let disk = try Disk()
        let log = try disk.open()
        let partition = try #require(log.createTopic(name: "t").partition(0))
        disk.files.setFault { operation, _ in operation == .sync ? 5 : nil }
        #expect(throws: LogError.self) { try partition.appendAndWait(batch(["a"])) }
        disk.files.setFault(nil)
        #expect(throws: LogError.self) { try partition.appendAndWait(batch(["b"])) }
        #expect(partition.failure != nil && partition.highWatermark == 0)
    }
}
