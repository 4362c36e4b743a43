import MillColumnar
import MillHTTPClient
import MillIceberg
import MillIO
import MillLakeCatalog
import MillObjectStore
import MillTestKit
import Synchronization
import Testing

@testable import MillCatalogClient

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// The client with the catalog of this project, without sockets between them.
@Suite struct EmbeddedCatalogTests {
    private let world: World

    /// A catalog over objects in memory, and a way to it that a test can cut.
    private final class World: Sendable {
        let store = MemoryObjectStore()
        let catalog: LakeCatalog
        let environment: Environment
        private let fault = Mutex<(@Sendable (HTTPRequest) -> Int32?)?>(nil)

        init() throws {
            let store = store
            environment = Environment(files: LocalFileSystem(), clock: SystemClock(), random: SeededSource(11))
            catalog = try LakeCatalog(LakeCatalogOptions(path: nil, warehouseRoot: "file:///lake"), environment: environment) { _ in store }
        }

        /// Answers of requests for which that gives an error number are lost.
        func lose(_ fault: (@Sendable (HTTPRequest) -> Int32?)?) { self.fault.withLock { $0 = fault } }

        private func answer(_ request: HTTPRequest) -> ScriptedTransport.Answer {
            let target = String(request.url.dropFirst("http://embedded".count))
            let headers = request.headers.fields.map { (name: $0.name.lowercased(), value: $0.value) }
            do {
                let answer = catalog.answer(
                    try CatalogRequest(method: request.method, target: target, headers: headers, body: request.body))
                if let errorNumber = fault.withLock({ $0 })?(request) {
                    return .failure(IOFailure(request.method, path: request.place, errorNumber: errorNumber, detail: "lost"))
                }
                return .success(HTTPResponse(status: answer.status, headers: ["Content-Type": answer.contentType], body: answer.body))
            } catch { return .failure(IOFailure(request.method, path: request.place, errorNumber: EINVAL, detail: "\(error)")) }
        }

        func client(credential: String = "root:secret") throws -> RESTCatalog {
            var options = try RESTCatalogOptions(
                properties: [
                    "uri": "http://embedded/api/catalog/", "warehouse": "dev", "credential": credential, "scope": "PRINCIPAL_ROLE:ALL",
                ])
            options.retries = RetryPolicy(triesMax: 30, first: .milliseconds(1), last: .milliseconds(2))
            return RESTCatalog(options, transport: ScriptedTransport { [self] in answer($0) }, environment: environment)
        }
    }

    init() throws { world = try World() }

    private let table = TableIdentifier(namespace: ["shop", "eu"], name: "orders")
    private static let schema = IcebergSchema([NestedField(1, "id", .long, isRequired: true), NestedField(2, "name", .string)])

    private func makeTable(_ client: RESTCatalog) throws {
        try client.create(namespace: ["shop"])
        try client.create(namespace: ["shop", "eu"], properties: ["a": "b"])
        _ = try client.create(table, schema: Self.schema, properties: ["made.by": "us"])
    }

    @Test func namesAreMadeFoundAndDropped() throws {
        let client = try world.client()
        try makeTable(client)
        #expect(try client.namespaces() == [["shop"]] && client.namespaces(under: ["shop"]) == [["shop", "eu"]])
        #expect(try client.exists(namespace: ["shop", "eu"]) && !client.exists(namespace: ["none"]))
        #expect(#expect(throws: IcebergError.self) { try client.create(namespace: ["shop"]) }?.isConflict == true)
        #expect(#expect(throws: IcebergError.self) { try client.create(table, schema: Self.schema) }?.isConflict == true)
        #expect(try client.load(table).metadata.properties["made.by"] == "us")
        let name = TableIdentifier(namespace: ["shop"], name: "ordérs % 2+3&x")
        try client.rename(table, to: name)
        #expect(try !client.exists(table) && client.exists(name) && client.tables(in: ["shop"]) == [name])
        #expect(#expect(throws: IcebergError.self) { try client.drop(namespace: ["shop"]) }?.isConflict == true)
        try client.drop(name)
        guard case .missing = #expect(throws: IcebergError.self, performing: { try client.load(name) }) else {
            Issue.record("the table is dropped")
            return
        }
    }

    @Test func aStagedTableIsThereByItsCommit() throws {
        let client = try world.client()
        try client.create(namespace: ["shop"])
        let name = TableIdentifier(namespace: ["shop"], name: "staged")
        let staged = try client.create(name, schema: Self.schema, isStaged: true).metadata
        #expect(try !client.exists(name))
        let updates: [TableUpdate] = [
            .assignUUID(staged.tableUUID), .upgradeFormatVersion(staged.formatVersion), .addSchema(staged.currentSchema),
            .setCurrentSchema(-1),
            .addPartitionSpec(staged.defaultPartitionSpec), .setDefaultSpec(-1), .addSortOrder(SortOrder()), .setDefaultSortOrder(-1),
            .setLocation(staged.location),
        ]
        _ = try client.commit(name, requirements: [.assertCreate], updates: updates)
        #expect(try client.load(name).metadata.tableUUID == staged.tableUUID)
        #expect(
            #expect(throws: IcebergError.self) { try client.commit(name, requirements: [.assertCreate], updates: updates) }?.isConflict
                == true)
    }

    @Test func aWrongSecretAndATokenOfOthersAreRefused() throws {
        guard
            case .io(let failure) = #expect(
                throws: IcebergError.self, performing: { try world.client(credential: "root:wrong").load(table) })
        else {
            Issue.record("a wrong secret is no missing table")
            return
        }
        #expect(failure.errorNumber == EACCES)
    }

    @Test func ofWritersInConflictNobodyLosesARow() throws {
        let (rows, snapshots, tally) = try appendByThree()
        #expect(tally.errors.isEmpty && rows == 5 * (10 + 11 + 12) && rows == tally.rows && snapshots == 15, "\(tally.errors)")
    }

    @Test func rowsAreThereOnceWhateverAnswersAreLost() throws {
        let seed = UInt64.random(in: 0 ... .max)
        let random = SeededSource(seed)
        world.lose { request in request.method == "POST" && request.url.hasSuffix("/orders") && random.below(3) == 0 ? ECONNRESET : nil }
        let (rows, snapshots, tally) = try appendByThree()
        // The lost answer may have been a refusal: then nobody can tell but by looking, and here nothing is under way any more.
        #expect(tally.errors.allSatisfy { ($0 as? IcebergError)?.isCommitUnknown == true }, "\(tally.errors), seed \(seed)")
        #expect(rows == tally.rows && snapshots == 15 - tally.errors.count, "seed \(seed)")
    }

    /// Five appends by each of three writers at once.
    /// - Returns: the rows and the snapshots that the table has in the end, and what the writers were told.
    private func appendByThree() throws -> (rows: Int, snapshots: Int, tally: Tally) {
        let client = try world.client()
        let tally = Tally()
        try makeTable(client)
        let threads = try (0..<3).map { writer in
            try PinnedThread {
                for append in 0..<5 {
                    do { tally.note(try self.append(rows: 10 + writer, first: writer * 100 + append), nil) } catch { tally.note(0, error) }
                }
            }
        }
        for thread in threads { thread.join() }
        world.lose(nil)
        let metadata = try client.load(table).metadata
        let found = IcebergTable(
            table, metadata: metadata, catalog: client, store: world.store, clock: world.environment.clock, random: world.environment.random
        )
        return (try ScanPlan(found).tasks.reduce(0) { $0 + Int($1.file.recordCount) }, metadata.snapshots.count, tally)
    }

    /// By a client of its own, which has to get a token while answers are lost.
    private func append(rows: Int, first: Int) throws -> Int {
        let client = try world.client()
        let environment = world.environment
        let metadata = try client.load(table).metadata
        let opened = IcebergTable(
            table, metadata: metadata, catalog: client, store: world.store, clock: environment.clock, random: environment.random)
        let inputs = metadata.currentSchema.fields.map { DataFileWriter.Input($0.id, $0.type.sqlType ?? .varchar) }
        let writer = try DataFileWriter(metadata, inputs, world.store, random: environment.random)
        let columns = inputs.map { Column($0.type, capacity: rows) }
        for row in 0..<rows {
            columns[0].append(.int(Int64(first + row)))
            columns[1].append(.null)
        }
        try writer.append(columns, count: rows)
        var settings = CommitSettings { _ in sched_yield() }
        settings.triesMax = 200
        _ = try SnapshotCommit.run(.append(try writer.finish()), on: opened, settings)
        return rows
    }

    private final class Tally: Sendable {
        private let state = Mutex((rows: 0, errors: [any Error]()))
        var rows: Int { state.withLock { $0.rows } }
        var errors: [any Error] { state.withLock { $0.errors } }
        func note(_ rows: Int, _ error: (any Error)?) {
            state.withLock { state in
                state.rows += rows
                if let error { state.errors.append(error) }
            }
        }
    }
}
