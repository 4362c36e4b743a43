import ArgumentParser
import MillBase
import MillCatalog
import MillConnectorKit
import MillIO
import MillKafkaWire
import MillLog
import MillMeta
import MillPlan
import MillStore

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// What a data directory holds: found by opening it as a start does, over files that are only read (`ReadOnlyFileSystem`).
///
/// Of a directory that a process is using the parts are read one after the other while it goes on; ends of logs may be in the middle of a
/// write, so torn ones are no damage there.
struct Inspection: Encodable {
    struct Definition: Encodable {
        var id: UInt32
        var schema: String
        var name: String
        var kind: String
        /// Of a table or materialized view: `creating` or `running`.
        var state: String?
        var planVersion: Int?
        var problem: String?
        var definition: String
    }

    struct Table: Encodable {
        var object: UInt32
        var name: String
        /// Of the object's plan.
        var node: Int
        var table: Int
        var worker: Int
        var kind: String
        var rows: UInt64
        var pages: Int
        var bytes: Int
    }

    struct PageFile: Encodable {
        var number: UInt64
        var bytes: UInt64
    }

    struct Offset: Encodable {
        var source: UInt32
        var name: String
        var topic: String
        var partition: Int32
        var offset: Int64
    }

    struct Checkpoint: Encodable {
        var number: UInt64
        var epoch: UInt64
        /// When the epoch was opened, microseconds since 1970.
        var openedAtMicros: Int64
        var workers: Int
        var dmlPosition: UInt64
        var tables: [Table]
        var files: [PageFile]
        var offsets: [Offset]
        /// Bytes kept beside tables: rejects, errors.
        var noteBytes: Int
    }

    struct Journal: Encodable {
        /// Epochs since this checkpoint.
        var checkpoint: UInt64
        var entries: Int
        var lastEpoch: UInt64
        var dmlPosition: UInt64
        var offsets: [Offset]
    }

    struct Partition: Encodable {
        var topic: String
        var partition: Int
        var startOffset: Int64
        var endOffset: Int64
        var bytes: Int
    }

    struct Transactions: Encodable {
        var last: UInt64
        var files: Int
        var bytes: Int
    }

    /// Of the forms in which things are stored.
    struct Versions: Encodable {
        var program = Millrace.configuration.version
        var checkpoint = StateInspection.recordVersion
        var plan = StreamPlan.formatVersion
    }

    var directory: String
    var isRunning: Bool
    /// All checksums were compared.
    var isVerified: Bool
    var versions = Versions()
    var definitions: [Definition] = []
    /// What a start would take.
    var checkpoint: Checkpoint?
    var journals: [Journal] = []
    var partitions: [Partition] = []
    var transactions: Transactions?
    /// What is wrong, in words.
    var damage: [String] = []
    /// What the next start will do by itself.
    var notes: [String] = []

    private var names: [ObjectID: String] = [:]

    private enum CodingKeys: String, CodingKey {
        case directory, isRunning, isVerified, versions, definitions, checkpoint, journals, partitions, transactions, damage, notes
    }

    /// - Throws: what keeps it from being read at all: no such directory, another program's.
    init(_ directory: String, verifies: Bool, environment: Environment = .system) throws {
        self.directory = directory
        isVerified = verifies
        guard environment.files.exists(directory) else { throw IOFailure("open", path: directory, errorNumber: ENOENT) }
        guard ["meta.db", "state", "log", "dml"].contains(where: { environment.files.exists("\(directory)/\($0)") }) else {
            throw SQLError(
                .objectNotInPrerequisiteState, "\"\(directory)\" is not a data directory of millrace",
                hint: "One holds meta.db, state, log and dml.")
        }
        isRunning = DirectoryLock.isHeld(directory)
        var reading = environment
        reading.files = ReadOnlyFileSystem(environment.files)
        readDefinitions(environment)
        try readState(reading.files, verifies)
        readTransactions(reading)
        readLog(reading, verifies)
    }

    private func name(_ id: ObjectID) -> String { names[id] ?? "(not defined)" }

    // MARK: Parts

    /// From a copy: SQLite writes beside a database that it reads.
    private mutating func readDefinitions(_ environment: Environment) {
        let path = "\(directory)/meta.db"
        guard environment.files.exists(path) else { return notes.append("there is no meta.db: nothing was ever defined") }
        let copy = TemporaryDirectory.path("inspect")
        defer { try? environment.files.remove(copy) }  // It lies where the system clears up.
        // A process that uses it may write between the two files; the next copy then is of one moment.
        for attempt in 1...3 {
            do {
                try environment.files.createDirectory(copy)
                for suffix in ["", "-wal"] where environment.files.exists(path + suffix) {
                    try Self.copy(path + suffix, to: "\(copy)/meta.db" + suffix, environment.files)
                }
                let meta = try MetaStore(path: "\(copy)/meta.db")
                defer { meta.close() }
                let stored = try meta.load()
                for entry in stored.objects { note(entry) }
                return
            } catch {
                if attempt == 3 { damage.append("meta.db: \(error)") }
                try? environment.files.remove(copy)  // The next copy replaces it.
            }
        }
    }

    private static func copy(_ from: String, to: String, _ files: any FileSystem) throws(IOFailure) {
        let (source, target) = (try files.open(from, .read), try files.open(to, .create))
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
        defer { buffer.deallocate() }
        var offset = 0
        while true {
            let count = try source.read(at: offset, into: buffer)
            try target.write(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count]), at: offset)
            if count < buffer.count { return }
            offset += count
        }
    }

    private mutating func note(_ entry: StoredObject) {
        let object = entry.object
        names[object.id] = object.name
        var definition = Definition(
            id: object.id.number, schema: object.schemaName, name: object.name, kind: object.kind.rawValue, state: entry.job?.state.rawValue,
            planVersion: entry.job?.planVersion, definition: object.definition)
        if case .failure(let error)? = entry.job?.plan { definition.problem = error.message }
        if let failure = entry.failure { definition.problem = failure.message }
        if let problem = definition.problem { damage.append("\(object.kind.rawValue) \"\(object.name)\": \(problem)") }
        definitions.append(definition)
    }

    private mutating func readState(_ files: any FileSystem, _ verifies: Bool) throws {
        let state = try stateInspection(files, verifies)
        damage += state.damage.map { "state: \($0)" }
        if state.record == nil, !state.checkpoints.isEmpty { damage.append("state: no checkpoint is whole, so a start is refused") }
        journals = state.journals.map { journal in
            Journal(
                checkpoint: journal.checkpoint, entries: journal.entries, lastEpoch: journal.last.epoch.number,
                dmlPosition: journal.last.dmlPosition.number, offsets: offsets(journal.last.offsets))
        }
        guard let record = state.record else { return }
        checkpoint = Checkpoint(
            number: record.number, epoch: record.position.epoch.number, openedAtMicros: record.position.openedAtMicros, workers: record.workers,
            dmlPosition: record.position.dmlPosition.number,
            tables: state.tables.map { table in
                Table(
                    object: table.place.job.number, name: name(table.place.job), node: table.place.node, table: table.place.ordinal,
                    worker: table.place.worker, kind: table.isOrdered ? "ordered" : "hashed", rows: table.rows, pages: table.pages, bytes: table.bytes)
            },
            files: record.files.map { PageFile(number: $0.number, bytes: $0.bytes) }, offsets: offsets(record.position.offsets),
            noteBytes: record.notes.reduce(0) { $0 + $1.bytes.count })
    }

    /// A process that uses the directory may take files away meanwhile; another look then finds those that have come in their place.
    private func stateInspection(_ files: any FileSystem, _ verifies: Bool) throws -> StateInspection {
        func look() throws(IOFailure) -> StateInspection { try StateInspection(directory: "\(directory)/state", files: files, verifies: verifies) }
        for _ in 1..<Self.looksMax where isRunning {
            if let state = try? look(), state.damage.isEmpty { return state }  // The last look says what is wrong.
        }
        return try look()
    }

    private static let looksMax = 5

    private func offsets(_ offsets: SourceOffsets) -> [Offset] {
        offsets.sorted { $0.key < $1.key }.flatMap { source, splits in
            splits.sorted { $0.key < $1.key }.map { split, offset in
                Offset(source: source.number, name: name(source), topic: split.topic, partition: split.partition, offset: offset.position)
            }
        }
    }

    private mutating func readTransactions(_ environment: Environment) {
        let path = "\(directory)/dml"
        guard environment.files.exists(path) else { return }
        do {
            let names = try environment.files.list(path).filter { $0.hasSuffix(".dml") }
            let bytes = try names.reduce(0) { try $0 + environment.files.open("\(path)/\($1)", .read).size() }
            let log = try DMLLog(environment: environment, directory: path)
            defer { log.close() }
            note(log.truncatedTail)
            damage += log.damage.map { "dml: \($0.sqlError.message)" }
            transactions = Transactions(last: log.durablePosition.number, files: names.count, bytes: bytes)
        } catch { damage.append("dml: \(error)") }
    }

    private mutating func readLog(_ environment: Environment, _ verifies: Bool) {
        let path = "\(directory)/log"
        guard environment.files.exists(path) else { return }
        do throws(LogError) {
            let log = try Log(environment: environment, directory: path)
            defer { log.close() }
            for tail in log.truncatedTails { note(tail) }
            for topic in log.allTopics {
                for (index, partition) in topic.partitions.enumerated() {
                    partitions.append(
                        Partition(
                            topic: topic.name, partition: index, startOffset: partition.logStartOffset, endOffset: partition.highWatermark,
                            bytes: partition.byteCount))
                    if let failure = partition.failure ?? (verifies ? Self.verify(partition) : nil) {
                        damage.append("log: topic \"\(topic.name)\", partition \(index): \(failure.sqlError.message)")
                    }
                }
            }
        } catch { damage.append("log: \(error.sqlError.message)") }
    }

    /// Reads all records of a partition; the first thing that is wrong.
    private static func verify(_ partition: PartitionLog) -> LogError? {
        var offset = partition.logStartOffset
        do throws(LogError) {
            while offset < partition.highWatermark {
                let slice = try partition.read(from: offset, maxBytes: 4 << 20)
                guard !slice.isEmpty else { return nil }
                var batches = slice.batches
                do throws(RecordError) { while let batch = try batches.next() { try batch.validateChecksum() } } catch {
                    return .corrupted(path: "the records from offset \(offset) on", reason: "\(error)")
                }
                offset = slice.nextOffset
            }
            return nil
        } catch { return error }
    }

    private mutating func note(_ tail: TruncatedTail?) {
        guard let tail, !isRunning else { return }
        notes.append("the next start cuts \(tail.cutBytes) bytes off \(tail.path): they were never acknowledged")
    }
}
