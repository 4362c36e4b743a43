import MillIO
import MillKafkaWire
import MillTestKit
import Synchronization
import Testing

@testable import MillLog

private typealias Producer = Transactions.Producer

/// The verbs of a producer, waited for.
private struct Caller {
    let log: Log
    let id: String

    private func wait<T: Sendable>(_ body: (@escaping Transactions.Completion<T>) -> Void) throws -> T {
        let result = OneShot<Result<T, TransactionError>>()
        body { result.set($0) }
        return try result.wait().get()
    }

    func initialize(_ known: Producer? = nil, timeoutMillis: Int32 = 60_000) throws -> Producer {
        try wait { log.transactions.initialize(id, timeoutMillis: timeoutMillis, known: known, completion: $0) }
    }

    /// Until what the last instance left is aborted.
    func takeOver() throws -> Producer {
        while true {
            do { return try initialize() } catch TransactionError.busy { continue }
        }
    }

    func add(_ partition: Int32, _ producer: Producer) throws {
        let _: Void = try wait {
            log.transactions.add([PartitionPlace(topic: "t", partition: partition)], to: id, producer, completion: $0)
        }
    }

    func write(_ values: [String], _ producer: Producer, sequence: Int32, partition: Int32 = 0) throws {
        try #require(log.topic(named: "t")?.partition(partition)).appendAndWait(
            transactionalBatch(values, (producer.id, producer.epoch, sequence)))
    }

    func commit(group: String, offset: Int64, _ producer: Producer) throws {
        let _: Void = try wait { log.transactions.add(group: group, to: id, producer, completion: $0) }
        let committed = GroupOffsets.Committed(offset: offset, leaderEpoch: 0, metadata: "", committedMillis: 0)
        let _: Void = try wait {
            log.transactions.commit(group: group, [(PartitionPlace(topic: "t", partition: 0), committed)], in: id, producer, completion: $0)
        }
    }

    func end(_ producer: Producer, isCommit: Bool) throws {
        let _: Void = try wait { log.transactions.end(id, producer, isCommit: isCommit, completion: $0) }
    }
}

private func transactionalBatch(_ values: [String], _ producer: (id: Int64, epoch: Int16, sequence: Int32)) throws -> WireBytes {
    var builder = RecordBatchBuilder()
    for value in values { builder.append(key: Array(value.utf8), value: Array(value.utf8), timestamp: 1000) }
    (builder.producerID, builder.producerEpoch, builder.baseSequence) = producer
    builder.isTransactional = true
    return try builder.finish()
}

@Suite struct TransactionTests {
    @Test func committedRecordsAreSeenAndAbortedOnesAreNot() throws {
        let log = try Disk().open()
        let partition = try log.createTopic(name: "t").partitions[0]
        let caller = Caller(log: log, id: "x")
        let producer = try caller.initialize()
        try caller.add(0, producer)
        try caller.write(["a", "b"], producer, sequence: 0)
        try partition.appendAndWait(batch(["plain"]))
        #expect((partition.lastStableOffset, partition.highWatermark) == (0, 3))
        #expect(try readCommitted(partition).isEmpty)
        try caller.end(producer, isCommit: true)
        #expect(try readCommitted(partition) == ["a", "b", "plain"])
        try caller.add(0, producer)
        try caller.write(["c"], producer, sequence: 2)
        try caller.end(producer, isCommit: false)
        try caller.add(0, producer)
        try caller.write(["d"], producer, sequence: 3)
        #expect(try readCommitted(partition) == ["a", "b", "plain"])
        try caller.end(producer, isCommit: true)
        #expect(try readCommitted(partition) == ["a", "b", "plain", "d"])
        #expect(partition.lastStableOffset == partition.highWatermark)
    }

    @Test func aNewInstanceFencesTheOldOne() throws {
        let log = try Disk().open()
        let partition = try log.createTopic(name: "t").partitions[0]
        let caller = Caller(log: log, id: "x")
        let old = try caller.initialize()
        try caller.add(0, old)
        try caller.write(["lost"], old, sequence: 0)
        #expect(throws: TransactionError.busy) { try caller.initialize() }
        let new = try caller.takeOver()
        #expect(new.id == old.id && new.epoch == old.epoch + 2)
        #expect(throws: TransactionError.fenced) { try caller.add(0, old) }
        #expect(throws: TransactionError.fenced) { try caller.end(old, isCommit: true) }
        #expect(throws: LogError.self) { try caller.write(["zombie"], old, sequence: 1) }
        try caller.add(0, new)
        try caller.write(["kept"], new, sequence: 0)
        try caller.end(new, isCommit: true)
        #expect(try readCommitted(partition) == ["kept"])
        #expect(throws: TransactionError.unknownProducer) { try caller.add(0, Producer(id: 1, epoch: 0)) }
    }

    @Test func aTransactionalBatchNeedsItsTransaction() throws {
        let log = try Disk().open()
        try log.createTopic(name: "t", partitions: 2)
        let caller = Caller(log: log, id: "x")
        let producer = try caller.initialize()
        #expect(throws: LogError.noTransaction(producerID: producer.id)) { try caller.write(["a"], producer, sequence: 0) }
        try caller.add(0, producer)
        #expect(throws: LogError.noTransaction(producerID: producer.id)) { try caller.write(["a"], producer, sequence: 0, partition: 1) }
        try caller.write(["a"], producer, sequence: 0)
        try caller.end(producer, isCommit: true)
        #expect(throws: LogError.noTransaction(producerID: producer.id)) { try caller.write(["late"], producer, sequence: 1) }
        #expect(throws: LogError.unknownProducer(77)) { try caller.write(["a"], Producer(id: 77, epoch: 0), sequence: 0) }
    }

    @Test func endingTwiceIsTheSameAndEndingOtherwiseIsRefused() throws {
        let log = try Disk().open()
        try log.createTopic(name: "t")
        let caller = Caller(log: log, id: "x")
        let producer = try caller.initialize()
        #expect(throws: TransactionError.invalidState) { try caller.end(producer, isCommit: true) }
        try caller.add(0, producer)
        try caller.end(producer, isCommit: true)
        try caller.end(producer, isCommit: true)
        #expect(throws: TransactionError.invalidState) { try caller.end(producer, isCommit: false) }
        #expect(throws: TransactionError.invalidTimeout) { try caller.initialize(timeoutMillis: 0) }
        #expect(throws: TransactionError.invalidTimeout) { try caller.initialize(timeoutMillis: 1_000_000_000) }
    }

    @Test func aProducerThatDidNotHearItsEpochGetsItAgain() throws {
        let log = try Disk().open()
        let caller = Caller(log: log, id: "x")
        let first = try caller.initialize()
        let second = try caller.initialize(first)
        #expect(second.epoch == first.epoch + 1)
        #expect(try caller.initialize(first) == second)
        let third = try caller.initialize(second)
        #expect(third.epoch == second.epoch + 1)
        #expect(throws: TransactionError.fenced) { try caller.initialize(first) }
    }

    @Test func whatNobodyEndsIsAbortedInTime() throws {
        let disk = try Disk()
        let log = try disk.open()
        let partition = try log.createTopic(name: "t").partitions[0]
        let caller = Caller(log: log, id: "x")
        let producer = try caller.initialize(timeoutMillis: 5000)
        try caller.add(0, producer)
        try caller.write(["a"], producer, sequence: 0)
        disk.clock.advance(by: .seconds(4))
        log.tick()
        #expect(log.transactions.transaction("x")?.phase == .ongoing)
        disk.clock.advance(by: .seconds(2))
        log.tick()
        // Its end is a matter of two flushes.
        let next = try caller.takeOver()
        #expect(partition.lastStableOffset == 2)
        #expect(try readCommitted(partition).isEmpty)
        #expect(throws: TransactionError.fenced) { try caller.end(producer, isCommit: true) }
        disk.clock.advance(by: .seconds(8 * 24 * 3600))
        log.tick()
        #expect(log.transactions.all.isEmpty)
        #expect(throws: TransactionError.unknownProducer) { try caller.add(0, next) }
    }

    @Test func noMarkerIsWrittenBeforeTheDecisionIsDurable() throws {
        let disk = try Disk()
        let log = try disk.open()
        let partition = try log.createTopic(name: "t").partitions[0]
        let caller = Caller(log: log, id: "x")
        let producer = try caller.initialize()
        try caller.add(0, producer)
        try caller.write(["a"], producer, sequence: 0)
        let ends = Mutex<[Int64]>([])
        disk.files.setFault { operation, path in
            guard operation == .sync, path.hasSuffix("offsets.log") else { return nil }
            // Whoever looks at transactions meanwhile leaves it alone.
            log.tick()
            ends.withLock { $0.append(partition.state.withLock { $0.logEndOffset }) }
            return nil
        }
        try caller.end(producer, isCommit: true)
        disk.files.setFault(nil)
        #expect(ends.withLock { $0.first } == 1)
        #expect(try readCommitted(partition) == ["a"])
    }

    @Test func offsetsOfATransactionAreTheGroupsWhenItCommits() throws {
        let disk = try Disk()
        var log = try disk.open()
        try log.createTopic(name: "t")
        let place = PartitionPlace(topic: "t", partition: 0)
        let caller = Caller(log: log, id: "x")
        let producer = try caller.initialize()
        try caller.commit(group: "g", offset: 5, producer)
        #expect(log.groupOffsets.committed(group: "g", place) == nil && log.groupOffsets.hasPendingCommit(group: "g", place))
        disk.files.crash(random: disk.random)
        log = try disk.open()
        #expect(log.groupOffsets.committed(group: "g", place) == nil && log.groupOffsets.hasPendingCommit(group: "g", place))
        try Caller(log: log, id: "x").end(producer, isCommit: true)
        #expect(log.groupOffsets.committed(group: "g", place)?.offset == 5 && !log.groupOffsets.hasPendingCommit(group: "g", place))
        try Caller(log: log, id: "x").commit(group: "g", offset: 9, producer)
        try Caller(log: log, id: "x").end(producer, isCommit: false)
        #expect(log.groupOffsets.committed(group: "g", place)?.offset == 5)
    }

    /// At every operation at which the power may go, a transaction over two partitions and a group's offset holds as a whole or not at all,
    /// after the start has ended what was decided and a new instance has aborted the rest.
    @Test(arguments: [true, false]) func aTransactionHoldsWhollyOrNotAtAll(_ isCommit: Bool) throws {
        try atEveryOperation({ $0.segmentBytesMax = 300 }, { log, _ in try log.createTopic(name: "t", partitions: 2) }) { log in
            let caller = Caller(log: log, id: "x")
            let producer = try caller.initialize()
            for part in Int32(0)...1 {
                try caller.add(part, producer)
                try caller.write(["a\(part)"], producer, sequence: 0, partition: part)
                try caller.write(["b\(part)"], producer, sequence: 1, partition: part)
            }
            try caller.commit(group: "g", offset: 7, producer)
            try caller.end(producer, isCommit: isCommit)
        } _: { log in
            let caller = Caller(log: log, id: "x")
            let producer = try caller.takeOver()
            let topic = try #require(log.topic(named: "t"))
            let seen = try topic.partitions.map { try readCommitted($0) }
            let isWhole = seen == [["a0", "b0"], ["a1", "b1"]]
            #expect(isWhole && isCommit || seen == [[], []], "\(seen)")
            #expect((log.groupOffsets.committed(group: "g", PartitionPlace(topic: "t", partition: 0))?.offset == 7) == isWhole)
            for partition in topic.partitions { #expect(partition.lastStableOffset == partition.highWatermark) }
            try caller.add(1, producer)
            try caller.write(["next"], producer, sequence: 0, partition: 1)
            try caller.end(producer, isCommit: true)
            #expect(try readCommitted(topic.partitions[1]) == seen[1] + ["next"])
        }
    }

    @Test func theFewestEntriesMakeTheSameState() throws {
        var state = CoordinatorState()
        let committed = GroupOffsets.Committed(offset: 3, leaderEpoch: 0, metadata: "m", committedMillis: 4)
        let place = PartitionPlace(topic: "t", partition: 1)
        for (index, phase) in TransactionState.Phase.allCases.enumerated() {
            var transaction = TransactionState(id: "x\(index)", producerID: Int64(index), producerEpoch: 2, timeoutMillis: 5, updateMillis: 6)
            transaction.phase = phase
            transaction.partitions = [place]
            transaction.groups = ["g"]
            transaction.offsets = ["g\(index)": [place: committed]]
            state.apply(.transaction(transaction))
        }
        state.apply(.commit(group: "h", PartitionPlace(topic: "gone", partition: 0), committed))
        state.apply(.topicDeleted("gone"))
        state.apply(.transactionForgotten("x0"))
        var again = CoordinatorState()
        for entry in state.entries {
            var writer = WireWriter()
            entry.write(to: &writer)
            var reader = WireReader(writer.finish())
            again.apply(try CoordinatorEntry(from: &reader))
            try reader.finish()
        }
        #expect(again.groups == state.groups && again.transactions == state.transactions && again.producers == state.producers)
        // Only what was decided to commit is the groups', only what is under way is pending.
        #expect(state.groups.keys.sorted() == ["g2"] && state.hasPendingCommit(group: "g1", place) && !state.hasPendingCommit(group: "g3", place))
    }

    /// Several producers, random verbs and power cuts, against a model of what readers of committed records must see.
    @Test func readersSeeWhatAModelSaysThroughPowerCuts() throws {
        for seed in UInt64(0)..<60 {
            let disk = try Disk(seed)
            let options: (inout LogOptions) -> Void = { ($0.segmentBytesMax, $0.indexIntervalBytes) = (600, 200) }
            var log = try disk.open(options)
            try log.createTopic(name: "t")
            var committed: Set<String> = []
            var aborted: Set<String> = []
            for life in 0..<3 {
                var producers: [Producer?] = [nil, nil, nil]
                var open: [Set<String>] = [[], [], []]
                var sequences: [Int32] = [0, 0, 0]
                for step in 0..<25 {
                    let who = disk.random.below(3)
                    let caller = Caller(log: log, id: "p\(who)")
                    guard let producer = producers[who] else {
                        producers[who] = try caller.takeOver()
                        sequences[who] = 0
                        continue
                    }
                    if open[who].isEmpty || disk.random.below(3) > 0 {
                        let value = "\(life).\(step).\(who)"
                        try caller.add(0, producer)
                        try caller.write([value], producer, sequence: sequences[who])
                        sequences[who] += 1
                        open[who].insert(value)
                    } else {
                        let isCommit = disk.random.below(2) == 0
                        try caller.end(producer, isCommit: isCommit)
                        if isCommit { committed.formUnion(open[who]) } else { aborted.formUnion(open[who]) }
                        open[who] = []
                    }
                }
                disk.files.crash(random: disk.random)
                log = try disk.open(options)
                for who in 0..<3 { _ = try Caller(log: log, id: "p\(who)").takeOver() }
                aborted.formUnion(open.joined())
                let seen = try readCommitted(try #require(log.topic(named: "t")?.partition(0)))
                #expect(Set(seen) == committed && seen.count == committed.count, "seed \(seed) life \(life)")
            }
        }
    }
}
