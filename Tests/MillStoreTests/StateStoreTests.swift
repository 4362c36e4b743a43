import MillBase
import MillColumnar
import MillIO
import MillState
import MillTestKit
import Synchronization
import Testing

@testable import MillStore

@Suite struct StateStoreTests {
    private static let noSpace: Int32 = 28
    private static let ioError: Int32 = 5

    @Test(arguments: 1...8) func spaceStaysInProportionToWhatLives(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let (fileBytesMax, slackBytes) = (random.pick([2 << 10, 64 << 10]), random.pick([0, 32 << 10]))
        var shelf = try Shelf(MemoryFileSystem(), fileBytesMax: fileBytesMax, slackBytes: slackBytes)
        var removed = 0
        for round in 0..<150 {
            shelf.change(&random, count: random.number(0...80))
            let report = try shelf.checkpoint()
            let whole = try Shelf.wholeBytes(shelf)
            // Beyond the bound only what one checkpoint writes, before the next one can move anything.
            #expect(report.bytesOnDisk <= 3 * whole + slackBytes + fileBytesMax + report.bytesWritten, "seed \(seed), checkpoint \(round)")
            let pages = try shelf.files.list("/state").filter { $0.hasPrefix("pages-") }
            removed = max(removed, Int(pages.first?.dropFirst(6) ?? "0") ?? 0)
            #expect(try shelf.files.list("/state").filter { $0.hasPrefix("checkpoint-") }.count <= 2)
            if round % 40 == 39 {
                let before = shelf.content
                shelf = try Shelf(shelf.files, fileBytesMax: fileBytesMax, slackBytes: slackBytes)
                #expect(shelf.content == before, "seed \(seed), checkpoint \(round)")
            }
        }
        #expect(removed > 1, "no file was ever emptied and removed")
    }

    @Test func aDamagedRecordLeavesTheCheckpointBefore() throws {
        var random = SeededGenerator(seed: 3)
        let shelf = try Shelf(MemoryFileSystem())
        var contents: [Shelf.Content] = []
        for _ in 0..<5 {
            shelf.change(&random, count: 60)
            try shelf.checkpoint()
            contents.append(shelf.content)
        }
        let record = try shelf.files.open("/state/checkpoint-5", .read).readAll()
        for index in record.indices {
            var damaged = record
            damaged[index] ^= 4
            let disk = try shelf.files.copy(of: "/state")
            try disk.replace("/state/checkpoint-5", with: damaged)
            let again = try Shelf(disk)
            #expect(again.recordNumber == 4 && again.content == contents[3], "byte \(index)")
            if index % 40 == 0 {
                // And it goes on from there.
                again.change(&random, count: 20)
                try again.checkpoint()
                #expect(try Shelf(disk).content == again.content)
            }
        }
        let disk = try shelf.files.copy(of: "/state")
        for number in 4...5 { try disk.replace("/state/checkpoint-\(number)", with: []) }
        #expect { try Shelf(disk) } throws: { ($0 as? SQLError)?.sqlState == .dataCorrupted }
    }

    @Test func noDamagedByteOfAPageFileIsTakenForGood() throws {
        var random = SeededGenerator(seed: 4)
        let shelf = try Shelf(MemoryFileSystem(), fileBytesMax: 1 << 20)
        for _ in 0..<3 {
            shelf.change(&random, count: 12, ids: 30)
            try shelf.checkpoint()
        }
        let pages = try shelf.files.open("/state/pages-1", .read).readAll()
        var refused: [Int: Int] = [:]
        for index in pages.indices {
            let disk = try shelf.files.copy(of: "/state")
            var damaged = pages
            damaged[index] ^= 32
            try disk.replace("/state/pages-1", with: damaged)
            var jobs = 0
            for job in [Shelf.rowsJob, Shelf.orderedJob] {
                do throws(SQLError) {
                    let again = try Shelf(disk, restoring: [job])
                    let isSame = job == Shelf.rowsJob ? again.content.rows == shelf.content.rows : again.content.keys == shelf.content.keys
                    #expect(isSame, "byte \(index), job \(job)")
                } catch {
                    #expect(error.sqlState == .dataCorrupted)
                    jobs += 1
                }
            }
            refused[jobs, default: 0] += 1
        }
        // A header stops both jobs, a body its own, and bytes that a later whole block replaces none.
        #expect(refused[1, default: 0] > refused[2, default: 0] && refused[2, default: 0] > 0, "\(refused)")
    }

    /// Bytes that say something impossible under checksums that fit: refused, or taken for other rows and keys, and the process goes on.
    @Test func noByteOfABlockTrapsUnderAChecksumThatFits() throws {
        var random = SeededGenerator(seed: 41)
        let shelf = try Shelf(MemoryFileSystem(), fileBytesMax: 1 << 20)
        for _ in 0..<3 {
            shelf.change(&random, count: 12, ids: 30)
            try shelf.checkpoint()
        }
        let pages = try shelf.files.open("/state/pages-1", .read).readAll()
        var start = StateStore.header.count
        var refused = 0
        while start < pages.count {
            let end = start + Int(pages[start..<start + 4].reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
            let isOrdered = pages[start + 16] == StateBlock.Kind.orderedPage.rawValue
            for place in start + 12..<end where !(start + 28..<start + 32).contains(place) {
                // Of rows the beginning, and what is among them here and there.
                guard isOrdered || place < start + 200 || place % 7 == 0 else { continue }
                for value in [UInt8(0xFF), pages[place] ^ 1] {
                    var block = Array(pages[start..<end])
                    block[place - start] = value
                    BlockChecksums.write(&block, from: 0)
                    let disk = try shelf.files.copy(of: "/state")
                    try disk.replace("/state/pages-1", with: pages[..<start] + block + pages[end...])
                    do throws(SQLError) { _ = try Shelf(disk) } catch {
                        #expect(error.sqlState == .dataCorrupted, "byte \(place)")
                        refused += 1
                    }
                }
            }
            start = end
        }
        #expect(refused > 100)
    }

    /// Files that later checkpoints do not need would keep their room on the disk as long as somebody has them open.
    @Test func whatWasFoundAtTheStartIsLetGo() throws {
        var random = SeededGenerator(seed: 42)
        let shelf = try Shelf(MemoryFileSystem())
        shelf.change(&random, count: 10)
        try shelf.checkpoint()
        let store = StateStore(directory: "/state", files: shelf.files)
        let found = try #require(try store.recover())
        #expect(found.files.count == 1)
        found.close()
        #expect(found.files.isEmpty)
        let error = #expect(throws: SQLError.self) {
            try found.restore(StateTable(columns: [.int64, .varchar], payloadBytes: 8), at: Shelf.place(Shelf.rowsJob))
        }
        #expect(error?.sqlState == .objectNotInPrerequisiteState)
    }

    @Test func aJobThatIsNoMoreIsForgotten() throws {
        let store = StateStore(directory: "/state", files: MemoryFileSystem())
        let (first, second) = (Shelf.place(Shelf.rowsJob), Shelf.place(Shelf.orderedJob))
        let ids = [first, second].map(store.id)
        store.forget([Shelf.rowsJob])
        #expect(store.id(of: second) == ids[1])
        #expect(!ids.contains(store.id(of: first)))
    }

    // MARK: Failures

    @Test(arguments: ["pages-", "checkpoint-"]) func aFullDiskIsTriedAgainUntilThereIsRoom(file: String) throws {
        var random = SeededGenerator(seed: 5)
        let shelf = try Shelf(MemoryFileSystem())
        for round in 0..<6 {
            shelf.change(&random, count: 40)
            shelf.files.setFault { operation, path in operation == .write && path.contains(file) ? Self.noSpace : nil }
            var tries = 0
            try shelf.checkpoint { failure in
                #expect(failure.errorNumber == Self.noSpace)
                tries += 1
                if tries == 3 { shelf.files.setFault(nil) }
                return true
            }
            #expect(tries == 3 && !shelf.store.isDistrusted, "round \(round)")
            #expect(try Shelf(shelf.files.copy(of: "/state")).content == shelf.content)
        }
    }

    @Test(arguments: ["sync", "give up", "rename", "sync directory"]) func afterAFailureAllIsWrittenAnewInNewFiles(failure: String) throws {
        var random = SeededGenerator(seed: 6)
        let shelf = try Shelf(MemoryFileSystem(), fileBytesMax: 1 << 20)
        for _ in 0..<3 {
            shelf.change(&random, count: 40)
            try shelf.checkpoint()
        }
        let before = shelf.content
        shelf.change(&random, count: 40)
        shelf.files.setFault { operation, path in
            switch operation {
            case .sync where failure == "sync" && path.contains("pages-"): Self.ioError
            case .write where failure == "give up": Self.noSpace
            case .rename where failure == "rename": Self.ioError
            case .syncDirectory where failure == "sync directory": Self.ioError
            default: nil
            }
        }
        #expect(throws: IOFailure.self) { try shelf.checkpoint() }
        #expect(shelf.store.isDistrusted)
        shelf.files.setFault(nil)
        if failure != "sync directory" { #expect(try Shelf(shelf.files.copy(of: "/state")).content == before) }
        try shelf.checkpoint()
        #expect(!shelf.store.isDistrusted)
        let disk = try shelf.files.copy(of: "/state")
        // Nothing of the new checkpoint is in the files that are not trusted.
        try disk.remove("/state/pages-1")
        #expect(try Shelf(disk).content == shelf.content)
    }

    /// The process that made the directory ended before that was durable.
    @Test func aDirectoryThatWasThereIsDurableToo() throws {
        for seed in UInt64(1)...10 {
            var random = SeededGenerator(seed: seed)
            let files = MemoryFileSystem()
            try files.createDirectory("/state")
            let shelf = try Shelf(files)
            shelf.change(&random, count: 10)
            try shelf.checkpoint()
            files.crash(random: SeededSource(seed))
            #expect(try Shelf(files).content == shelf.content, "seed \(seed)")
        }
    }

    @Test func whatDoesNotRunOutlivesAFailedSync() throws {
        var random = SeededGenerator(seed: 7)
        let first = try Shelf(MemoryFileSystem())
        first.change(&random, count: 100)
        try first.checkpoint()
        let shelf = try Shelf(first.files, restoring: [Shelf.rowsJob])
        shelf.changeRows(&random, count: 50)
        shelf.files.setFault { operation, path in operation == .sync && path.contains("pages-") ? Self.ioError : nil }
        #expect(throws: IOFailure.self) { try shelf.checkpoint([Shelf.rowsJob], keeping: [Shelf.orderedJob]) }
        shelf.files.setFault(nil)
        for _ in 0..<20 {
            shelf.changeRows(&random, count: 50)
            try shelf.checkpoint([Shelf.rowsJob], keeping: [Shelf.orderedJob])
        }
        let again = try Shelf(shelf.files)
        #expect(again.content.keys == first.content.keys && again.content.rows == shelf.content.rows)
    }

    /// Else each try on a full disk would leave it fuller.
    @Test func aCheckpointThatFailsLeavesNoPagesBehind() throws {
        var random = SeededGenerator(seed: 8)
        let shelf = try Shelf(MemoryFileSystem())
        shelf.change(&random, count: 100)
        try shelf.checkpoint()
        let before = try shelf.files.list("/state").filter { $0.hasPrefix("pages-") }
        shelf.files.setFault { operation, path in operation == .sync && path.contains("checkpoint-") ? Self.ioError : nil }
        for _ in 0..<5 {
            shelf.change(&random, count: 50)
            #expect(throws: IOFailure.self) { try shelf.checkpoint() }
            #expect(try shelf.files.list("/state").filter { $0.hasPrefix("pages-") } == before)
        }
        shelf.files.setFault(nil)
        try shelf.checkpoint()
        #expect(try Shelf(shelf.files).content == shelf.content)
    }

    // MARK: Power cuts

    /// Cuts the power at every operation in turn: what is found is the last checkpoint that was reported, or one that was tried after it.
    @Test(arguments: 1...6) func aPowerCutAnywhereLeavesAWholeCheckpoint(seed: UInt64) throws {
        let operations = try powerCut(seed).operations
        #expect(operations > 20)
        for cut in 0..<operations { try check(powerCut(seed, at: cut), "seed \(seed), power cut at operation \(cut)") }
    }

    /// The same with one operation before that fails.
    @Test(arguments: 1...6) func aPowerCutAfterAFailureLeavesAWholeCheckpoint(seed: UInt64) throws {
        let operations = try powerCut(seed).operations
        for failing in 0..<operations {
            for cut in stride(from: failing + 1, to: failing + 20, by: 1) {
                try check(powerCut(seed, at: cut, failing: failing), "seed \(seed), failure of operation \(failing), power cut at \(cut)")
            }
        }
    }

    private struct Run {
        var operations = 0
        /// The checkpoint that was reported last, and those that were tried after it.
        var allowed = [Shelf.Content()]
        var found = Shelf.Content()
    }

    private func check(_ run: Run, _ what: String) { #expect(run.allowed.contains(run.found), "\(what)") }

    private func powerCut(_ seed: UInt64, at cut: Int = .max, failing: Int = -1) throws -> Run {
        var random = SeededGenerator(seed: seed)
        var run = Run()
        let files = MemoryFileSystem()
        let shelf = try Shelf(files, fileBytesMax: random.pick([1 << 10, 1 << 20]), slackBytes: 0)
        let count = Mutex(0)
        files.setFault { _, _ in
            count.withLock { count in
                count += 1
                return count > cut || count - 1 == failing ? Self.ioError : nil
            }
        }
        for _ in 0..<6 where count.withLock({ $0 }) <= cut {
            shelf.change(&random, count: 30)
            run.allowed.append(shelf.content)
            if (try? shelf.checkpoint()) != nil { run.allowed = [shelf.content] }
        }
        files.setFault(nil)
        run.operations = count.withLock { $0 }
        files.crash(random: SeededSource(seed &* 1000 &+ UInt64(cut % 1000)))
        run.found = try Shelf(files).content
        return run
    }
}

extension Shelf {
    /// Bytes of everything in one checkpoint, about: what of the page files lives.
    static func wholeBytes(_ shelf: Shelf) throws -> Int {
        let disk = try shelf.files.copy(of: "/state")
        let again = try Shelf(disk, fileBytesMax: 1 << 30)
        disk.setFault { operation, _ in operation == .sync ? 5 : nil }
        #expect(throws: IOFailure.self) { try again.checkpoint() }
        disk.setFault(nil)
        return try again.checkpoint().bytesWritten
    }
}
