import MillBase
import MillColumnar
import MillConnectorKit
import MillHTTPClient
import MillIO
import MillIceberg
import MillLakeCatalog
import MillObjectStore
import MillTestKit
import Synchronization

@testable import MillConnectors

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// The catalog of this project with its tables on a disk in memory, its clients and sinks without sockets between them, and time that a
/// test moves.
final class SinkWorld: Sendable {
    /// What becomes of a request.
    enum Fate {
        /// It never arrives.
        case unsent
        /// It is answered, and the answer is lost.
        case unanswered
        /// Its sender has given it up long before it arrives, which is when `deliverLate` is called.
        case late
    }

    let clock = VirtualClock()
    let environment: Environment
    let catalog: LakeCatalog
    let tables: EmbeddedTables
    private let fate = Mutex<(@Sendable (HTTPRequest) -> Fate?)?>(nil)
    private let held = Mutex<[HTTPRequest]>([])

    init(seed: UInt64 = 5) throws {
        environment = Environment(files: MemoryFileSystem(), clock: clock, random: SeededSource(seed))
        let store = LocalObjectStore(environment: environment)
        catalog = try LakeCatalog(LakeCatalogOptions(path: nil, warehouseRoot: "file:///lake"), environment: environment) { _ in store }
        tables = EmbeddedTables(catalog, warehouse: "dev")
        // A client's first question makes the warehouse.
        _ = answer(
            HTTPRequest("GET", "http://localhost:8181/api/catalog/v1/config?warehouse=dev", headers: ["Authorization": "Bearer none"]))
    }

    func deliverLate() {
        setFate(nil)
        let requests = held.withLock { held in
            defer { held = [] }
            return held
        }
        for request in requests { _ = answer(request) }
    }

    func setFate(_ fate: (@Sendable (HTTPRequest) -> Fate?)?) { self.fate.withLock { $0 = fate } }

    fileprivate func answer(_ request: HTTPRequest) -> ScriptedTransport.Answer {
        let fate = fate.withLock { $0 }?(request)
        func lost(_ errorNumber: Int32) -> ScriptedTransport.Answer {
            .failure(IOFailure(request.method, path: request.place, errorNumber: errorNumber, detail: "lost"))
        }
        if case .unsent = fate { return lost(EPIPE) }
        if case .late = fate {
            held.withLock { $0.append(request) }
            return lost(ECONNRESET)
        }
        let target = String(request.url.dropFirst("http://localhost:8181".count))
        let headers = request.headers.fields.map { (name: $0.name.lowercased(), value: $0.value) }
        do {
            let answer = catalog.answer(try CatalogRequest(method: request.method, target: target, headers: headers, body: request.body))
            if case .unanswered = fate { return lost(ECONNRESET) }
            return .success(HTTPResponse(status: answer.status, headers: ["Content-Type": answer.contentType], body: answer.body))
        } catch { return lost(EINVAL) }
    }

    static let options = [
        "connector": "iceberg", "catalog.type": "rest", "catalog.name": "dev", "catalog.uri": "http://localhost:8181/api/catalog/",
        "warehouse.path": "dev", "catalog.credential": "root:secret", "catalog.scope": "PRINCIPAL_ROLE:ALL", "database.name": "shop",
        "table.name": "orders", "create_table_if_not_exists": "true",
    ]

    /// A sink of a relation that is drawn by its columns, as `id:bigint name:text`.
    func sink(_ columns: String, key: [Int]? = nil, _ more: [String: String] = [:], without: Set<String> = []) throws -> IcebergSink {
        let options = Self.options.filter { !without.contains($0.key) }.merging(more) { $1 }
        return try IcebergSink(
            options, of: SinkConnectors.Relation(name: "view", fields: Self.fields(columns), key: key), environment: environment,
            transport: ScriptedTransport { [self] in answer($0) })
    }

    static func fields(_ columns: String) -> [Field] {
        let batch = DeltaBatch.drawn(columns)
        return zip(columns.split(separator: " "), batch.columns).map { Field(String($0.split(separator: ":")[0]), $1.type) }
    }

    func open(_ name: String = "orders") throws -> IcebergTable {
        try tables.open(TableIdentifier(namespace: ["shop"], name: name), in: self)
    }

    /// The table's rows as texts, sorted.
    func rows(_ name: String = "orders") throws -> [String] {
        let table = try open(name)
        let plan = try ScanPlan(table, .reference("main"), isNewAllowed: true)
        var result: [String] = []
        for task in plan.tasks {
            let reader = try DataFileReader(task, plan, table, fieldIDs: plan.schema.fields.map(\.id))
            while let batch = try reader.next() {
                let drawn = DeltaBatch(columns: batch.columns, count: batch.count).drawn
                result += drawn.split(separator: "; ").dropFirst().map { String($0.dropFirst(3)) }
            }
        }
        return result.sorted()
    }
}

extension EmbeddedTables {
    fileprivate func open(_ table: TableIdentifier, in world: SinkWorld) throws(IcebergError) -> IcebergTable {
        let loaded = try load(table)
        return IcebergTable(
            table, metadata: loaded.metadata, catalog: self, store: LocalObjectStore(environment: world.environment),
            clock: world.environment.clock, random: world.environment.random)
    }
}

extension SinkWorld {
    func drop(_ name: String) throws {
        let token = answer(
            HTTPRequest(
                "POST", "http://localhost:8181/api/catalog/v1/oauth/tokens", headers: ["Content-Type": "application/x-www-form-urlencoded"],
                body: Array("grant_type=client_credentials&client_id=root&client_secret=secret".utf8)))
        let text = try JSONValue(try token.get().body)["access_token"].string ?? ""
        _ = try answer(
            HTTPRequest(
                "DELETE", "http://localhost:8181/api/catalog/v1/dev/namespaces/shop/tables/\(name)",
                headers: ["Authorization": "Bearer \(text)"])
        ).get()
    }
}

/// Says yes so many times.
final class Countdown: Sendable {
    private let left: Mutex<Int>
    init(_ count: Int) { left = Mutex(count) }
    func next() -> Bool {
        left.withLock { left in
            left -= 1
            return left >= 0
        }
    }
    var isOver: Bool { left.withLock { $0 <= 0 } }
}
