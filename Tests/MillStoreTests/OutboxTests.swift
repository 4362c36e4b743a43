import MillBase
import MillColumnar
import MillIO
import MillState
import MillTestKit
import Synchronization
import Testing

@testable import MillStore

/// A sink's outbox by itself: what a checkpoint has of it, through damage, full disks and power cuts.
@Suite(.timeLimit(.minutes(10))) struct OutboxTests {
    private static let sink = ObjectID(7)

    /// A process that appends epochs and makes checkpoints.
    private final class Life {
        let store: StateStore
        let outbox: Outbox
        var epoch: Epoch
        /// The last epoch that was told durable.
        private(set) var announced: Epoch

        init(_ files: any FileSystem, limits: Outbox.Limits = Outbox.Limits(segmentBytes: 700)) throws(SQLError) {
            store = StateStore(directory: "/data/state", files: files)
            let recovered = try store.recover()
            outbox = try Outbox(
                OutboxTests.sink, directory: "/data/outbox/7", files: files, limits: limits,
                note: recovered?.note(OutboxNote.kind, of: OutboxTests.sink))
            epoch = recovered?.record.position.epoch ?? .zero
            announced = outbox.durable.epoch
        }

        func append(_ kind: OutboxFrame.Kind = .added) {
            epoch = epoch.next
            outbox.append(OutboxTests.batch(of: epoch), kind, epoch: epoch, openedAtMicros: Int64(epoch.number))
        }

        func checkpoint() throws(IOFailure) {
            let position = EpochPosition(epoch: epoch, openedAtMicros: 0, dmlPosition: .zero, offsets: [:])
            var checkpoint = Checkpoint(position: position, workers: 1, tables: [], notes: [])
            checkpoint.outboxes = [outbox.seal(epoch, openedAtMicros: 0)]
            try store.write(checkpoint) { _ in false }
            announced = outbox.durable.epoch
        }

        /// Reads what may be sent, from where the target is; the numbers of its epochs.
        func read() throws(SQLError) -> [UInt64] {
            let cursor = OutboxCursor(outbox)
            var found: [UInt64] = []
            while cursor.position < outbox.durable.end {
                for frame in try cursor.nextEpoch(before: outbox.durable.end) {
                    let batch = try cursor.batch(of: frame, types: [.int64, .varchar])
                    guard let batch, case .int(let number) = batch.columns[0].scalar(0), number == Int64(frame.epoch.number) else {
                        throw SQLError(.internalError, "epoch \(frame.epoch) has other rows")
                    }
                    found.append(frame.epoch.number)
                }
            }
            return found
        }

        func confirm(through epoch: UInt64) throws(SQLError) {
            let cursor = OutboxCursor(outbox)
            var place = cursor.position
            while cursor.position < outbox.durable.end, let frame = try cursor.nextEpoch(before: outbox.durable.end).first,
                frame.epoch.number <= epoch
            {
                place = cursor.position
            }
            outbox.noteCommitted(
                place, committed: Epoch(epoch), settled: Epoch(epoch), OutboxTotals(), commitCount: 1, lastOpenedMicros: nil)
        }
    }

    static func batch(of epoch: Epoch) -> DeltaBatch {
        let numbers = Column(.int64, capacity: 2)
        let texts = Column(.varchar, capacity: 2)
        for scalar in [Scalar.int(Int64(epoch.number)), .null] { numbers.append(scalar) }
        for scalar in [Scalar.string("a text of more than twelve bytes, epoch \(epoch)"), .string("")] { texts.append(scalar) }
        return DeltaBatch(columns: [numbers, texts], count: 2)
    }

    // MARK: Sending

    @Test func whatACheckpointHoldsIsSentAndNothingElse() throws {
        let life = try Life(MemoryFileSystem())
        life.append()
        #expect(life.outbox.durable.epoch == .zero)
        try life.checkpoint()
        life.append()
        let first = try life.read()
        #expect(first == [1])
        try life.checkpoint()
        let both = try life.read()
        #expect(both == [1, 2])
    }

    @Test func whatIsConfirmedGoesFromTheDiskAndDoesNotComeBack() throws {
        let files = MemoryFileSystem()
        let life = try Life(files)
        for _ in 0..<40 { life.append() }
        try life.checkpoint()
        try life.confirm(through: 30)
        for _ in 0..<10 { life.append() }
        try life.checkpoint()
        let names = try files.list("/data/outbox/7")
        // Frames of about 180 bytes in segments of 700.
        #expect(names.count < 10)
        let left = try life.read()
        #expect(left == Array(31...50))
        let next = try Life(files)
        let found = try next.read()
        #expect(found == Array(31...50))
        try next.confirm(through: 50)
        next.append()
        try next.checkpoint()
        let end = try next.read()
        #expect(end == [51])
    }

    @Test func rowsTakenBackComeBeforeRowsThatAreAdded() throws {
        let life = try Life(MemoryFileSystem())
        life.append(.added)
        life.outbox.append(Self.batch(of: life.epoch), .takenBack, epoch: life.epoch, openedAtMicros: 0)
        life.outbox.append(Self.batch(of: life.epoch), .added, epoch: life.epoch, openedAtMicros: 0)
        try life.checkpoint()
        let kinds = try OutboxCursor(life.outbox).nextEpoch(before: life.outbox.durable.end).map(\.kind)
        #expect(kinds == [.takenBack, .added, .added])
    }

    @Test func beginningAnewSaysSoAheadOfAllRows() throws {
        let files = MemoryFileSystem()
        let life = try Life(files)
        life.append()
        try life.checkpoint()
        life.append()
        life.outbox.beginAnew()
        life.epoch = life.epoch.next
        life.append()
        try life.checkpoint()
        let cursor = OutboxCursor(try Life(files).outbox)
        let end = life.outbox.durable.end
        let first = try cursor.nextEpoch(before: end)
        let second = try cursor.nextEpoch(before: end)
        #expect(first.map(\.epoch.number) == [1])
        #expect(second.map(\.kind) == [.clear, .added] && second.map(\.epoch.number) == [4, 4])
        #expect(cursor.position == end)
    }

    // MARK: Bounds

    @Test func aFullOutboxEndsWithAWholeEpoch() throws {
        let life = try Life(MemoryFileSystem(), limits: Outbox.Limits(byteCountMax: 1000, segmentBytes: 700))
        for _ in 0..<20 { life.append() }
        #expect(life.outbox.detachment?.sqlState == .diskFull)
        try life.checkpoint()
        let found = try life.read()
        #expect(!found.isEmpty && found == Array(1...UInt64(found.count)))
    }

    @Test func whatAFullDiskDoesNotTakeIsBoundedInMemory() throws {
        let files = MemoryFileSystem()
        let life = try Life(files, limits: Outbox.Limits(pendingBytesMax: 1000, segmentBytes: 700))
        life.append()
        try life.checkpoint()
        files.setFault { operation, path in operation == .write && path.contains("outbox") ? 28 : nil }
        for _ in 0..<3 { life.append() }
        #expect(life.outbox.detachment == nil)
        files.setFault(nil)
        try life.checkpoint()
        let four = try life.read()
        #expect(four == [1, 2, 3, 4])
        files.setFault { operation, path in operation == .write && path.contains("outbox") ? 28 : nil }
        for _ in 0..<20 { life.append() }
        #expect(life.outbox.detachment?.sqlState == .diskFull)
        files.setFault(nil)
        try life.checkpoint()
        let found = try life.read()
        #expect(found == [1, 2, 3, 4])
    }

    @Test func afterAFailedSyncAllIsWrittenAnew() throws {
        let files = MemoryFileSystem()
        try files.createDirectory("/data")
        try files.syncDirectory("/")
        let life = try Life(files)
        for _ in 0..<6 { life.append() }
        files.setFault { operation, path in operation == .sync && path.contains("segment") ? 5 : nil }
        #expect(throws: IOFailure.self) { try life.checkpoint() }
        #expect(life.outbox.durable.epoch == .zero)
        files.setFault(nil)
        life.append()
        try life.checkpoint()
        files.crash(random: SeededSource(3))
        let found = try Life(files).read()
        #expect(found == Array(1...7))
    }

    /// The last checkpoint names what is written anew until there is another one.
    @Test func whatIsWrittenAnewIsThereAsItWasUntilACheckpointHasIt() throws {
        let files = MemoryFileSystem()
        let life = try Life(files)
        life.append()
        try life.checkpoint()
        life.append()
        files.setFault { operation, path in operation == .sync && path.contains("segment") ? 5 : nil }
        #expect(throws: IOFailure.self) { try life.checkpoint() }
        // The rows are copied this time, and the record comes to nothing.
        files.setFault { operation, path in operation == .write && path.contains("checkpoint") ? 28 : nil }
        #expect(throws: IOFailure.self) { try life.checkpoint() }
        files.setFault(nil)
        let found = try Life(files).read()
        #expect(found == [1])
    }

    /// A checkpoint that failed at its very end may be on the disk, with what a sink that begins anew forgets.
    @Test func whatIsForgottenIsThereUntilACheckpointIsWithoutIt() throws {
        let files = MemoryFileSystem()
        let life = try Life(files)
        life.append()
        files.setFault { operation, path in operation == .syncDirectory && path == "/data/state" ? 5 : nil }
        #expect(throws: IOFailure.self) { try life.checkpoint() }
        files.setFault(nil)
        life.outbox.beginAnew()
        let failed = try Life(files).read()
        #expect(failed == [1])
    }

    @Test func aSinkThatTakesNothingMoreHasItsLastEpochsSynced() throws {
        let files = MemoryFileSystem()
        try files.createDirectory("/data")
        try files.syncDirectory("/")
        let life = try Life(files)
        life.append()
        try life.checkpoint()
        life.append()
        life.epoch = life.epoch.next
        life.outbox.append(Self.batch(of: life.epoch), .added, epoch: life.epoch, openedAtMicros: 0)
        life.outbox.detach(SQLError(.diskFull, "it is full"))
        try life.checkpoint()
        files.crash(random: SeededSource(3))
        let found = try Life(files).read()
        #expect(found == [1, 2])
    }

    // MARK: Damage

    @Test func everyDamagedByteIsFound() throws {
        let files = MemoryFileSystem()
        let life = try Life(files)
        for _ in 0..<3 { life.append() }
        try life.checkpoint()
        let file = try files.open("/data/outbox/7/segment-1", .readWrite)
        let whole = try file.readAll()
        for index in whole.indices {
            var bytes = whole
            bytes[index] ^= 0x10
            try file.write(bytes)
            var failure: SQLError?
            do throws(SQLError) { _ = try life.read() } catch { failure = error }
            // Padding between columns is under the checksum, too.
            #expect(failure?.sqlState == .dataCorrupted, "byte \(index)")
        }
        try file.write(whole)
        for count in stride(from: 0, to: whole.count, by: 7) {
            try file.truncate(to: count)
            #expect(throws: SQLError.self) { try life.read() }
        }
        #expect(throws: RecordDamage.self) { try OutboxNote([1, 2, 3]) }
    }

    // MARK: Power cuts

    /// What was told durable is what a start finds, wherever the process or the machine ends, and however often.
    @Test func whatWasAnnouncedIsThereAfterEveryEnd() throws {
        for seed in LawSettings(runs: 400).seeds {
            var random = SeededGenerator(seed: seed)
            let files = MemoryFileSystem()
            try files.createDirectory("/data")
            try files.syncDirectory("/")
            var announced = Epoch.zero
            var sent: UInt64 = 0
            for _ in 0..<random.number(2...6) {
                let left = Mutex(random.number(0...60))
                files.setFault { _, _ in
                    left.withLock { left in
                        left -= 1
                        return left < 0 ? 5 : nil
                    }
                }
                // A start that fails is one that ends there.
                if let life = try? Life(files) {
                    guard life.announced >= announced else {
                        Issue.record("MILLRACE_SEED=\(seed): epoch \(announced) was told durable, and a start finds \(life.announced)")
                        return
                    }
                    announced = life.announced
                    for _ in 0..<random.number(1...8) {
                        for _ in 0..<random.number(0...4) { life.append() }
                        try? life.checkpoint()
                        announced = max(announced, life.announced)
                        if random.oneIn(3), let found = try? life.read() {
                            let wanted = Array((sent + 1)..<(max(life.announced.number, sent) + 1))
                            guard found.filter({ $0 > sent }) == wanted else {
                                Issue.record("MILLRACE_SEED=\(seed): there are epochs \(found), not \(wanted)")
                                return
                            }
                            sent = announced.number
                            try? life.confirm(through: sent)
                        }
                    }
                }
                files.setFault(nil)
                if random.oneIn(2) { files.crash(random: SeededSource(random.next())) }
            }
            let last = try Life(files)
            guard last.announced >= announced else {
                Issue.record("MILLRACE_SEED=\(seed): epoch \(announced) was told durable, and at last a start finds \(last.announced)")
                return
            }
            let found = try last.read().filter { $0 > sent }
            #expect(found == Array((sent + 1)..<(max(last.announced.number, sent) + 1)), "MILLRACE_SEED=\(seed)")
        }
    }

    // MARK: Refused rows

    @Test func refusedRowsBehindTheTargetAreCutOff() throws {
        let files = MemoryFileSystem()
        // Whoever begins a data directory makes it durable.
        try files.createDirectory("/data")
        try files.syncDirectory("/")
        func entry(_ epoch: UInt64) -> RefusedEntry {
            RefusedEntry(epoch: Epoch(epoch), refusedAtMicros: 5, column: epoch == 1 ? "c" : nil, reason: "no", row: "{}")
        }
        let log = RefusedRowLog(directory: "/data/outbox/7", files: files)
        try log.open(after: .zero)
        try log.append([entry(1), entry(2), entry(3)])
        try log.sync()
        files.crash(random: SeededSource(1))
        let next = RefusedRowLog(directory: "/data/outbox/7", files: files)
        try next.open(after: Epoch(2))
        try next.append([entry(3), entry(4)])
        let found = try next.entries()
        #expect(found.entries == [entry(1), entry(2), entry(3), entry(4)] && found.droppedCount == 0)
    }

    @Test func refusedRowsAreBoundedAndThoseThatWentAreCounted() throws {
        let files = MemoryFileSystem()
        let log = RefusedRowLog(directory: "/data/outbox/7", files: files, byteCountMax: 4000)
        try log.open(after: .zero)
        for number in 1...500 {
            try log.append([RefusedEntry(epoch: Epoch(UInt64(number)), refusedAtMicros: 0, column: nil, reason: "no", row: "{}")])
        }
        try log.sync()
        for seen in [log, RefusedRowLog(directory: "/data/outbox/7", files: files, byteCountMax: 4000)] {
            try seen.open(after: Epoch(1000))
            let (entries, dropped) = try seen.entries()
            #expect(Int64(entries.count) + dropped == 500 && entries.count > 20)
            #expect(entries.last?.epoch == Epoch(500))
        }
    }
}
