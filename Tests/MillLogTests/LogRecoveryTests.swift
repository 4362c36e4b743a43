import MillBase
import MillIO
import MillKafkaWire
import MillTestKit
import Synchronization
import Testing

@testable import MillLog

@Suite struct LogRecoveryTests {
    /// Whatever was acknowledged is there after a power cut, in order; what was not may be there, as a prefix.
    @Test func acknowledgedRecordsSurviveEveryPowerCut() throws {
        for seed in UInt64(0)..<200 {
            let disk = try Disk(seed)
            var acknowledged: [String] = []
            var sent: [String] = []
            for life in 0..<4 {
                let log = try disk.open { ($0.segmentBytesMax, $0.indexIntervalBytes) = (700, 200) }
                let partition = try log.topic(named: "t", creatingWithPartitions: 1).partition(0)
                let found = try readAll(try #require(partition))
                let isWhole = found.starts(with: acknowledged)
                #expect(isWhole, "seed \(seed) life \(life): \(found.count) of \(acknowledged.count)")
                let isPrefix = sent.starts(with: found)
                #expect(isPrefix, "seed \(seed) life \(life)")
                acknowledged = found
                sent = found
                for index in 0..<disk.random.below(12) {
                    let values = (0...disk.random.below(3)).map { "\(life).\(index).\($0)" + String(repeating: "x", count: disk.random.below(600)) }
                    sent += values
                    if index % 3 == 2 {
                        // Nobody waits: the power may go while the fsync is under way.
                        partition?.append(try batch(values)) { _ in }
                    } else {
                        try partition?.appendAndWait(batch(values))
                        acknowledged = sent
                    }
                }
                disk.files.crash(random: disk.random)
            }
        }
    }

    @Test func aTornTailIsCutAndReported() throws {
        let disk = try Disk()
        var log = try disk.open()
        try #require(log.createTopic(name: "t").partition(0)).appendAndWait(batch(["a"]))
        disk.files.crash(random: disk.random)
        let path = "/data/log/t/0/00000000000000000000.log"
        let file = try disk.files.open(path, .readWrite)
        let size = try file.size()
        let torn = Array(try batch(["torn"]).array.dropLast(3))
        try torn.withUnsafeBytes { try file.write($0, at: size) }
        log = try disk.open()
        #expect(log.truncatedTails == [TruncatedTail(path: path, keptBytes: size, cutBytes: torn.count)])
        let partition = try #require(log.topic(named: "t")?.partition(0))
        #expect(try partition.appendAndWait(batch(["b"])).baseOffset == 1)
        #expect(try readAll(partition) == ["a", "b"])
    }

    @Test func everyBrokenByteOfTheTailIsSeen() throws {
        let disk = try Disk()
        let log = try disk.open()
        let partition = try #require(log.createTopic(name: "t").partition(0))
        try partition.appendAndWait(batch(["a"]))
        try partition.appendAndWait(batch(["b"]))
        let path = "/data/log/t/0/00000000000000000000.log"
        disk.files.crash(random: disk.random)
        let original = try disk.files.open(path, .read).readAll().array
        for place in (original.count / 2)..<original.count {
            // The leader epoch is not under the checksum and means nothing here.
            if (12..<16).contains(place - original.count / 2) { continue }
            var bytes = original
            bytes[place] ^= 0xFF
            let file = try disk.files.open(path, .create)
            try bytes.withUnsafeBytes { try file.write($0, at: 0) }
            let reopened = try disk.open()
            #expect(try readAll(#require(reopened.topic(named: "t")?.partition(0))) == ["a"], "byte \(place)")
        }
    }

    @Test func aSegmentShorterThanItsIndexStopsThePartitionAlone() throws {
        let disk = try Disk()
        var log = try disk.open()
        try log.createTopic(name: "t", partitions: 2)
        for index in Int32(0)...1 { try #require(log.topic(named: "t")?.partition(index)).appendAndWait(batch(["a"])) }
        log.close()
        try disk.files.open("/data/log/t/0/00000000000000000000.log", .readWrite).truncate(to: 10)
        log = try disk.open()
        let broken = try #require(log.topic(named: "t")?.partition(0))
        guard case .corrupted(let path, _) = broken.failure else {
            Issue.record("\(String(describing: broken.failure))")
            return
        }
        #expect(path.hasSuffix("/t/0/00000000000000000000.log"))
        #expect(throws: LogError.self) { try broken.read(from: 0, maxBytes: 100) }
        #expect(throws: LogError.self) { try broken.appendAndWait(batch(["b"])) }
        #expect(try readAll(#require(log.topic(named: "t")?.partition(1))) == ["a"])
    }

    /// A process that ends before a segment's name is durable leaves one that the next process reads and writes to.
    @Test func aSegmentWhoseNameWasNotDurableIsAfterAStart() throws {
        for seed in UInt64(0)..<20 {
            let disk = try Disk(seed)
            let log = try disk.open { $0.segmentBytesMax = 700 }
            defer { log.close() }
            let partition = try log.createTopic(name: "t").partitions[0]
            try partition.appendAndWait(batch([String(repeating: "a", count: 600)]))
            disk.files.setFault { operation, path in operation == .syncDirectory && path.hasSuffix("/t/0") ? 5 : nil }
            #expect(throws: LogError.self) { try partition.appendAndWait(batch([String(repeating: "b", count: 600)])) }
            disk.files.setFault(nil)
            let next = try disk.open()
            defer { next.close() }
            let reopened = try #require(next.topic(named: "t")).partitions[0]
            try reopened.appendAndWait(batch(["c"]))
            let acknowledged = try readAll(reopened)
            disk.files.crash(random: disk.random)
            let found = try readAll(try #require(try disk.open().topic(named: "t")).partitions[0])
            #expect(found == acknowledged, "seed \(seed)")
        }
    }

    /// No checksum covers where a batch says that it lies.
    @Test func aBatchThatLiesAboutItsPlaceIsNotFollowed() throws {
        for place in 0..<8 {
            let disk = try Disk()
            let log = try disk.open { $0.segmentBytesMax = 700 }
            defer { log.close() }
            let partition = try log.createTopic(name: "t").partitions[0]
            let size = try batch(["0"]).count
            for index in 0..<20 { try partition.appendAndWait(batch(["\(index % 10)"])) }
            let path = "/data/log/t/0/00000000000000000000"
            try disk.files.remove(path + ".index")
            let file = try disk.files.open(path + ".log", .readWrite)
            try [UInt8(0x40)].withUnsafeBytes { try file.write($0, at: size + place) }
            let found = try readAll(try #require(try disk.open().topic(named: "t")).partitions[0])
            #expect(found == ["0"], "byte \(place)")
        }
    }

    /// What a process read from the file, and others acted upon, is not taken back by a power cut.
    @Test func offsetsThatAStartHasReadAreDurable() throws {
        for seed in UInt64(0)..<20 {
            let disk = try Disk(seed)
            let place = GroupOffsets.Place(topic: "t", partition: 0)
            let log = try disk.open()
            disk.files.setFault { operation, path in operation == .sync && path.hasSuffix("offsets.log") ? 5 : nil }
            let done = OneShot<LogError?>()
            log.groupOffsets.commit(group: "g", [(place, .init(offset: 7, leaderEpoch: 0, metadata: "", committedMillis: 0))]) { done.set($0) }
            #expect(done.wait() != nil)
            disk.files.setFault(nil)
            #expect(try disk.open().groupOffsets.committed(group: "g", place)?.offset == 7)
            disk.files.crash(random: disk.random)
            #expect(try disk.open().groupOffsets.committed(group: "g", place)?.offset == 7, "seed \(seed)")
        }
    }

    @Test func aTopicIsMadeWholeOrNotAtAll() throws {
        try atEveryOperation({ _ in }, { log, _ in try log.createTopic(name: "old") }) { log in
            try log.createTopic(name: "new", partitions: 3)
        } _: { log in
            #expect(log.topic(named: "old")?.partitions.count == 1)
            #expect([nil, 3].contains(log.topic(named: "new")?.partitions.count))
            try log.topic(named: "new", creatingWithPartitions: 3).partitions[2].appendAndWait(batch(["a"]))
        }
    }

    @Test func aTopicGrowsWhollyOrNotAtAll() throws {
        try atEveryOperation({ _ in }, { log, _ in try log.createTopic(name: "t").partitions[0].appendAndWait(batch(["kept"])) }) { log in
            try log.growTopic(named: "t", toPartitions: 3)
        } _: { log in
            let topic = try #require(log.topic(named: "t"))
            #expect([1, 3].contains(topic.partitions.count))
            #expect(try readAll(topic.partitions[0]) == ["kept"])
            if topic.partitions.count == 1 { try log.growTopic(named: "t", toPartitions: 2) }
            try topic.partitions[1].appendAndWait(batch(["a"]))
        }
    }

    @Test func aTopicIsDeletedWhollyOrNotAtAll() throws {
        try atEveryOperation({ _ in }, { log, _ in try log.createTopic(name: "t").partitions[0].appendAndWait(batch(["kept"])) }) { log in
            try log.deleteTopic(named: "t")
        } _: { log in
            guard let topic = log.topic(named: "t") else { return }
            let found = try readAll(topic.partitions[0])
            #expect(found == ["kept"])
        }
    }

    @Test func aTopicMadeAgainIsEmptyAndHasAnotherId() throws {
        let log = try Disk().open()
        let first = try log.createTopic(name: "t")
        try first.partitions[0].appendAndWait(batch(["a"]))
        try log.deleteTopic(named: "t")
        #expect(throws: LogError.unknownTopic("t")) { try first.partitions[0].read(from: 0, maxBytes: 1) }
        let second = try log.createTopic(name: "t")
        #expect(second.id != first.id && second.partitions[0].highWatermark == 0)
        #expect(throws: LogError.topicExists("t")) { try log.createTopic(name: "t") }
        #expect(throws: LogError.invalidTopicName("a/b")) { try log.createTopic(name: "a/b") }
        #expect(throws: LogError.invalidTopicName("..")) { try log.createTopic(name: "..") }
        #expect(throws: LogError.invalidPartitionCount(0)) { try log.createTopic(name: "u", partitions: 0) }
    }

    @Test func committedOffsetsSurviveAndAreRewritten() throws {
        let disk = try Disk()
        var log = try disk.open()
        let metadata = String(repeating: "m", count: 1000)
        for index in 0..<3000 {
            let done = OneShot<LogError?>()
            let value = GroupOffsets.Committed(offset: Int64(index), leaderEpoch: 0, metadata: metadata, committedMillis: 5)
            log.groupOffsets.commit(group: "g\(index % 2)", [(.init(topic: "t", partition: Int32(index % 3)), value)]) { done.set($0) }
            #expect(done.wait() == nil)
        }
        #expect(try disk.files.open("/data/log/@groups/offsets.log", .read).size() < 2 << 20)
        disk.files.crash(random: disk.random)
        log = try disk.open()
        #expect(log.groupOffsets.groups == ["g0", "g1"])
        #expect(log.groupOffsets.committed(group: "g1", .init(topic: "t", partition: 2))?.offset == 2999)
        try log.createTopic(name: "t")
        try log.deleteTopic(named: "t")
        log.coordinator.flush()
        #expect(log.groupOffsets.groups.isEmpty)
        log.close()
        log = try disk.open()
        #expect(log.groupOffsets.groups.isEmpty)
    }

    // MARK: What a start need not check

    @Test func aStartAfterACrashChecksOnlyWhatNoIndexCovers() throws {
        let disk = try Disk()
        let change: (inout LogOptions) -> Void = { ($0.uncheckedBytesMax, $0.indexIntervalBytes) = (2000, 200) }
        let log = try disk.open(change)
        let partition = try log.createTopic(name: "t").partitions[0]
        let values = (0..<50).map { "\($0)" + String(repeating: "x", count: 200) }
        for value in values { try partition.appendAndWait(batch([value])) }
        let path = "/data/log/t/0/00000000000000000000"
        // Not closed: as after kill -9.
        let covered = try #require(index(disk, path))
        let size = try disk.files.open(path + ".log", .read).size()
        #expect(covered <= size && size - covered < 2000 + 300)
        // What is covered is not looked at: damage in it is the reader's to find.
        let file = try disk.files.open(path + ".log", .readWrite)
        try [UInt8(0xFF)].withUnsafeBytes { try file.write($0, at: 100) }
        let reopened = try #require(try disk.open(change).topic(named: "t")).partitions[0]
        #expect(reopened.highWatermark == 50 && reopened.failure == nil)
        #expect(try readAll(reopened, from: 40) == Array(values[40...]))
        let slice = try reopened.read(from: 0, maxBytes: 100)
        #expect(slice.isFromDisk)
    }

    /// Bytes that a segment's index covers; nil when it is missing or damaged.
    private func index(_ disk: Disk, _ path: String) -> Int? {
        guard let file = try? disk.files.open(path + ".log", .read), let bytes = try? disk.files.open(path + ".index", .read).readAll() else { return nil }
        let segment = Segment(baseOffset: 0, generation: 0, file: file, indexPath: path + ".index")
        return segment.restore(fromIndex: bytes) == nil ? nil : segment.size
    }

    /// The same law as without indexes on the way.
    @Test func acknowledgedRecordsSurviveEveryPowerCutWithIndexesOnTheWay() throws {
        for seed in UInt64(0)..<200 {
            let disk = try Disk(seed)
            var acknowledged: [String] = []
            for life in 0..<4 {
                let log = try disk.open { ($0.segmentBytesMax, $0.indexIntervalBytes, $0.uncheckedBytesMax) = (3000, 200, 300) }
                let partition = try log.topic(named: "t", creatingWithPartitions: 1).partitions[0]
                #expect(partition.failure == nil, "seed \(seed) life \(life)")
                #expect(try readAll(partition).starts(with: acknowledged), "seed \(seed) life \(life)")
                acknowledged = try readAll(partition)
                for index in 0..<disk.random.below(20) {
                    let values = ["\(life).\(index)" + String(repeating: "x", count: disk.random.below(300))]
                    if index % 3 == 2 { partition.append(try batch(values)) { _ in } } else {
                        try partition.appendAndWait(batch(values))
                        acknowledged = try readAll(partition)
                    }
                }
                disk.files.crash(random: disk.random)
            }
        }
    }

    /// A damaged segment is not taken for one that never became durable when a later one did.
    @Test func damageBeforeADurableSegmentStopsThePartitionAndTakesNothing() throws {
        let disk = try Disk()
        let log = try disk.open { ($0.segmentBytesMax, $0.uncheckedBytesMax) = (700, 100) }
        let partition = try log.createTopic(name: "t").partitions[0]
        for index in 0..<8 { try partition.appendAndWait(batch([String(repeating: "\(index)", count: 500)])) }
        disk.files.crash(random: disk.random)
        let names = try disk.files.list("/data/log/t/0")
        let first = "/data/log/t/0/00000000000000000000"
        try disk.files.remove(first + ".index")
        let file = try disk.files.open(first + ".log", .readWrite)
        try [UInt8(0xFF)].withUnsafeBytes { try file.write($0, at: 80) }
        let reopened = try #require(try disk.open().topic(named: "t")).partitions[0]
        guard case .corrupted(let path, _) = reopened.failure else {
            Issue.record("\(String(describing: reopened.failure))")
            return
        }
        #expect(path == first + ".log")
        #expect(try disk.files.list("/data/log/t/0").filter { $0.hasSuffix(".log") } == names.filter { $0.hasSuffix(".log") })
    }

    // MARK: One thing's damage

    @Test func aDamagedLogStartStopsItsPartitionAlone() throws {
        let disk = try Disk()
        let log = try disk.open()
        let topic = try log.createTopic(name: "t", partitions: 2)
        for partition in topic.partitions { for value in ["a", "b"] { try partition.appendAndWait(batch([value])) } }
        _ = try topic.partitions[0].deleteRecords(before: 1)
        log.close()
        let file = try disk.files.open("/data/log/t/0/log.start", .readWrite)
        try [UInt8(0xFF)].withUnsafeBytes { try file.write($0, at: 15) }
        let reopened = try #require(try disk.open().topic(named: "t"))
        #expect(reopened.partitions[0].failure?.sqlError.message.contains("log.start") == true)
        #expect(throws: LogError.self) { try reopened.partitions[0].appendAndWait(batch(["c"])) }
        #expect(try readAll(reopened.partitions[1]) == ["a", "b"])
        // Without it the partition begins with what is there.
        try disk.files.remove("/data/log/t/0/log.start")
        #expect(try readAll(try #require(try disk.open().topic(named: "t")).partitions[0]) == ["a", "b"])
    }

    @Test func aTopicOfImpossibleSizeIsRefused() throws {
        for count in [-1, 0, 1 << 20] {
            let disk = try Disk()
            try disk.open().createTopic(name: "t")
            let metadata = TopicMetadata(name: "t", id: WireUUID(high: 1, low: 2), partitionCount: count, isInternal: false, createdMicros: 0, config: TopicConfig())
            try disk.files.open("/data/log/t/topic.meta", .create).writeAll(metadata.encoded())
            let error = #expect(throws: LogError.self) { try disk.open() }
            #expect(error?.sqlError.sqlState == .dataCorrupted)
        }
    }

    /// A topic whose directory has got its grave is gone, whatever comes of the sync after that.
    @Test func aTopicThatCannotBeDeletedDurablyTakesNothingMore() throws {
        let disk = try Disk()
        let log = try disk.open()
        let partition = try log.createTopic(name: "t").partitions[0]
        disk.files.setFault { operation, path in operation == .syncDirectory && path == "/data/log" ? 5 : nil }
        #expect(throws: LogError.self) { try log.deleteTopic(named: "t") }
        #expect(log.topic(named: "t") == nil)
        #expect(throws: LogError.unknownTopic("t")) { try partition.appendAndWait(batch(["a"])) }
        // Nor can one be made; its name stays free.
        #expect(throws: LogError.self) { try log.createTopic(name: "u") }
        disk.files.setFault(nil)
        try log.createTopic(name: "u").partitions[0].appendAndWait(batch(["a"]))
        try log.createTopic(name: "t").partitions[0].appendAndWait(batch(["a"]))
    }

    // MARK: offsets.log

    private func commit(_ log: Log, _ offset: Int64) -> LogError? {
        let done = OneShot<LogError?>()
        let value = GroupOffsets.Committed(offset: offset, leaderEpoch: 0, metadata: "", committedMillis: 0)
        log.groupOffsets.commit(group: "g", [(.init(topic: "t", partition: 0), value)]) { done.set($0) }
        return done.wait()
    }

    private func committed(_ log: Log) -> Int64? { log.groupOffsets.committed(group: "g", .init(topic: "t", partition: 0))?.offset }

    @Test func everyBrokenByteOfCommittedOffsetsIsSeen() throws {
        let disk = try Disk()
        let log = try disk.open()
        #expect(commit(log, 1) == nil)
        let path = "/data/log/@groups/offsets.log"
        let firstEnd = try disk.files.open(path, .read).size()
        #expect(commit(log, 2) == nil)
        disk.files.crash(random: disk.random)
        let bytes = try disk.files.open(path, .read).readAll().array
        for place in bytes.indices {
            var broken = bytes
            broken[place] ^= 0x40
            try broken.withUnsafeBytes { try disk.files.open(path, .create).write($0, at: 0) }
            if place < firstEnd {
                let error = #expect(throws: LogError.self, "byte \(place)") { try disk.open() }
                #expect(error?.sqlError.message.contains(path) == true && error?.sqlError.message.contains("byte 0") == true)
                #expect(try disk.files.open(path, .read).size() == bytes.count)
            } else {
                #expect(committed(try disk.open()) == 1, "byte \(place)")
            }
        }
    }

    @Test(arguments: ["sync", "write", "rename"]) func commitsGoOnAfterAFailure(operation: String) throws {
        let disk = try Disk()
        let log = try disk.open()
        #expect(commit(log, 1) == nil)
        // A write that cannot even be taken back, too.
        disk.files.setFault { found, path in path.contains("@groups") && (found.rawValue == operation || found == .truncate) ? 28 : nil }
        if operation != "rename" { #expect(commit(log, 2) != nil) }
        log.tick()
        log.coordinator.flush()
        disk.files.setFault(nil)
        _ = commit(log, 3)  // Refused, unless the flusher has mended it since.
        log.coordinator.mend()
        log.coordinator.flush()
        #expect(commit(log, 4) == nil)
        disk.files.crash(random: disk.random)
        #expect(committed(try disk.open()) == 4)
    }

    @Test func nobodyWaitsForALogThatIsClosed() throws {
        let log = try Disk().open()
        let partition = try log.createTopic(name: "t").partitions[0]
        log.close()
        #expect(throws: LogError.closed) { try partition.appendAndWait(batch(["a"])) }
        #expect(commit(log, 1) == .closed)
        // One that was never closed.
        let left = try Disk().open().createTopic(name: "t").partitions[0]
        #expect(throws: LogError.closed) { try left.appendAndWait(batch(["a"])) }
    }
}
