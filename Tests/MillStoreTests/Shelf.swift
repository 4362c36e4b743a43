import MillBase
import MillColumnar
import MillIO
import MillState
import MillTestKit

@testable import MillStore

/// Two jobs, one with a table of rows and one with an ordered table, beside what they must hold, and the store that keeps them.
final class Shelf {
    struct Row: Hashable {
        var id: Int64
        var text: String
    }

    /// What the tables hold at an epoch.
    struct Content: Equatable {
        var rows: [Row: UInt64] = [:]
        var keys: [[UInt8]: UInt64] = [:]
    }

    static let rowsJob = ObjectID(1)
    static let orderedJob = ObjectID(2)

    let files: MemoryFileSystem
    let store: StateStore
    private(set) var content = Content()
    private(set) var epoch: Epoch
    private let rows = StateTable(columns: [.int64, .varchar], payloadBytes: 8)
    private let ordered = OrderedTable(payloadBytes: 8, pageBytes: 1024)
    private let recovered: RecoveredState?

    /// Opens what is on the disk. A job that the checkpoint does not have begins empty.
    init(
        _ files: MemoryFileSystem, fileBytesMax: Int = 8 << 10, slackBytes: Int = 4 << 10,
        restoring jobs: [ObjectID] = [rowsJob, orderedJob]
    ) throws(SQLError) {
        self.files = files
        store = StateStore(directory: "/state", files: files, fileBytesMax: fileBytesMax, slackBytes: slackBytes)
        recovered = try store.recover()
        epoch = recovered?.record.position.epoch ?? .zero
        for job in jobs {
            _ = try recovered?.restore(table(of: job), at: Self.place(job))
            table(of: job).track()
        }
        readRows()
        readKeys()
    }

    static func place(_ job: ObjectID) -> TablePlace { TablePlace(job: job, node: 3, ordinal: 0, worker: 0) }

    private func table(of job: ObjectID) -> any DurableTable { job == Self.rowsJob ? rows : ordered }

    /// The content as of the checkpoint that was found.
    var recordNumber: UInt64? { recovered?.record.number }

    private func readRows() {
        rows.forEachRow { number in
            let columns = self.rows.gather(rows: [number], count: 1)
            guard case .int(let id) = columns[0].scalar(0), case .string(let text) = columns[1].scalar(0) else { return }
            self.content.rows[Row(id: id, text: text)] = self.rows.payload(number).load(as: UInt64.self)
        }
    }

    private func readKeys() {
        ordered.scan { key, payload in
            content.keys[Array(key)] = payload.load(as: UInt64.self)
            return true
        }
    }

    // MARK: Changes

    /// Some random changes of both tables; long strings and keys among them.
    func change(_ random: inout SeededGenerator, count: Int, ids: Int = 400) {
        changeRows(&random, count: count, ids: ids)
        for _ in 0..<count {
            let key = key(random.number(0...ids))
            if random.oneIn(2) { removeKey(key) } else { put(key, random.next() >> 1) }
        }
    }

    func changeRows(_ random: inout SeededGenerator, count: Int, ids: Int = 400) {
        for _ in 0..<count {
            let id = Int64(random.number(0...ids))
            if random.oneIn(2) {
                if let row = content.rows.keys.filter({ $0.id == id }).min(by: { $0.text < $1.text }) { remove(row) }
            } else {
                put(Row(id: id, text: String(repeating: "x", count: random.pick([0, 3, 12, 13, 200]))), random.next() >> 1)
            }
        }
    }

    private func key(_ id: Int) -> [UInt8] { [UInt8](repeating: 7, count: id % 5 == 0 ? 200 : 4) + [UInt8(id >> 8), UInt8(id & 255)] }

    private func columns(_ row: Row) -> ([Column], UInt64) {
        let (ids, texts) = (Column(.int64, capacity: 1), Column(.varchar, capacity: 1))
        ids.append(.int(row.id))
        texts.append(.string(row.text))
        var hash: UInt64 = 0
        RowHash.hash([ids, texts], count: 1, into: &hash)
        return ([ids, texts], hash)
    }

    private func put(_ row: Row, _ value: UInt64) {
        let (columns, hash) = columns(row)
        var number: RowNumber = 0
        var inserted = Selection(capacity: 1)
        withUnsafePointer(to: hash) { rows.findOrInsert(columns, hashes: $0, count: 1, rows: &number, inserted: &inserted) }
        rows.prepareToWrite(number)
        rows.writablePayload(number).storeBytes(of: value, as: UInt64.self)
        content.rows[row] = value
    }

    private func remove(_ row: Row) {
        let (columns, hash) = columns(row)
        var number: RowNumber = 0
        withUnsafePointer(to: hash) { rows.find(columns, hashes: $0, count: 1, rows: &number) }
        rows.remove(number)
        content.rows[row] = nil
    }

    private func put(_ key: [UInt8], _ value: UInt64) {
        key.withUnsafeBytes { ordered.findOrInsert($0).payload.storeBytes(of: value, as: UInt64.self) }
        content.keys[key] = value
    }

    private func removeKey(_ key: [UInt8]) {
        _ = key.withUnsafeBytes { ordered.remove($0) }
        content.keys[key] = nil
    }

    // MARK: Checkpoints

    /// - Parameters:
    ///   - jobs: the jobs that it holds.
    ///   - kept: those that do not run and stay as they are.
    func sealed(_ jobs: [ObjectID] = [rowsJob, orderedJob], keeping kept: Set<ObjectID> = []) -> Checkpoint {
        epoch = epoch.next
        let tables = jobs.map { job in
            let (place, table) = (Self.place(job), table(of: job))
            let id = store.id(of: place)
            if store.isDistrusted { table.forgetSeals() }
            return SealedTable(place: place, id: id, changes: table.seal(table: id.number, rewriting: store.rewriting(id)))
        }
        let position = EpochPosition(epoch: epoch, openedAtMicros: 0, dmlPosition: .zero, offsets: [:])
        var checkpoint = Checkpoint(position: position, workers: 1, tables: tables, notes: [])
        checkpoint.kept = kept
        return checkpoint
    }

    @discardableResult
    func checkpoint(
        _ jobs: [ObjectID] = [rowsJob, orderedJob], keeping kept: Set<ObjectID> = [], retry: @escaping (IOFailure) -> Bool = { _ in false }
    ) throws(IOFailure) -> CheckpointReport { try store.write(sealed(jobs, keeping: kept), retry: retry) }
}

extension MemoryFileSystem {
    /// The files of a directory as they are, on a disk of their own.
    func copy(of directory: String) throws -> MemoryFileSystem {
        let other = MemoryFileSystem()
        try other.createDirectory(directory)
        for name in try list(directory) { try other.replace("\(directory)/\(name)", with: open("\(directory)/\(name)", .read).readAll()) }
        try other.syncDirectory(directory)
        try other.syncDirectory("/")
        return other
    }

    func replace(_ path: String, with bytes: [UInt8]) throws {
        let file = try open(path, .create)
        try file.write(bytes)
        try file.sync()
    }
}
