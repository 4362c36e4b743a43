import MillBase
import MillConnectorKit
import MillIO
import Testing

@testable import MillStore

@Suite struct EpochJournalTests {
    private let files = MemoryFileSystem()
    private let source = ObjectID(5)
    private let first = SourceSplit(name: "t/0", topic: "t", partition: 0)
    private let second = SourceSplit(name: "t/1", topic: "t", partition: 1)

    private func position(_ epoch: UInt64, _ offsets: [SourceSplit: Int64]) -> EpochPosition {
        EpochPosition(
            epoch: Epoch(epoch), openedAtMicros: Int64(epoch), dmlPosition: DMLPosition(epoch), offsets: [source: offsets.mapValues { SplitOffset($0) }])
    }

    private func journal() throws -> EpochJournal {
        try files.createDirectory("/state")
        return EpochJournal(directory: "/state", files: files)
    }

    @Test func givesTheLastEpochWithAllOffsets() throws {
        let journal = try journal()
        #expect(try journal.lastPublished(since: nil) == .start)
        try journal.begin(checkpoint: 0, with: [.start])
        try journal.append(position(1, [first: 10, second: 20]))
        try journal.append(position(2, [first: 10, second: 25]))
        #expect(try journal.lastPublished(since: nil) == position(2, [first: 10, second: 25]))
        // The next one begins with all that is known.
        try journal.begin(checkpoint: 1)
        try files.remove("/state/journal-0")
        try journal.append(position(3, [first: 11, second: 25]))
        #expect(try journal.lastPublished(since: nil) == position(3, [first: 11, second: 25]))
    }

    /// Sources are read again from the checkpoint on, and the process ends again before they are where they were.
    @Test func aCrashInTheMiddleOfRecoveryTakesNothingBack() throws {
        var journal = try journal()
        try journal.begin(checkpoint: 0, with: [.start])
        try journal.append(position(8, [first: 100, second: 7]))
        journal = EpochJournal(directory: "/state", files: files)
        let published = try journal.lastPublished(since: nil)
        try journal.begin(checkpoint: 0, with: [published])
        // An epoch before any job has joined knows no offsets.
        try journal.append(EpochPosition(epoch: Epoch(9), openedAtMicros: 9, dmlPosition: DMLPosition(9), offsets: [:]))
        try journal.append(position(9, [first: 60, second: 9]))
        let last = try EpochJournal(directory: "/state", files: files).lastPublished(since: nil)
        #expect(last == position(9, [first: 100, second: 9]))
    }

    /// What was published is run again from entries that a start has written anew, however often.
    @Test func keepsTheEpochsOfAnEarlierProcess() throws {
        let (job, table) = (WatermarkKey(job: ObjectID(8), source: source), WatermarkKey(job: ObjectID(9), source: ObjectID(9)))
        func position(_ epoch: UInt64, _ offset: Int64, _ steps: [WatermarkKey: WatermarkStep]) -> EpochPosition {
            var position = self.position(epoch, [first: offset])
            position.watermarks = steps
            return position
        }
        var journal = try journal()
        try journal.begin(checkpoint: 0, with: [.start])
        try journal.append(position(1, 10, [job: WatermarkStep(passed: nil, now: -5)]))
        try journal.append(position(2, 10, [job: WatermarkStep(passed: -5, now: -5), table: WatermarkStep()]))
        try journal.append(position(3, 30, [job: WatermarkStep(passed: -5, now: 7), table: WatermarkStep()]))
        let steps: [[WatermarkKey: WatermarkStep]] = [
            [:], [job: WatermarkStep(passed: nil, now: -5)], [job: WatermarkStep(passed: -5, now: -5), table: WatermarkStep()],
            [job: WatermarkStep(passed: -5, now: 7)],
        ]
        for _ in 0..<3 {
            let epochs = try journal.epochs(since: nil)
            #expect(epochs.map(\.epoch) == (0...3).map { Epoch($0) })
            #expect(epochs.map(\.watermarks) == steps)
            #expect(epochs.map { $0.offsets[source]?[first]?.position } == [nil, 10, nil, 30])
            journal = EpochJournal(directory: "/state", files: files)
            try journal.begin(checkpoint: 0, with: epochs)
            #expect(try journal.lastPublished(since: nil) == position(3, 30, [job: WatermarkStep(passed: -5, now: 7), table: WatermarkStep()]))
        }
        // Behind the next checkpoint an entry has them all once more.
        try journal.begin(checkpoint: 1)
        try files.remove("/state/journal-0")
        try journal.append(position(4, 31, [job: WatermarkStep(passed: 7, now: 7)]))
        #expect(try journal.epochs(since: nil).map(\.watermarks) == [[:], [:], [job: WatermarkStep(passed: 7, now: 7)]])
        #expect(try journal.epochs(since: nil).map(\.epoch) == [.zero, Epoch(3), Epoch(4)])
    }

    @Test func endsAtTheFirstEntryThatIsNotWhole() throws {
        let journal = try journal()
        try journal.begin(checkpoint: 0, with: [.start])
        var known: Set<EpochPosition> = [.start]
        for epoch in 1...4 {
            let next = position(UInt64(epoch), [first: Int64(epoch) * 10])
            try journal.append(next)
            known.insert(next)
        }
        let bytes = try files.open("/state/journal-0", .read).readAll()
        var found: Set<EpochPosition> = []
        for index in bytes.indices {
            var flipped = bytes
            flipped[index] ^= 0x11
            for damaged in [flipped, Array(bytes[..<index])] {
                let disk = MemoryFileSystem()
                try disk.createDirectory("/state")
                try disk.replace("/state/journal-0", with: damaged)
                let last = try EpochJournal(directory: "/state", files: disk).lastPublished(since: nil)
                #expect(known.contains(last), "byte \(index): \(last)")
                found.insert(last)
            }
        }
        #expect(found.count == known.count - 1)
    }

    @Test func isNotThereBeforeItsFirstEntryIs() throws {
        let journal = try journal()
        try journal.begin(checkpoint: 0, with: [position(4, [first: 40])])
        files.setFault { operation, path in operation == .rename && path.hasSuffix("journal-1.new") ? 5 : nil }
        #expect(throws: IOFailure.self) { try journal.begin(checkpoint: 1) }
        files.setFault(nil)
        // The old one goes on.
        try journal.append(position(5, [first: 50]))
        #expect(try journal.lastPublished(since: nil) == position(5, [first: 50]))
    }

    /// Not with the checkpoints they are named after: when one after the other cannot begin, an old one has it all.
    @Test func goesWhenTwoHaveBegunAfterIt() throws {
        let journal = try journal()
        try journal.begin(checkpoint: 0, with: [.start])
        files.setFault { operation, path in operation == .rename && path.hasSuffix(".new") ? 5 : nil }
        for number in 1...3 {
            #expect(throws: IOFailure.self) { try journal.begin(checkpoint: UInt64(number)) }
            try journal.append(position(UInt64(number), [first: Int64(number)]))
        }
        files.setFault(nil)
        for number in 4...6 {
            #expect(try journal.lastPublished(since: nil) == position(UInt64(number - 1), [first: Int64(number - 1)]))
            try journal.begin(checkpoint: UInt64(number))
            try journal.append(position(UInt64(number), [first: Int64(number)]))
        }
        #expect(try files.list("/state").filter { !$0.hasSuffix(".new") }.sorted() == ["journal-5", "journal-6"])
    }

    @Test func doesNotGrowForEverWhenNoCheckpointComes() throws {
        let journal = try journal()
        try journal.begin(checkpoint: 0, with: [.start])
        for epoch in 1...80_000 {
            try journal.prepare()
            try journal.append(position(UInt64(epoch), epoch == 1 ? [first: 0, second: 3] : [first: Int64(epoch)]))
        }
        #expect(try files.open("/state/journal-0", .read).size() < 5 << 20)
        #expect(try journal.lastPublished(since: nil) == position(80_000, [first: 80_000, second: 3]))
    }

    /// What was prepared can be noted without room; when there is none ahead, that is said before the epoch.
    @Test func asksForRoomBeforeAnEpoch() throws {
        let journal = try journal()
        try journal.begin(checkpoint: 0, with: [.start])
        files.setFault { operation, _ in operation == .reserve ? 28 : nil }
        var epoch: UInt64 = 0
        var failure: IOFailure?
        while failure == nil, epoch < 100_000 {
            do throws(IOFailure) { try journal.prepare() } catch {
                failure = error
                break
            }
            epoch += 1
            try journal.append(position(epoch, [first: Int64(epoch)]))
        }
        #expect(failure?.errorNumber == 28 && epoch > 1000)
        files.setFault(nil)
        try journal.prepare()
        try journal.append(position(epoch + 1, [first: 7_000_000]))
        #expect(try journal.lastPublished(since: nil).epoch == Epoch(epoch + 1))
    }
}

extension EpochJournal {
    fileprivate func lastPublished(since checkpoint: CheckpointRecord?) throws(IOFailure) -> EpochPosition { Self.last(of: try epochs(since: checkpoint)) }
}
