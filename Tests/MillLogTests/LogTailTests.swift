import MillIO
import MillKafkaWire
import MillTestKit
import Synchronization
import Testing

@testable import MillLog

@Suite struct LogTailTests {
    /// From memory or from the files, in pieces of any size, from any offset: the same records.
    @Test(arguments: [0, 2000, 40_000, 64 << 20])
    func readersSeeTheSameWhateverIsInMemory(tailBytes: Int) throws {
        for seed in UInt64(0)..<12 {
            let random = SeededSource(seed)
            let log = try Disk(seed).open { ($0.tailBytesMax, $0.segmentBytesMax) = (tailBytes, 20_000) }
            let partition = try #require(log.createTopic(name: "t").partition(0))
            var expected: [String] = []
            for _ in 0..<30 {
                let values = (0...random.below(4)).map { "\(expected.count).\($0)" + String(repeating: "v", count: random.below(10) == 0 ? 9000 : random.below(200)) }
                try partition.appendAndWait(batch(values))
                expected += values
                let from = random.below(expected.count + 1)
                let found = try readAll(partition, from: Int64(from), maxBytes: 1 + random.below(30_000))
                #expect(found == Array(expected[from...]), "seed \(seed) from \(from)")
            }
        }
    }

    @Test func aReaderThatKeepsUpNeedsNoFile() throws {
        let disk = try Disk()
        let log = try disk.open()
        let partition = try #require(log.createTopic(name: "t").partition(0))
        for index in 0..<5 { try partition.appendAndWait(batch(["\(index)"])) }
        disk.files.setFault { operation, _ in operation == .read ? 5 : nil }
        #expect(try readAll(partition) == (0..<5).map(String.init))
    }

    /// Memory is the log's, not a partition's: what came first goes first.
    @Test func theOldestRecordsOfAllPartitionsLeaveMemory() throws {
        let disk = try Disk()
        let log = try disk.open { $0.tailBytesMax = 1500 }
        let topic = try log.createTopic(name: "t", partitions: 2)
        for index in 0..<4 { try topic.partitions[index % 2].appendAndWait(batch(["\(index)" + String(repeating: "x", count: 200)])) }
        disk.files.setFault { operation, _ in operation == .read ? 5 : nil }
        for partition in topic.partitions {
            #expect(throws: LogError.self) { try partition.read(from: 0, maxBytes: 10) }
            #expect(try partition.read(from: 1, maxBytes: 10).nextOffset == 2)
        }
    }

    /// Small appends that came together lie side by side, also when they fill just what is worth a read.
    @Test func appendsThatFillAReadExactlyAreAllThere() throws {
        func sized(_ byteCount: Int) throws -> WireBytes {
            let bare = try batch([String(repeating: "x", count: byteCount - 100)]).count
            let found = try batch([String(repeating: "x", count: 2 * byteCount - 100 - bare)])
            try #require(found.count == byteCount)
            return found
        }
        let disk = try Disk()
        let log = try disk.open()
        let partition = try #require(log.createTopic(name: "t").partition(0))
        try partition.appender.withLock { _ in
            for _ in 0..<2 { partition.append(try sized(LogTail.sliceBytesMin / 2)) { _ in } }
        }
        try partition.appendAndWait(batch(["last"]))
        disk.files.setFault { operation, _ in operation == .read ? 5 : nil }
        #expect(try readAll(partition, maxBytes: 1 << 20).count == 3)
    }
}
