import GRDB
package import MillBase
import MillColumnar
package import MillIO
import MillIceberg
package import MillObjectStore
import Synchronization

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// The embedded table catalog: what an Iceberg REST catalog answers, without sockets.
///
/// Names, properties, principals and rights are rows of one SQLite database (`catalog.db`); what a table is lies in its metadata file, in the
/// warehouse's store. A commit:
///
/// ```
/// 1  read the row, and the metadata file that it names
/// 2  check the requirements, apply the updates
/// 3  write the new metadata file under a new name
/// 4  one transaction: change the row if it still names the file of 1, for all tables of the commit
/// 5  if it does not: remove the file of 3 and go back to 1, where the requirements are checked anew
/// ```
///
/// So a crash at any moment leaves the old table or the new one, and at most a metadata file that nobody names. An answer is given once the
/// row is on disk (write-ahead log, synchronous FULL).
///
/// Threading: any thread; calls block.
package final class LakeCatalog: Sendable {
    /// Makes the store of a warehouse from its properties (`s3.endpoint`, ...).
    package typealias StoreMaker = @Sendable (_ properties: [String: String]) throws(IOFailure) -> any ObjectStore

    let options: LakeCatalogOptions
    let environment: Environment
    let database: DatabaseQueue
    let metadataCache = MetadataCache()
    private let makeStore: StoreMaker
    /// By warehouse and version of its definition.
    private let stores = Mutex<[String: any ObjectStore]>([:])

    /// Opens `catalog.db`, or makes it with one warehouse and one principal.
    ///
    /// - Throws: 58030 when it cannot be opened, 55000 when it is another program's or a newer one's, XX001 when it is damaged.
    package init(_ options: LakeCatalogOptions, environment: Environment, makeStore: @escaping StoreMaker) throws(SQLError) {
        self.options = options
        self.environment = environment
        self.makeStore = makeStore
        var configuration = Configuration()
        configuration.label = "millrace.catalog"
        configuration.prepareDatabase { database in
            try database.execute(sql: "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
        }
        do {
            if let path = options.path {
                guard PrivateFile.make(path) else { throw SQLError(.ioError, "could not open \"\(path)\"") }
                database = try DatabaseQueue(path: path, configuration: configuration)
            } else {
                database = try DatabaseQueue()
            }
            try CatalogSchema.prepare(database, name: options.path ?? "memory")
            try bootstrap()
        } catch let error as SQLError { throw error } catch let error as DatabaseError {
            let state: SQLState = [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode) ? .dataCorrupted : .ioError
            throw SQLError(state, "could not open \"\(options.path ?? "memory")\": \(error.message ?? error.resultCode.description)")
        } catch { throw SQLError(.internalError, "\(CatalogFailure(any: error).message)") }
    }

    /// The names of all warehouses.
    package func warehouseNames() throws(SQLError) -> [String] {
        do { return try database.read(Warehouse.all).map(\.name) } catch {
            throw SQLError(.internalError, "could not read the catalog: \(CatalogFailure(any: error).message)")
        }
    }

    package func close() {
        try? database.close()  // What was answered is on disk; the system closes the rest.
    }

    /// Answers a request, whatever is in it.
    package func answer(_ request: CatalogRequest) -> CatalogAnswer {
        do { return try route(request) } catch { return Self.answer(to: error, request) }
    }

    private static func answer(to error: any Error, _ request: CatalogRequest) -> CatalogAnswer {
        // OAuth has a form of its own for refusals.
        if let refusal = error as? TokenRefusal { return refusal.answer }
        return CatalogFailure(any: error).answer
    }

    var nowMillis: Int64 { environment.clock.nowMicros / 1000 }

    /// A version 4 UUID (RFC 9562).
    func makeUUID() -> String {
        let words = [environment.random.next(), environment.random.next()]
        var bytes = words.flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * UInt64($0))) } }
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        return UUIDText.text(bytes) ?? ""
    }

    func store(of warehouse: Warehouse) throws -> any ObjectStore {
        let key = "\(warehouse.id)-\(warehouse.version)"
        if let known = stores.withLock({ $0[key] }) { return known }
        let made = try makeStore(warehouse.properties)
        stores.withLock { $0[key] = made }
        return made
    }
}

/// A file that its owner alone can read: it holds what passwords are checked by.
private enum PrivateFile {
    static func make(_ path: String) -> Bool {
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return fchmod(descriptor, 0o600) == 0
    }
}
