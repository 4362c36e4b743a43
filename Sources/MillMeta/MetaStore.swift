import GRDB
package import MillBase
package import MillCatalog
package import MillConnectorKit
package import MillPlan

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// `meta.db`: every definition, with what was settled when it was made: a source's origin, a job's stream plan.
///
/// The engine writes to it in the statement that changes the catalog, and reads it once, at the start. It knows nothing of SQL text:
/// definitions are kept as they are given. One SQLite database, one transaction per call; a call that returns is on disk
/// (write-ahead log, synchronous FULL), one that throws has changed nothing. After a crash SQLite finds the last whole transaction.
/// The tables are in docs/internals/meta.md. Calls block and may come from any thread.
package final class MetaStore: Sendable {
    /// Marks the file as ours: "Mill".
    static let applicationID: Int32 = 0x4D69_6C6C

    private let database: DatabaseQueue
    private let name: String

    /// Opens the file, or makes it, readable by its owner alone: options may hold passwords.
    /// - Throws: 58030 when it cannot be opened, 55000 when it is another program's or a newer one's, XX001 when it is damaged.
    package convenience init(path: String) throws(SQLError) {
        guard makePrivateFile(path) else { throw SQLError(.ioError, "could not open \"\(path)\": \(String(cString: strerror(errno)))") }
        var configuration = Configuration()
        configuration.label = "millrace.meta"
        configuration.prepareDatabase { database in
            try database.execute(sql: "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
        }
        do { try self.init(DatabaseQueue(path: path, configuration: configuration), name: path) } catch {
            throw Self.sqlError(error, "open \"\(path)\"")
        }
    }

    /// A store that lives as long as the value: for tests that start an engine more than once.
    package static func inMemory() throws(SQLError) -> MetaStore {
        do { return try MetaStore(DatabaseQueue(), name: "memory") } catch { throw sqlError(error, "open a store in memory") }
    }

    private init(_ database: DatabaseQueue, name: String) throws {
        self.database = database
        self.name = name
        try MetaSchema.prepare(database, name: name)
    }

    package func close() {
        try? database.close()  // What was written is on disk; the system closes the rest.
    }

    // MARK: Changing

    /// Stores a new object, and that its identifier is used up.
    /// - Parameters:
    ///   - origin: where a source begins.
    ///   - job: how a table or materialized view runs, and whether it already does.
    /// - Returns: the checksum of the job's plan as it is stored.
    @discardableResult
    package func create(
        _ object: CatalogObject, origin: [SourceSplit: SplitOffset] = [:], job: (plan: StreamPlan, state: JobState)? = nil
    ) throws(SQLError) -> UInt32? {
        try write { database in
            try MetaRows.insert(object, into: database)
            try MetaRows.insert(origin, of: object.id, into: database)
            let checksum = try job.map { try MetaRows.put($0.plan, $0.state, of: object.id, into: database) }
            try database.execute(
                sql: "UPDATE counters SET value = max(value, ?) WHERE name = 'next_object_id'", arguments: [Int64(object.id.number) + 1])
            return checksum
        }
    }

    /// Notes that a job in creation has taken over everything that was there before it.
    package func setRunning(_ id: ObjectID) throws(SQLError) {
        try write { database in
            try database.execute(sql: "UPDATE jobs SET state = ? WHERE object_id = ?", arguments: [JobState.running.rawValue, id.number])
        }
    }

    /// Notes that an object is paused, or with nil that it goes on.
    package func setPause(_ pause: StoredPause?, of id: ObjectID) throws(SQLError) {
        try write { database in
            try database.execute(sql: "DELETE FROM pauses WHERE object_id = ?", arguments: [id.number])
            guard let pause else { return }
            try database.execute(
                sql: "INSERT INTO pauses (object_id, number, since_micros) VALUES (?, ?, ?)",
                arguments: [id.number, Int64(bitPattern: pause.number), pause.sinceMicros])
        }
    }

    /// Puts another plan in the place of a job's; the job is in creation again.
    /// - Returns: the plan's checksum as it is stored.
    @discardableResult
    package func replacePlan(of id: ObjectID, by plan: StreamPlan) throws(SQLError) -> UInt32 {
        try write { database in try MetaRows.put(plan, .creating, of: id, into: database) }
    }

    /// Forgets objects and everything stored with them; those that are not there are no mistake.
    package func drop(_ ids: [ObjectID]) throws(SQLError) {
        guard !ids.isEmpty else { return }
        try write { database in
            for id in ids { try database.execute(sql: "DELETE FROM objects WHERE id = ?", arguments: [id.number]) }
        }
    }

    package func createSchema(_ name: String) throws(SQLError) {
        try write { database in try database.execute(sql: "INSERT INTO schemas (name) VALUES (?)", arguments: [name]) }
    }

    package func attach(_ catalog: StoredAttachment) throws(SQLError) {
        try write { database in
            try database.execute(sql: "INSERT INTO catalogs (name) VALUES (?)", arguments: [catalog.name])
            for (position, option) in catalog.options.enumerated() {
                try database.execute(
                    sql: "INSERT INTO catalog_options (catalog, position, name, value) VALUES (?, ?, ?, ?)",
                    arguments: [catalog.name, position, option.name, option.value])
            }
        }
    }

    package func detach(catalog name: String) throws(SQLError) {
        try write { database in try database.execute(sql: "DELETE FROM catalogs WHERE name = ?", arguments: [name]) }
    }

    private func write<T>(_ body: (Database) throws -> T) throws(SQLError) -> T {
        do { return try database.write(body) } catch { throw Self.sqlError(error, "write \"\(name)\"") }
    }

    // MARK: Reading

    /// All that is stored, as of one moment.
    /// - Throws: XX001 for rows that no version has written. A plan that cannot be read is its object's failure alone.
    package func load() throws(SQLError) -> StoredCatalog {
        do { return try database.read(MetaRows.load) } catch { throw Self.sqlError(error, "read \"\(name)\"") }
    }

    /// Runs SQL on the database: for tests that damage it.
    func execute(_ sql: String) throws { try database.write { try $0.execute(sql: sql) } }

    /// The same in memory, as it is now: what a crash at this moment leaves, for tests.
    func copy() throws -> MetaStore {
        let copy = try DatabaseQueue()
        try database.backup(to: copy)
        return try MetaStore(copy, name: name)
    }

    /// A setting of SQLite as text: for tests.
    func pragma(_ name: String) throws -> String? { try database.read { try String.fetchOne($0, sql: "PRAGMA \(name)") } }

    private static func sqlError(_ error: any Error, _ attempt: String) -> SQLError {
        switch error {
        case let error as SQLError: return error
        case let error as DatabaseError where [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode):
            return SQLError(
                .dataCorrupted, "could not \(attempt): \(error.message ?? "it is damaged")",
                hint: "Restore it from a copy, or move it away to begin anew.")
        case let error as RowDecodingError:
            return SQLError(
                .dataCorrupted, "could not \(attempt): \(error)", hint: "Restore it from a copy, or move it away to begin anew.")
        case let error as DatabaseError where error.resultCode == .SQLITE_FULL:
            return SQLError(.diskFull, "could not \(attempt): the disk is full", hint: "Try again when there is room.")
        case let error as DatabaseError: return SQLError(.ioError, "could not \(attempt): \(error.message ?? error.resultCode.description)")
        default: return SQLError(.ioError, "could not \(attempt): \(error)")
        }
    }
}

/// Makes the file unless it is there, and leaves it to its owner alone; false with `errno` when it cannot.
private func makePrivateFile(_ path: String) -> Bool {
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return false }
    let isPrivate = fchmod(descriptor, 0o600) == 0
    close(descriptor)
    return isPrivate
}
