import MillBase
import MillIO
import MillIceberg
import MillObjectStore
import Synchronization
import Testing

@testable import MillLakeCatalog

/// A clock that a test sets.
final class TestClock: Clock {
    private let micros = Mutex(Int64(1_700_000_000_000_000))

    var nowMicros: Int64 { micros.withLock { $0 } }
    var monotonicNanos: UInt64 { UInt64(nowMicros) * 1000 }
    func sleep(for duration: Duration) async throws { advance(seconds: duration.components.seconds) }
    func advance(seconds: Int64) { micros.withLock { $0 += seconds * 1_000_000 } }
}

/// A catalog in memory, and a client of it that has a token.
final class CatalogWorld: Sendable {
    let store = MemoryObjectStore()
    let clock = TestClock()
    let catalog: LakeCatalog
    private let token = Mutex("")

    init(path: String? = nil, _ change: (inout LakeCatalogOptions) -> Void = { _ in }) throws {
        var options = LakeCatalogOptions(path: path, warehouseRoot: "file:///lake")
        change(&options)
        let environment = Environment(files: LocalFileSystem(), clock: clock, random: SystemRandomSource())
        let store = store
        catalog = try LakeCatalog(options, environment: environment) { _ in store }
        let credentials = options.credentials ?? .standard
        let first = try newToken(credentials.clientID, credentials.secret)
        token.withLock { $0 = first }
    }

    func newToken(_ id: String, _ secret: String) throws -> String { try #require(askForToken(id, secret).json["access_token"].string) }

    func askForToken(_ id: String, _ secret: String) throws -> Answer {
        try send(
            "POST", "/api/catalog/v1/oauth/tokens",
            form: "grant_type=client_credentials&client_id=\(id)&client_secret=\(secret)&scope=PRINCIPAL_ROLE:ALL")
    }

    struct Answer {
        var status: Int
        var json: JSONValue
        var errorType: String? { json["error"]["type"].string }
    }

    func send(
        _ method: String, _ path: String, _ body: JSONValue? = nil, headers: [(name: String, value: String)] = [], form: String? = nil
    ) throws -> Answer {
        var headers = headers
        let token = token.withLock { $0 }
        if !headers.contains(where: { $0.name == "authorization" }), !token.isEmpty { headers.append(("authorization", "Bearer " + token)) }
        let bytes = form.map { Array($0.utf8) } ?? body.map { Array($0.text.utf8) } ?? []
        let answer = catalog.answer(try CatalogRequest(method: method, target: path, headers: headers, body: bytes))
        return Answer(status: answer.status, json: answer.body.isEmpty ? .null : try JSONValue(answer.body))
    }

    /// To the default warehouse.
    @discardableResult func call(_ method: String, _ path: String, _ body: JSONValue? = nil) throws -> Answer {
        try send(method, "/api/catalog/v1/dev/" + path, body)
    }

    // MARK: Shapes

    static let schema: JSONValue = [
        "type": "struct", "schema-id": 0,
        "fields": [
            ["id": 0, "name": "id", "required": true, "type": "long"], ["id": 1, "name": "at", "required": false, "type": "timestamptz"],
            [
                "id": 2, "name": "tags", "required": false,
                "type": ["type": "list", "element-id": 3, "element-required": false, "element": "string"],
            ],
        ],
    ]

    func makeNamespace(_ levels: String...) throws {
        let answer = try call("POST", "namespaces", ["namespace": .array(levels.map { .string($0) })])
        #expect(answer.status == 200)
    }

    @discardableResult func makeTable(_ name: String, in namespace: String = "shop", properties: [String: String] = [:]) throws -> JSONValue
    {
        let answer = try call(
            "POST", "namespaces/\(namespace)/tables", ["name": .string(name), "schema": Self.schema, "properties": JSONValue(properties)])
        #expect(answer.status == 200, "\(answer.json.text)")
        return answer.json
    }

    /// Adds an empty snapshot if the table is still at `parent`.
    func append(_ name: String, in namespace: String = "shop", id: Int64, after parent: Int64?, sequence: Int64) throws -> Answer {
        let snapshot: JSONValue = [
            "snapshot-id": .int(id), "sequence-number": .int(sequence), "timestamp-ms": .int(clock.nowMicros / 1000),
            "manifest-list": "file:///lake/dev/shop/list.avro", "summary": ["operation": "append"], "schema-id": 0,
        ]
        return try call(
            "POST", "namespaces/\(namespace)/tables/\(name)",
            [
                "requirements": [["type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": parent.map { .int($0) } ?? .null]],
                "updates": [
                    ["action": "add-snapshot", "snapshot": snapshot.with("parent-snapshot-id", parent.map { .int($0) })],
                    ["action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": .int(id)],
                ],
            ])
    }
}
