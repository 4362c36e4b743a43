package import MillBase
package import MillIO
package import MillState
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// One table in a checkpoint.
package struct SealedTable: Sendable {
    package var place: TablePlace
    package var id: TableID
    /// nil: as the last checkpoint has it.
    package var changes: SealedPages?

    package init(place: TablePlace, id: TableID, changes: SealedPages?) {
        self.place = place
        self.id = id
        self.changes = changes
    }
}

/// A checkpoint to be written: what every table changed, and what is true besides.
package struct Checkpoint: Sendable {
    package var position: EpochPosition
    package var workers: Int
    /// The tables of all jobs that the checkpoint holds.
    package var tables: [SealedTable]
    package var notes: [StateNote]
    /// Jobs that do not run, whose state stays as the last checkpoint has it.
    package var kept: Set<ObjectID> = []
    /// Of the sinks among the jobs.
    package var outboxes: [Outbox.Sealed] = []

    package init(position: EpochPosition, workers: Int, tables: [SealedTable], notes: [StateNote]) {
        self.position = position
        self.workers = workers
        self.tables = tables
        self.notes = notes
    }
}

/// What a checkpoint cost.
package struct CheckpointReport: Sendable {
    package var number: UInt64
    package var position: EpochPosition
    /// Bytes of blocks written.
    package var bytesWritten: Int
    /// Bytes of all page files after it.
    package var bytesOnDisk: Int
}

/// Checkpoints on disk (`docs/internals/state.md`).
///
/// Threading: `write` by one thread at a time, which it blocks; `id` and `rewriting` by any thread.
package final class StateStore: Sendable {
    let directory: String
    let files: any FileSystem
    let writer = BlockWriter()
    private let names = Mutex(Names())
    /// Locked while a checkpoint is written.
    private let written = Mutex(Written())

    /// Page files are closed from this size on.
    let fileBytesMax: Int
    /// So much more than twice the live bytes may lie in page files.
    private let slackBytes: Int

    /// What any thread may ask for.
    private struct Names {
        var ids: [TablePlace: TableID] = [:]
        var nextTable: UInt32 = 0
        /// Pages that the next seals are to hold whole, by table.
        var rewriting: [TableID: [UInt32]] = [:]
        var isDistrusted = false
    }

    /// What the writer knows.
    struct Written {
        /// The last checkpoint; nil before the first.
        var record: CheckpointRecord?
        var pages = PageBases()
        /// The last page file of the record.
        var file: (any File)?
        /// No page file ever had this number or a higher one: a checkpoint that failed may be on the disk all the same, and what it names
        /// must stay as it is until a later one is.
        var nextFile: UInt64 = 1
        /// A sync failed, or a checkpoint was given up: nothing on disk is built upon.
        var isDistrusted = false
    }

    /// - Parameters:
    ///   - directory: the data directory's `state`.
    ///   - fileBytesMax: page files are closed from this size on.
    package init(directory: String, files: any FileSystem, fileBytesMax: Int = 64 << 20, slackBytes: Int = 64 << 20) {
        self.directory = directory
        self.files = files
        self.fileBytesMax = fileBytesMax
        self.slackBytes = slackBytes
    }

    // MARK: Tables

    /// The number of a table, a new one when the place has none.
    package func id(of place: TablePlace) -> TableID {
        names.withLock { names in
            if let id = names.ids[place] { return id }
            let id = TableID(names.nextTable)
            names.nextTable += 1
            names.ids[place] = id
            return id
        }
    }

    /// A table that begins anew where another one was: nothing of that counts any more.
    package func renew(_ place: TablePlace) -> TableID {
        names.withLock { $0.ids[place] = nil }
        return id(of: place)
    }

    /// Jobs that are no more: their places get other numbers, should they come again.
    package func forget(_ jobs: Set<ObjectID>) { names.withLock { names in names.ids = names.ids.filter { !jobs.contains($0.key.job) } } }

    /// Pages that the next seal of a table is to hold whole, for their file is to be emptied.
    package func rewriting(_ table: TableID) -> [UInt32] { names.withLock { $0.rewriting.removeValue(forKey: table) ?? [] } }

    /// Whether the next checkpoint must hold everything.
    package var isDistrusted: Bool { names.withLock { $0.isDistrusted } }

    // MARK: Writing

    /// Writes a checkpoint; it counts when this returns.
    ///
    /// - Parameter retry: called when a write failed, such as for want of space; waits as it sees fit and says whether to try again.
    /// - Throws: what the system said when it is not to be tried again, or a sync failed: then `isDistrusted` is set.
    @discardableResult
    package func write(_ checkpoint: Checkpoint, retry: @escaping (IOFailure) -> Bool) throws(IOFailure) -> CheckpointReport {
        try written.withLock { (written) throws(IOFailure) in
            do throws(IOFailure) {
                return try write(checkpoint, &written, retry)
            } catch {
                written.isDistrusted = true
                names.withLock { $0.isDistrusted = true }
                throw error
            }
        }
    }

    private func write(_ checkpoint: Checkpoint, _ written: inout Written, _ retry: @escaping (IOFailure) -> Bool) throws(IOFailure)
        -> CheckpointReport
    {
        let number = (written.record?.number ?? 0) + 1
        let kept = (written.record?.tables ?? []).filter { checkpoint.kept.contains($0.place.job) }
        if written.isDistrusted {
            written.file = nil
            // What does not run cannot be written anew. It lies in what was synced for the last record, and that still counts.
            written.pages.keep(only: Set(kept.map(\.id)))
        }
        written.pages.keep(only: Set(checkpoint.tables.map(\.id) + kept.map(\.id)))
        var pages = PageFileWriter(self, after: written.isDistrusted && kept.isEmpty ? [] : written.record?.files ?? [], retry: retry)
        let record: CheckpointRecord
        let outboxes: [(outbox: Outbox, note: OutboxNote)]
        do throws(IOFailure) {
            try pages.write(checkpoint.tables, &written)
            outboxes = try persist(checkpoint.outboxes, retry)
            var checkpoint = checkpoint
            checkpoint.notes += outboxes.map { StateNote(object: $0.outbox.id, kind: OutboxNote.kind, bytes: $0.note.bytes) }
            record = self.record(number, of: checkpoint, kept, files: pages.list, written)
            try write(record, retry)
        } catch {
            pages.removeCreated()
            throw error
        }
        try files.rename(path("checkpoint", number) + ".new", to: path("checkpoint", number))
        try files.syncDirectory(directory)
        // From here on it counts, and what it names may be sent.
        for (outbox, note) in outboxes { outbox.noteDurable(note) }
        // What cannot be removed now is removed at the next start.
        for name in (try? files.list(directory)) ?? [] where isObsolete(name, after: record, written.record) {
            try? files.remove(directory + "/" + name)
        }
        written.record = record
        written.isDistrusted = false
        let rewriting = written.pages.oldest(
            files: record.files, budget: max(pages.bytesWritten, 4 << 20), slack: slackBytes, open: record.files.last?.number ?? 0)
        names.withLock { names in
            names.rewriting = rewriting
            names.isDistrusted = false
        }
        return CheckpointReport(
            number: number, position: checkpoint.position, bytesWritten: pages.bytesWritten,
            bytesOnDisk: record.files.reduce(0) { $0 + Int($1.bytes) })
    }

    private func persist(
        _ outboxes: [Outbox.Sealed], _ retry: (IOFailure) -> Bool
    ) throws(IOFailure) -> [(outbox: Outbox, note: OutboxNote)] {
        var notes: [(outbox: Outbox, note: OutboxNote)] = []
        for sealed in outboxes {
            let note = try sealed.outbox.persist(sealed) { (body) throws(IOFailure) in try attempt(retry, body) }
            notes.append((sealed.outbox, note))
        }
        return notes
    }

    private func record(
        _ number: UInt64, of checkpoint: Checkpoint, _ kept: [CheckpointRecord.Table], files: [CheckpointRecord.PageFile], _ written: Written
    ) -> CheckpointRecord {
        var shapes: [TableID: TableShape] = [:]
        for table in written.record?.tables ?? [] { shapes[table.id] = table.shape }
        for table in checkpoint.tables { if let changes = table.changes { shapes[table.id] = changes.shape } }
        let tables = checkpoint.tables.compactMap { table in
            shapes[table.id].map { CheckpointRecord.Table(id: table.id, place: table.place, shape: $0) }
        }
        // The oldest files go in which no page's last whole block lies.
        let needed = files.dropLast().firstIndex { written.pages.pageCount(of: $0.number) > 0 } ?? max(files.count - 1, 0)
        return CheckpointRecord(
            number: number, position: checkpoint.position, workers: checkpoint.workers, nextTable: names.withLock { $0.nextTable },
            files: Array(files[needed...]), tables: tables + kept, notes: checkpoint.notes)
    }

    /// Under another name at first: a record that is not whole counts for nothing.
    private func write(_ record: CheckpointRecord, _ retry: (IOFailure) -> Bool) throws(IOFailure) {
        let noteBytes = record.notes.reduce(0) { $0 + $1.bytes.count }
        // Its length is written as a u32.
        guard noteBytes <= Self.noteBytesMax else { throw IOFailure("write", path: path("checkpoint", record.number), errorNumber: EFBIG) }
        let bytes = record.bytes
        try attempt(retry) { () throws(IOFailure) in
            let file = try self.files.open(self.path("checkpoint", record.number) + ".new", .create)
            try file.write(bytes)
            try file.sync()
        }
    }

    func attempt<T>(_ retry: (IOFailure) -> Bool, _ body: () throws(IOFailure) -> T) throws(IOFailure) -> T {
        while true {
            do throws(IOFailure) { return try body() } catch {
                // A sync that failed may have thrown pages away.
                guard error.operation != "sync", retry(error) else { throw error }
            }
        }
    }

    /// Files that neither the last checkpoint nor the one before it need; journals go when later ones begin.
    private func isObsolete(_ name: String, after record: CheckpointRecord, _ last: CheckpointRecord?) -> Bool {
        guard let (kind, number) = Self.parse(name) else { return name.hasSuffix(".new") }
        switch kind {
        case "pages": return ![record, last].contains { $0?.files.contains { $0.number == number } ?? false }
        case "checkpoint": return number < last?.number ?? 0
        default: return false
        }
    }

    // MARK: Names

    /// Of all notes of a checkpoint.
    private static let noteBytesMax = 3 << 30
    static let header: [UInt8] = Array("MILLPAGE".utf8) + [1, 0, 0, 0, 0, 0, 0, 0]

    func path(_ kind: String, _ number: UInt64) -> String { "\(directory)/\(kind)-\(number)" }

    private static func parse(_ name: String) -> (kind: String, number: UInt64)? {
        let parts = name.split(separator: "-", maxSplits: 1)
        guard parts.count == 2, let number = UInt64(parts[1]), number <= 1 << 62 else { return nil }
        return (String(parts[0]), number)
    }

    // MARK: Recovery

    /// The newest checkpoint that is whole, and its blocks. Once, before anything else.
    /// - Throws: as `newestCheckpoint` and `findBlocks` do.
    package func recover() throws(SQLError) -> RecoveredState? {
        guard let recovered = try newestCheckpoint() else { return nil }
        try findBlocks(of: recovered)
        return recovered
    }

    /// Reads the newest checkpoint's record: soon done, however much state there is. Once, before anything else.
    /// - Throws: 58030 when files cannot be read, XX001 when there are checkpoints and none is whole.
    package func newestCheckpoint() throws(SQLError) -> RecoveredState? {
        let (found, count): (RecoveredState?, Int)
        do throws(IOFailure) { (found, count) = try newest() } catch { throw error.sqlError }
        guard found != nil || count == 0 else {
            throw SQLError(
                .dataCorrupted, "no checkpoint in \"\(directory)\" is whole",
                hint: "Restore the directory from a copy, or move it away to begin anew from the sources.")
        }
        return found
    }

    /// The newest whole checkpoint, and how many there are.
    private func newest() throws(IOFailure) -> (RecoveredState?, Int) {
        // What looks missing may be unreadable at present: only the list says that there is nothing.
        try files.createDirectory(directory)
        // So that it is still there when its first checkpoint is, whoever made it.
        try files.syncDirectory(directory.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/"))
        // The process before may have ended between the rename of a checkpoint and this: what follows from it must not be lost with the power.
        try files.syncDirectory(directory)
        let names = try files.list(directory).compactMap { Self.parse($0) }
        if let last = names.filter({ $0.kind == "pages" }).map(\.number).max() { written.withLock { $0.nextFile = last + 1 } }
        let numbers = names.filter { $0.kind == "checkpoint" }.map(\.number)
        for number in numbers.sorted(by: >) {
            let bytes = try files.open(path("checkpoint", number), .read).readAll()
            guard let record = try? CheckpointRecord(bytes), try hasWholeFiles(record) else { continue }
            return (try take(record), numbers.count)
        }
        return (nil, numbers.count)
    }

    private func hasWholeFiles(_ record: CheckpointRecord) throws(IOFailure) -> Bool {
        for file in record.files {
            guard files.exists(path("pages", file.number)), try files.open(path("pages", file.number), .read).size() >= Int(file.bytes)
            else {
                return false
            }
        }
        return true
    }

    private func take(_ record: CheckpointRecord) throws(IOFailure) -> RecoveredState {
        var open: [UInt64: any File] = [:]
        for pages in record.files { open[pages.number] = try files.open(path("pages", pages.number), .readWrite) }
        // What a checkpoint that did not come to its end appended.
        if let last = record.files.last, let file = open[last.number], try file.size() > Int(last.bytes) {
            try file.truncate(to: Int(last.bytes))
        }
        let lastFile = record.files.last.flatMap { open[$0.number] }
        names.withLock { names in
            names.nextTable = record.nextTable
            names.ids = Dictionary(record.tables.map { ($0.place, $0.id) }) { first, _ in first }
        }
        written.withLock { written in
            written.record = record
            written.file = lastFile
        }
        return RecoveredState(record: record, files: open)
    }

    /// Reads what the page files have: before tables are filled, and before a checkpoint is written.
    /// - Throws: 58030 when files cannot be read, 57P01 when it was cancelled. Damage is told by `RecoveredState.restore`.
    package func findBlocks(of recovered: RecoveredState) throws(SQLError) {
        let index: BlockIndex
        do throws(IOFailure) {
            index = try BlockIndex(recovered.record, recovered.files) { recovered.isCancelled }
        } catch { throw error.sqlError }
        if recovered.isCancelled { throw .shuttingDown }
        let bases = index.bases
        written.withLock { $0.pages = bases }
        recovered.take(index)
    }
}
