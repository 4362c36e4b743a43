import MillIO
import MillKafkaWire
import MillTestKit
import Synchronization
import Testing

@testable import MillLog

/// Appends that come while a flush is under way are one write of the next.
@Suite struct GroupWriteTests {
    /// Whole blocks and the rest, wherever a write begins: the file holds the parts, no more and no less.
    @Test func writesOfAnySizesFollowOneAnother() throws {
        let disk = try Disk()
        for seed in UInt64(0)..<40 {
            let random = SeededSource(seed)
            let file = try disk.files.open("/data/file", .create)
            let writer = BlockWriter()
            var expected: [UInt8] = []
            for _ in 0..<4 {
                let parts = (0...random.below(3)).map { _ in
                    let count = random.below(2) == 0 ? random.below(900) : 30_000 + random.below(400_000)
                    return WireBytes((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ Int(seed) &+ expected.count) })
                }
                try writer.write(parts, to: file, at: expected.count, usesBlocks: random.below(4) > 0)
                for part in parts { expected += part.array }
            }
            let found = try file.readAll().array
            #expect(found == expected, "seed \(seed)")
        }
    }

    @Test func whatWaitsIsWrittenTogetherAndCutWhereItMustBe() throws {
        let disk = try Disk()
        let log = try disk.open { $0.segmentBytesMax = 300 }
        let partition = try #require(log.createTopic(name: "t").partition(0))
        let told = Mutex<[Int64]>([])
        let writes = Mutex(0)
        disk.files.setFault { operation, path in
            if operation == .write, path.hasSuffix(".log") { writes.withLock { $0 += 1 } }
            return nil
        }
        // Held as a write holds it, so that all wait for the next one.
        try partition.appender.withLock { _ in
            for index in 0..<6 { partition.append(try batch(["\(index)"])) { result in told.withLock { $0.append((try? result.get().baseOffset) ?? -1) } } }
        }
        log.close()
        #expect(told.withLock { $0 } == Array(0..<6))
        // Four batches of 69 bytes are a segment.
        #expect(writes.withLock { $0 } <= 4)
        disk.files.setFault(nil)
        let reopened = try disk.open { $0.segmentBytesMax = 300 }
        #expect(reopened.truncatedTails.isEmpty)
        #expect(try readAll(#require(reopened.topic(named: "t")?.partition(0))) == (0..<6).map(String.init))
    }

    @Test func aWriteThatFailsFailsItsAppendsAndNoOthers() throws {
        let disk = try Disk()
        let log = try disk.open()
        let partition = try #require(log.createTopic(name: "t").partition(0))
        let fails = Mutex(true)
        let reservations = Mutex(0)
        disk.files.setFault { operation, path in
            if operation == .reserve { reservations.withLock { $0 += 1 } }
            return operation == .write && path.hasSuffix(".log") && fails.withLock { $0 } ? 28 : nil
        }
        let told = Mutex<[Result<PartitionLog.Appended, LogError>]>([])
        let done = OneShot<Bool>()
        try partition.appender.withLock { _ in
            for sequence in Int32(0)..<3 {
                // One producer's batches are written one by one, as each depends on the one before.
                partition.append(try batch(["x"], producer: (7, 0, sequence))) { result in
                    let count = told.withLock { $0.append(result); return $0.count }
                    if count == 3 { done.set(true) }
                }
            }
        }
        _ = done.wait()
        #expect(told.withLock { $0 }.allSatisfy { (try? $0.get()) == nil })
        fails.withLock { $0 = false }
        #expect(try partition.appendAndWait(batch(["y"], producer: (7, 0, 0))).baseOffset == 0)
        #expect(try readAll(partition) == ["y"])
        // The room for it is found anew: cutting off what failed gave back what had been found before.
        #expect(reservations.withLock { $0 } == 4)
    }

    /// A producer's batches in one group: the second is checked against the first, and a repeat is told the first one's offset.
    @Test func aProducersBatchesInOneGroupKeepTheirOrder() throws {
        let log = try Disk().open()
        let partition = try #require(log.createTopic(name: "t").partition(0))
        let told = Mutex<[Int: Result<PartitionLog.Appended, LogError>]>([:])
        let done = OneShot<Bool>()
        try partition.appender.withLock { _ in
            for (index, sequence) in ([0, 1, 1, 3, 2] as [Int32]).enumerated() {
                partition.append(try batch(["\(sequence)"], producer: (7, 0, sequence))) { result in
                    let count = told.withLock { $0[index] = result; return $0.count }
                    if count == 5 { done.set(true) }
                }
            }
        }
        _ = done.wait()
        let results = told.withLock { $0 }
        #expect(try results[1]?.get().baseOffset == 1)
        let again = try #require(try results[2]?.get())
        #expect(again.isDuplicate && again.baseOffset == 1)
        #expect(throws: LogError.outOfOrderSequence(expected: 2, found: 3)) { try results[3]?.get() }
        #expect(try readAll(partition) == ["0", "1", "2"])
    }
}
