import MillBase
import MillConnectorKit
import MillIO
import Synchronization
import Testing

@testable import MillConnectors
@testable import MillKafkaWire
@testable import MillLog

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

@Suite struct LogSplitReaderTests {
    private func withLog(_ body: (Log) throws -> Void) throws {
        var template = Array("/tmp/millrace-log-XXXXXX".utf8CString)
        let path = String(cString: try #require(mkdtemp(&template)))
        let log = try Log(environment: .system, directory: path)
        defer {
            log.close()
            try? LocalFileSystem().remove(path)
        }
        try body(log)
    }

    private func append(_ log: Log, _ topic: String, _ values: [String?], compression: Compression = .none, millis: Int64 = 1000) throws {
        var builder = RecordBatchBuilder()
        for (index, value) in values.enumerated() { builder.append(value: value.map { Array($0.utf8) }, timestamp: millis + Int64(index)) }
        _ = try #require(log.topic(named: topic)?.partition(0)).appendAndWait(builder.finish(compression: compression))
    }

    private func connector(
        _ log: Log, _ mode: [String: String] = [:], addresses: [String] = ["localhost:1", "127.0.0.1:2"]
    ) throws -> KafkaConnector {
        let options = ["topic": "t", "properties.bootstrap.servers": "Localhost:1, 127.0.0.1:2"].merging(mode) { $1 }
        return try KafkaConnector(
            options: ConnectorOptions(connector: "kafka", options), embedded: EmbeddedBroker(log: log, addresses: addresses),
            timeoutMillis: 100)
    }

    @Test func onlyOurOwnAddressesAreReadDirectly() throws {
        try withLog { log in
            try log.createTopic(name: "t", partitions: 2)
            #expect(try connector(log).currentSplits().count == 2)
            let other = try connector(log, addresses: ["localhost:1"])
            let error = #expect(throws: SQLError.self) { try other.currentSplits() }
            #expect(error?.sqlState == .connectionFailure)
        }
    }

    @Test func aRecordWithoutATimeHasNone() throws {
        try withLog { log in
            try log.createTopic(name: "t", partitions: 1)
            let connector = try connector(log)
            let split = try #require(try connector.currentSplits().first)
            let cases: [(Int64, [Int64]?)] = [(-1, [RawChunk.unknownTime, 0]), (-2, nil), (5, [5000, 6000]), (.max - 1, nil)]
            for (first, expected) in cases {
                let end = try connector.highWatermarks([split])[split] ?? SplitOffset(0)
                try append(log, "t", ["a", "b"], millis: first)
                let chunk = try connector.openReader(split, at: end) {}.poll(maxRecords: 10, maxBytes: 1 << 20)
                #expect(chunk?.count == 2)
                #expect(chunk?.timestamps == expected, "from \(first)")
            }
        }
    }

    @Test func recordsComeInOrderOverBatchesAndCodecs() throws {
        try withLog { log in
            try log.createTopic(name: "t", partitions: 1)
            let connector = try connector(log)
            let split = try #require(try connector.currentSplits().first)
            let bell = Bell()
            let reader = try connector.openReader(split, at: SplitOffset(0)) { bell.ring() }
            #expect(try reader.poll(maxRecords: 10, maxBytes: 1 << 20) == nil)
            var expected: [ReadRecord] = []
            for (index, codec) in Compression.allCases.enumerated() {
                let values: [String?] = (0..<9).map { $0 == 4 ? nil : "{\"batch\":\(index),\"record\":\($0)}" }
                for value in values { expected.append(ReadRecord(position: Int64(expected.count), value: value)) }
                try append(log, "t", values, compression: codec)
            }
            for maxRecords in [1, 4, 9, 1000] {
                let again = try connector.openReader(split, at: SplitOffset(3)) {}
                #expect(try read(again, bell, count: expected.count - 3, maxRecords: maxRecords, maxBytes: 100) == Array(expected[3...]))
                #expect(try again.poll(maxRecords: 1, maxBytes: 100) == nil)
            }
            #expect(try read(reader, bell, count: expected.count) == expected)
            #expect(reader.highWatermark == SplitOffset(Int64(expected.count)))
            reader.close()
        }
    }

    private func reader(_ log: Log, decoder: RecordDecoder = RecordDecoder()) throws -> LogSplitReader {
        LogSplitReader(
            try #require(log.topic(named: "t")?.partition(0)), SourceSplit(name: "t/0", topic: "t", partition: 0), at: SplitOffset(0),
            isolation: .committed, pool: BlockPool(), decoder: decoder) {}
    }

    @Test func aBatchIsOpenedOnceHoweverFewOfItsRecordsAreTakenAtATime() throws {
        try withLog { log in
            try log.createTopic(name: "t", partitions: 1)
            // More than a decoder keeps the memory of: each time it opens the batch it takes some.
            let values = (0..<600).map { "\($0)" + String(repeating: "x", count: 10_000) }
            try append(log, "t", values, compression: .gzip)
            let taken = Taken()
            let reader = try reader(log, decoder: RecordDecoder(decompressedBytesMax: 128 << 20) { taken.count.add(1, ordering: .relaxed); return realloc($0, $1) })
            var found: [ReadRecord] = []
            var afterFirst: Int?
            while let chunk = try reader.poll(maxRecords: 7, maxBytes: 1 << 20) {
                #expect(chunk.count <= 7)
                found += chunk.records
                if afterFirst == nil { afterFirst = taken.count.load(ordering: .relaxed) }
            }
            #expect(found == values.enumerated().map { ReadRecord(position: Int64($0), value: $1) })
            #expect(taken.count.load(ordering: .relaxed) == afterFirst)
        }
    }

    private final class Taken: Sendable { let count = Atomic(0) }

    @Test func smallBatchesOfMuchAreNotReadAllAtOnce() throws {
        try withLog { log in
            try log.createTopic(name: "t", partitions: 1)
            let value = String(repeating: "x", count: 400_000)
            for _ in 0..<20 { try append(log, "t", [value, value], compression: .gzip) }
            let reader = try reader(log)
            var positions: [Int64] = []
            while let chunk = try reader.poll(maxRecords: 1000, maxBytes: 1 << 30) {
                #expect(chunk.byteCount < 1 << 20)
                positions += chunk.positions
            }
            #expect(positions == Array(0..<40))
        }
    }

    /// A producer whose every verb is waited for.
    private struct TransactionalProducer {
        let log: Log
        let producer: Transactions.Producer
        private var sequence: Int32 = 0

        init(_ log: Log) throws {
            self.log = log
            producer = try Self.wait { log.transactions.initialize("x", timeoutMillis: 1000, known: nil, completion: $0) }
        }

        private static func wait<T: Sendable>(_ body: (@escaping Transactions.Completion<T>) -> Void) throws -> T {
            let result = OneShot<Result<T, TransactionError>>()
            body { result.set($0) }
            return try result.wait().get()
        }

        mutating func write(_ value: String) throws {
            let _: Void = try Self.wait { log.transactions.add([PartitionPlace(topic: "t", partition: 0)], to: "x", producer, completion: $0) }
            var builder = RecordBatchBuilder()
            builder.append(value: Array(value.utf8), timestamp: 1000)
            (builder.producerID, builder.producerEpoch, builder.baseSequence, builder.isTransactional) = (producer.id, producer.epoch, sequence, true)
            sequence += 1
            _ = try #require(log.topic(named: "t")?.partition(0)).appendAndWait(builder.finish())
        }

        func end(commit: Bool) throws {
            let _: Void = try Self.wait { log.transactions.end("x", producer, isCommit: commit, completion: $0) }
        }
    }

    @Test func onlyCommittedRecordsAreReadUnlessTheSourceAsksForAll() throws {
        try withLog { log in
            try log.createTopic(name: "t", partitions: 1)
            let committed = try connector(log)
            let all = try connector(log, ["properties.isolation.level": "read_uncommitted"])
            let split = try #require(try committed.currentSplits().first)
            var producer = try TransactionalProducer(log)
            for (value, commits) in [("aborted", false), ("kept", true)] {
                try producer.write(value)
                try producer.end(commit: commits)
            }
            try producer.write("open")
            try append(log, "t", ["behind"])
            #expect(try committed.highWatermarks([split])[split] == SplitOffset(4))
            #expect(try all.highWatermarks([split])[split] == SplitOffset(6))
            func values(_ connector: KafkaConnector) throws -> ([String?], SplitOffset?) {
                let reader = try connector.openReader(split, at: SplitOffset(0)) {}
                var found: [String?] = []
                var position: SplitOffset?
                while let chunk = try reader.poll(maxRecords: 1, maxBytes: 100) {
                    found += chunk.records.map(\.value)
                    position = chunk.nextOffset
                }
                #expect(reader.highWatermark == position)
                return (found, position)
            }
            #expect(try values(committed) == (["kept"], SplitOffset(4)))
            #expect(try values(all).0 == ["aborted", "kept", "open", "behind"])
            #expect(try connector(log, ["scan.startup.mode": "latest"]).resolveOrigin() == [split: SplitOffset(4)])
            try producer.end(commit: true)
            #expect(try values(committed) == (["kept", "open", "behind"], SplitOffset(7)))
            #expect(throws: SQLError.self) { try connector(log, ["properties.isolation.level": "serializable"]) }
        }
    }

    @Test func aReaderStepsOverWhatCompactionTook() throws {
        try withLog { log in
            let config = try TopicConfig(["cleanup.policy": "compact", "segment.bytes": "1024", "min.cleanable.dirty.ratio": "0"])
            try log.createTopic(name: "t", config: config)
            let partition = try #require(log.topic(named: "t")?.partition(0))
            for index in 0..<60 {
                var builder = RecordBatchBuilder()
                builder.append(key: [UInt8(index % 2)], value: Array("\(index)".utf8), timestamp: 1000)
                try partition.appendAndWait(builder.finish())
            }
            log.maintain()
            let connector = try connector(log)
            let reader = try connector.openReader(SourceSplit(name: "t/0", topic: "t", partition: 0), at: SplitOffset(3)) {}
            var found: [ReadRecord] = []
            while let chunk = try reader.poll(maxRecords: 7, maxBytes: 200) { found += chunk.records }
            #expect(found.count < 57 && found.map(\.position) == found.map(\.position).sorted())
            #expect(found.suffix(2) == [ReadRecord(position: 58, value: "58"), ReadRecord(position: 59, value: "59")])
        }
    }

    @Test func originsAreTheFirstTheNextAndTheTimedRecord() throws {
        try withLog { log in
            #expect(try connector(log).resolveOrigin() == [:])
            try log.createTopic(name: "t", partitions: 1)
            try append(log, "t", ["a", "b", "c"], millis: 5000)
            let split = SourceSplit(name: "t/0", topic: "t", partition: 0)
            #expect(try connector(log).resolveOrigin() == [split: SplitOffset(0)])
            #expect(try connector(log, ["scan.startup.mode": "latest"]).resolveOrigin() == [split: SplitOffset(3)])
            #expect(try connector(log, ["scan.startup.timestamp.millis": "5002"]).resolveOrigin() == [split: SplitOffset(2)])
            #expect(try connector(log, ["scan.startup.timestamp.millis": "6000"]).resolveOrigin() == [split: SplitOffset(3)])
        }
    }

    @Test func aTopicThatIsDeletedStopsItsReaders() throws {
        try withLog { log in
            try log.createTopic(name: "t", partitions: 1)
            let connector = try connector(log)
            let split = try #require(try connector.currentSplits().first)
            let bell = Bell()
            let reader = try connector.openReader(split, at: SplitOffset(0)) { bell.ring() }
            #expect(try reader.poll(maxRecords: 10, maxBytes: 1 << 20) == nil)
            try log.deleteTopic(named: "t")
            #expect(bell.count == 1)
            let error = #expect(throws: SQLError.self) { try reader.poll(maxRecords: 10, maxBytes: 1 << 20) }
            #expect(error?.sqlState == .undefinedObject)
            #expect(throws: SQLError.self) { try connector.currentSplits() }
        }
    }

    @Test func aTopicThatIsMadeAnewIsNotTakenForTheOldOne() throws {
        try withLog { log in
            let connector = try connector(log)
            // One that comes after the source is the source's topic.
            #expect(try connector.resolveOrigin() == [:])
            for round in 0..<2 {
                try log.createTopic(name: "t", partitions: 1)
                if round == 0 { #expect(try connector.currentSplits().count == 1) }
                try append(log, "t", ["a", "b", "c"])
                if round == 0 { try log.deleteTopic(named: "t") }
            }
            let split = SourceSplit(name: "t/0", topic: "t", partition: 0)
            let questions: [() throws -> Void] = [
                { _ = try connector.openReader(split, at: SplitOffset(0)) {} }, { _ = try connector.highWatermarks([split]) },
                { _ = try connector.currentSplits() },
            ]
            for question in questions {
                let error = #expect(throws: SQLError.self) { try question() }
                #expect(error?.message == "topic \"t\" was deleted and made anew")
                #expect(error?.sqlState == .objectNotInPrerequisiteState)
            }
            #expect(try self.connector(log).resolveOrigin() == [split: SplitOffset(0)])
        }
    }

    /// What a connector was told of an earlier process.
    @Test func aTopicThatWasMadeAnewMeanwhileIsNotTakenForTheOldOne() throws {
        try withLog { log in
            try log.createTopic(name: "t", partitions: 1)
            let first = try connector(log)
            #expect(first.incarnation == nil)
            #expect(try first.currentSplits().count == 1)
            let incarnation = try #require(first.incarnation)
            let same = try connector(log)
            same.expect(incarnation: incarnation)
            #expect(try same.currentSplits().count == 1 && same.incarnation == incarnation)
            try log.deleteTopic(named: "t")
            try log.createTopic(name: "t", partitions: 1)
            let other = try connector(log)
            other.expect(incarnation: incarnation)
            let error = #expect(throws: SQLError.self) { try other.currentSplits() }
            #expect(error?.message == "topic \"t\" was deleted and made anew")
            other.expect(incarnation: "no id at all")
            #expect(other.incarnation == incarnation)
        }
    }

    @Test func aRecordThatTheDiskHasChangedIsNotRead() throws {
        let files = MemoryFileSystem()
        try files.createDirectory("/data")
        let environment = Environment(files: files, clock: SystemClock(), random: SystemRandomSource())
        let first = try Log(environment: environment, directory: "/data/log")
        try first.createTopic(name: "t", partitions: 1)
        for value in ["a", "b"] { try append(first, "t", [value]) }
        first.close()
        let path = "/data/log/t/0/00000000000000000000.log"
        let size = try files.open(path, .read).size()
        try [UInt8(0xFF)].withUnsafeBytes { try files.open(path, .readWrite).write($0, at: size - 3) }
        let log = try Log(environment: environment, directory: "/data/log")
        defer { log.close() }
        let connector = try connector(log)
        let split = try #require(try connector.currentSplits().first)
        let reader = try connector.openReader(split, at: SplitOffset(0)) {}
        let error = #expect(throws: SQLError.self) { while try reader.poll(maxRecords: 1, maxBytes: 1 << 20) != nil {} }
        #expect(error?.sqlState == .dataCorrupted)
        #expect(error?.message.hasPrefix("a record of \"t/0\" at or after offset 1 is damaged: record batch has checksum") == true, "\(String(describing: error))")
        #expect(error?.mayPass == false)
    }

    @Test func aPartitionThatReachesLessFarThanBeforeIsAnError() throws {
        let split = SourceSplit(name: "t/0", topic: "t", partition: 0)
        let ends = KnownEnds()
        for end in [3, 3, 7] as [Int64] { try ends.note(SplitOffset(end), of: split) }
        try ends.note(SplitOffset(1), of: SourceSplit(name: "t/1", topic: "t", partition: 1))
        let error = #expect(throws: SQLError.self) { try ends.note(SplitOffset(6), of: split) }
        #expect(error?.message == "\"t/0\" ends at offset 6, but had reached 7")
    }

    @Test func anOffsetBehindTheEndStopsTheReader() throws {
        try withLog { log in
            try log.createTopic(name: "t", partitions: 1)
            let connector = try connector(log)
            let reader = try connector.openReader(SourceSplit(name: "t/0", topic: "t", partition: 0), at: SplitOffset(5)) {}
            #expect(throws: (any Error).self) { try reader.poll(maxRecords: 1, maxBytes: 1) }
        }
    }
}
