import MillIO
import MillKafkaWire
import MillTestKit
import Synchronization
import Testing

@testable import MillLog

private let small: @Sendable (inout LogOptions) -> Void = { ($0.segmentBytesMax, $0.indexIntervalBytes) = (1024, 200) }

/// A record as a reader sees it.
private struct Seen: Hashable {
    var offset: Int64
    var key: String?
    var value: String?
}

private func seen(_ partition: PartitionLog) throws -> [Seen] {
    let decoder = RecordDecoder()
    var next = partition.logStartOffset
    var found: [Seen] = []
    while next < partition.highWatermark {
        let slice = try partition.read(from: next, maxBytes: 300)
        var batches = slice.batches
        while let batch = try batches.next() {
            try batch.validateChecksum()
            if batch.isControl { continue }
            var cursor = try decoder.records(of: batch)
            while let record = try cursor.next() {
                if record.offset < next { continue }
                func text(_ bytes: UnsafeRawBufferPointer?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }
                found.append(Seen(offset: record.offset, key: text(record.key), value: text(record.value)))
            }
        }
        guard slice.nextOffset > next else { break }
        next = slice.nextOffset
    }
    return found
}

private func keyed(_ records: [(key: String, value: String?)], compression: Compression = .none) throws -> WireBytes {
    var builder = RecordBatchBuilder()
    for (index, record) in records.enumerated() {
        builder.append(
            key: Array(record.key.utf8), value: record.value.map { Array($0.utf8) }, timestamp: 1000 + Int64(index), headers: [("h", [7])])
    }
    return try builder.finish(compression: compression)
}

private func compacted(_ values: [String: String] = [:]) throws -> TopicConfig {
    try TopicConfig(["cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"].merging(values) { $1 })
}

/// Ends the segment that is appended to, so that compaction may have all that is there.
private func endSegment(_ partition: PartitionLog, _ filler: String) throws {
    try partition.appendAndWait(keyed([(filler, String(repeating: "x", count: 900))]))
    try partition.appendAndWait(keyed([(filler, String(repeating: "y", count: 900))]))
}

@Suite struct CompactionTests {
    @Test func theLastRecordOfEachKeyStaysAtItsOffset() throws {
        let disk = try Disk()
        var log = try disk.open(small)
        var partition = try log.createTopic(name: "t", config: compacted()).partitions[0]
        for round in 0..<30 {
            try partition.appendAndWait(keyed((0..<4).map { ("k\($0)", "v\(round)") }, compression: Compression.allCases[round % 5]))
        }
        try endSegment(partition, "end")
        let before = try seen(partition)
        let bytes = partition.byteCount
        log.maintain()
        #expect(log.takeMaintenanceFailures().isEmpty)
        let after = try seen(partition)
        #expect(partition.byteCount < bytes && after.count < before.count && Set(after).isSubset(of: before))
        for key in 0..<4 { #expect(after.filter { $0.key == "k\(key)" } == [try #require(before.last { $0.key == "k\(key)" })]) }
        #expect((partition.logStartOffset, partition.highWatermark) == (0, 122))
        disk.files.crash(random: disk.random)
        log = try disk.open(small)
        partition = try #require(log.topic(named: "t")?.partition(0))
        #expect(try seen(partition) == after)
        #expect(try partition.appendAndWait(keyed([("k0", "new")])).baseOffset == 122)
        #expect(throws: LogError.self) { try partition.appendAndWait(batch(["without a key"])) }
    }

    @Test func aDeletedKeyIsToldForAWhileAndThenGone() throws {
        let disk = try Disk()
        let log = try disk.open(small)
        let partition = try log.createTopic(name: "t", config: compacted(["delete.retention.ms": "10000"])).partitions[0]
        try partition.appendAndWait(keyed([("a", "1"), ("b", "1")]))
        try partition.appendAndWait(keyed([("a", nil), ("c", "1")]))
        try endSegment(partition, "x")
        log.maintain()
        #expect(
            try seen(partition).prefix(3) == [
                Seen(offset: 1, key: "b", value: "1"), Seen(offset: 2, key: "a"), Seen(offset: 3, key: "c", value: "1"),
            ])
        disk.clock.advance(by: .seconds(9))
        try endSegment(partition, "y")
        log.maintain()
        #expect(try seen(partition).contains(Seen(offset: 2, key: "a")))
        disk.clock.advance(by: .seconds(2))
        try endSegment(partition, "z")
        log.maintain()
        let left = try seen(partition)
        #expect(!left.contains { $0.key == "a" } && left.contains(Seen(offset: 1, key: "b", value: "1")))
        #expect(log.takeMaintenanceFailures().isEmpty)
    }

    @Test func aDeletionCanBeKeptForEver() throws {
        let log = try Disk().open(small)
        let partition = try log.createTopic(name: "t", config: compacted(["delete.retention.ms": String(Int64.max)])).partitions[0]
        try partition.appendAndWait(keyed([("a", "1"), ("a", nil)]))
        try endSegment(partition, "x")
        log.maintain()
        #expect(try seen(partition).first == Seen(offset: 1, key: "a"))
        #expect(log.takeMaintenanceFailures().isEmpty)
    }

    @Test func recordsBeforeKeysWereNeededStay() throws {
        let log = try Disk().open(small)
        let partition = try log.createTopic(name: "t").partitions[0]
        try partition.appendAndWait(batch(["one", "two"]))
        try log.alterTopic(named: "t") { _ throws(LogError) in
            try TopicConfig(["cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"])
        }
        try partition.appendAndWait(keyed([("a", "1")]))
        try partition.appendAndWait(keyed([("a", "2")]))
        try endSegment(partition, "x")
        log.maintain()
        #expect(try seen(partition).prefix(3).map(\.value) == ["one", "two", "2"])
    }

    @Test func compactionWaitsForEnoughThatIsNew() throws {
        let log = try Disk().open(small)
        let partition = try log.createTopic(name: "t", config: compacted(["min.cleanable.dirty.ratio": "0.9"])).partitions[0]
        for round in 0..<100 { try partition.appendAndWait(keyed([("k\(round)", "v")])) }
        try endSegment(partition, "x")
        log.maintain()
        let first = partition.state.withLock { $0.segments.map(\.generation) }
        #expect(first.dropLast().allSatisfy { $0 == 1 })
        try endSegment(partition, "x")
        log.maintain()
        #expect(partition.state.withLock { Array($0.segments.map(\.generation).prefix(first.count - 1)) } == Array(first.dropLast()))
    }

    @Test func transactionsAreCompactedByTheirOutcome() throws {
        let disk = try Disk()
        let log = try disk.open(small)
        let partition = try log.createTopic(name: "t", config: compacted(["delete.retention.ms": "1000"])).partitions[0]
        let producer = Transactions.Producer(id: 5, epoch: 0)
        func write(_ key: String, _ value: String, _ sequence: Int32) throws {
            var builder = RecordBatchBuilder()
            builder.append(key: Array(key.utf8), value: Array(value.utf8), timestamp: 0)
            (builder.producerID, builder.producerEpoch, builder.baseSequence, builder.isTransactional) = (producer.id, 0, sequence, true)
            try partition.appendAndWait(builder.finish())
        }
        func end(_ isCommit: Bool) {
            let done = OneShot<LogError?>()
            log.transactions.end("x", producer, isCommit: isCommit) { _ in done.set(nil) }
            _ = done.wait()
        }
        func begin() {
            let done = OneShot<LogError?>()
            log.transactions.add([PartitionPlace(topic: "t", partition: 0)], to: "x", producer) { _ in done.set(nil) }
            _ = done.wait()
        }
        log.coordinator.update { _ in
            ([.transaction(TransactionState(id: "x", producerID: 5, producerEpoch: 0, timeoutMillis: 60_000, updateMillis: 0))], { _ in })
        }
        begin()
        try write("a", "committed", 0)
        end(true)
        begin()
        // An aborted record is no reason to drop what came before.
        try write("a", "aborted", 1)
        end(false)
        begin()
        try write("b", "1", 2)
        end(true)
        try partition.appendAndWait(keyed([("b", "2")]))
        try endSegment(partition, "x")
        log.maintain()
        #expect(try readCommitted(partition).prefix(2) == ["committed", "2"])
        #expect(!(try seen(partition)).contains { $0.value == "aborted" })
        disk.clock.advance(by: .seconds(5))
        try endSegment(partition, "y")
        log.maintain()
        disk.clock.advance(by: .seconds(5))
        try endSegment(partition, "z")
        log.maintain()
        #expect(try readCommitted(partition).prefix(2) == ["committed", "2"])
        // Its records are gone, so nobody needs to be told that they do not count.
        #expect(partition.state.withLock { $0.transactions.aborted }.isEmpty)
        #expect(log.takeMaintenanceFailures().isEmpty)
    }

    /// Random keys, values and deletions through compactions in which the power goes at a random operation: the last record of every key is
    /// always there, at its offset, and nothing that never was.
    @Test func theLastValueOfAKeyIsNeverLost() throws {
        for seed in UInt64(0)..<40 {
            let disk = try Disk(seed)
            let options: (inout LogOptions) -> Void = { options in
                small(&options)
                options.compactionKeysMax = 3 + Int(seed % 20)
            }
            var log = try disk.open(options)
            try log.createTopic(name: "t", config: compacted())
            var all: Set<Seen> = []
            var last: [String: Seen] = [:]
            for life in 0..<4 {
                let partition = try #require(log.topic(named: "t")?.partition(0))
                for step in 0..<25 {
                    let records = (0...disk.random.below(3)).map { index -> (String, String?) in
                        (
                            "k\(disk.random.below(12))",
                            disk.random.below(4) == 0
                                ? nil : "\(life).\(step).\(index)" + String(repeating: "v", count: disk.random.below(200))
                        )
                    }
                    let base = try partition.appendAndWait(keyed(records, compression: Compression.allCases[disk.random.below(5)]))
                        .baseOffset
                    for (index, record) in records.enumerated() {
                        let one = Seen(offset: base + Int64(index), key: record.0, value: record.1)
                        all.insert(one)
                        last[record.0] = one
                    }
                    if disk.random.below(8) == 0 { log.maintain() }
                }
                let count = Mutex(0)
                let limit = disk.random.below(60)
                disk.files.setFault { _, _ in
                    count.withLock {
                        $0 += 1; return $0 > limit ? 5 : nil
                    }
                }
                log.maintain()
                disk.files.crash(random: disk.random)
                disk.files.setFault(nil)
                log = try disk.open(options)
                let reopened = try #require(log.topic(named: "t")?.partition(0))
                #expect(reopened.failure == nil, "seed \(seed) life \(life): \(String(describing: reopened.failure))")
                let found = try seen(reopened)
                #expect(Set(found).isSubset(of: all) && found.map(\.offset) == found.map(\.offset).sorted(), "seed \(seed) life \(life)")
                let lost = Set(last.values).subtracting(found)
                #expect(lost.isEmpty, "seed \(seed) life \(life): \(lost)")
                #expect(log.truncatedTails.isEmpty, "seed \(seed) life \(life)")
            }
        }
    }

    @Test func readersGoOnWhileSegmentsAreReplacedUnderThem() throws {
        let log = try Disk().open(small)
        let partition = try log.createTopic(name: "t", config: compacted()).partitions[0]
        for round in 0..<60 { try partition.appendAndWait(keyed([("k\(round % 3)", "v\(round)")])) }
        try endSegment(partition, "x")
        let first = try partition.read(from: 0, maxBytes: 100)
        log.maintain()
        var next = first.nextOffset
        var offsets: [Int64] = []
        while next < partition.highWatermark {
            let slice = try partition.read(from: next, maxBytes: 100)
            var batches = slice.batches
            while let batch = try batches.next() { offsets.append(batch.baseOffset) }
            #expect(slice.nextOffset > next)
            next = slice.nextOffset
        }
        #expect(offsets.contains(57) && offsets.contains(58) && offsets.contains(59))
    }
}
