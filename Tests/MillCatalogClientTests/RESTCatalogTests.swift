import MillHTTPClient
import MillIceberg
import MillIO
import MillTestKit
import Testing

@testable import MillCatalogClient

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

@Suite struct RESTCatalogTests {
    private let clock = VirtualClock()
    private let table = TableIdentifier(namespace: ["a b", "c"], name: "t/1")
    private static let tablePath = "http://c/v1/p/namespaces/a%20b%1Fc/tables/t%2F1"

    private var environment: Environment { Environment(files: MemoryFileSystem(), clock: clock, random: SeededSource(2)) }

    private func catalog(_ transport: ScriptedTransport, _ properties: [String: String] = [:]) throws -> RESTCatalog {
        let properties = ["uri": "http://c/", "warehouse": "w&x"].merging(properties) { $1 }
        return RESTCatalog(try RESTCatalogOptions(properties: properties), transport: transport, environment: environment)
    }

    /// A catalog that has been asked for its configuration, and answers as a script says from then on.
    private func opened(_ answers: [ScriptedTransport.Answer]) throws -> (RESTCatalog, ScriptedTransport) {
        let transport = ScriptedTransport([FakeCatalog.answer(200, ["overrides": ["prefix": "p"]])] + answers)
        return (try catalog(transport), transport)
    }

    private func urls(_ transport: ScriptedTransport) -> [String] { transport.requests.map { "\($0.method) \($0.url)" } }

    // MARK: Addresses

    @Test func theCatalogSaysWhereItsTablesAre() throws {
        let (catalog, transport) = try opened([FakeCatalog.answer(200, FakeCatalog.loaded()), FakeCatalog.answer(204)])
        let loaded = try catalog.load(table)
        #expect(loaded.metadata == FakeCatalog.metadata() && loaded.metadataLocation == "s3://bucket/t/metadata/1.json")
        #expect(try catalog.exists(table))
        #expect(urls(transport) == ["GET http://c/v1/config?warehouse=w%26x", "GET \(Self.tablePath)", "HEAD \(Self.tablePath)"])
        #expect(transport.requests[1].headers["X-Iceberg-Access-Delegation"] == "vended-credentials")
    }

    @Test func aPrefixIsTakenAsTheCatalogWroteIt() throws {
        let transport = ScriptedTransport([FakeCatalog.answer(200, ["overrides": ["prefix": "ws/a%3Ab c"]]), FakeCatalog.answer(404)])
        #expect(try catalog(transport).exists(namespace: ["n"]) == false)
        #expect(transport.requests[1].url == "http://c/v1/ws/a%3Ab%20c/namespaces/n")
    }

    @Test func withoutAPrefixThereIsNone() throws {
        let transport = ScriptedTransport([FakeCatalog.answer(200), FakeCatalog.answer(404)])
        #expect(try catalog(transport, ["uri": "http://c/api/catalog"]).exists(table) == false)
        #expect(transport.requests[1].url == "http://c/api/catalog/v1/namespaces/a%20b%1Fc/tables/t%2F1")
    }

    @Test func optionsGoByEitherName() throws {
        let iceberg = try RESTCatalogOptions(properties: [
            "uri": "http://c", "warehouse": "w", "credential": "i:s", "scope": "x", "header.Polaris-Realm": "r",
        ])
        let risingWave = try RESTCatalogOptions(
            properties: [
                "catalog.uri": "http://c", "warehouse.path": "w", "catalog.credential": "i:s", "catalog.scope": "x",
                "catalog.header": "Polaris-Realm=r",
            ])
        for options in [iceberg, risingWave] {
            #expect(options.uri == "http://c" && options.warehouse == "w" && options.credential == "i:s" && options.scope == "x")
            #expect(options.headers["polaris-realm"] == "r")
        }
        for bad in [[:], ["uri": "c"], ["uri": "http://c", "catalog.header": "x"]] {
            #expect(throws: IOFailure.self) { try RESTCatalogOptions(properties: bad) }
        }
    }

    // MARK: Tokens

    @Test func aTokenIsAskedForOnceAndRenewedInTime() throws {
        let transport = ScriptedTransport { request in
            guard request.url.hasSuffix("/tokens") else { return FakeCatalog.answer(request.method == "GET" ? 200 : 204) }
            return FakeCatalog.answer(200, ["access_token": "t", "expires_in": 3600])
        }
        let catalog = try catalog(transport, ["credential": "id:se:cret&", "scope": "PRINCIPAL_ROLE:ALL", "header.Polaris-Realm": "r"])
        for _ in 0..<3 { _ = try catalog.exists(table) }
        let asked = { transport.requests.filter { $0.url == "http://c/v1/oauth/tokens" } }
        #expect(asked().count == 1)
        #expect(
            String(decoding: asked()[0].body, as: UTF8.self)
                == "grant_type=client_credentials&client_id=id&client_secret=se%3Acret%26&scope=PRINCIPAL_ROLE%3AALL")
        #expect(asked()[0].headers["Polaris-Realm"] == "r" && asked()[0].headers["Authorization"] == nil)
        #expect(transport.requests.last?.headers["Authorization"] == "Bearer t")
        clock.advance(by: .seconds(3541))
        _ = try catalog.exists(table)
        #expect(asked().count == 2)
    }

    @Test(arguments: [401, 419]) func aTokenThatIsRefusedIsRenewedOnce(_ status: Int) throws {
        let transport = ScriptedTransport([
            FakeCatalog.answer(200, ["access_token": "1"]), FakeCatalog.answer(200), FakeCatalog.refusal(status, "Unauthorized"),
            FakeCatalog.answer(200, ["access_token": "2"]), FakeCatalog.answer(204), FakeCatalog.refusal(401, "Unauthorized"),
            FakeCatalog.answer(200, ["access_token": "3"]), FakeCatalog.refusal(401, "Unauthorized"),
        ])
        let catalog = try catalog(transport, ["credential": "i:s"])
        #expect(try catalog.exists(table))
        #expect(transport.requests.last?.headers["Authorization"] == "Bearer 2")
        guard case .io(let failure) = #expect(throws: IcebergError.self, performing: { try catalog.exists(table) }) else {
            Issue.record("a refused token is no answer")
            return
        }
        #expect(failure.errorNumber == EACCES)
    }

    @Test func aWrongSecretIsSaid() throws {
        let transport = ScriptedTransport([FakeCatalog.answer(401, ["error": "invalid_client", "error_description": "no such client"])])
        guard
            case .io(let failure) = #expect(
                throws: IcebergError.self, performing: { try catalog(transport, ["credential": "i:s"]).load(table) })
        else {
            Issue.record("no failure")
            return
        }
        #expect(failure.errorNumber == EACCES && failure.detail?.hasPrefix("invalid_client: no such client") == true)
        #expect(!"\(failure)".contains("i:s"))
    }

    // MARK: Commits

    @Test func aCommitSaysWhatItWantsAndGetsTheTable() throws {
        let (catalog, transport) = try opened([FakeCatalog.answer(200, FakeCatalog.loaded())])
        let loaded = try catalog.commit(
            table, requirements: [.assertRefSnapshotID(ref: "main", snapshotID: nil)],
            updates: [.removeSnapshots([4_611_686_018_427_387_905])])
        #expect(loaded.metadata == FakeCatalog.metadata())
        let body = try JSONValue(transport.requests[1].body)
        #expect(body["identifier"]["namespace"].array == ["a b", "c"])
        #expect(body["updates"].array?[0]["snapshot-ids"].array == [.int(4_611_686_018_427_387_905)])
        #expect(String(decoding: transport.requests[1].body, as: UTF8.self).contains("\"snapshot-id\":null"))
    }

    @Test func outcomesOfCommitsAreToldApart() throws {
        enum Outcome { case conflict, unknown, missing, failed }
        let cases: [([ScriptedTransport.Answer], Outcome)] = [
            ([FakeCatalog.refusal(409, "CommitFailedException")], .conflict),
            ([FakeCatalog.refusal(500, "CommitStateUnknownException")], .unknown),
            ([FakeCatalog.answer(502)], .unknown), ([FakeCatalog.answer(504)], .unknown), ([FakeCatalog.answer(524)], .unknown),
            ([FakeCatalog.lost(ECONNRESET)], .unknown), ([FakeCatalog.lost(ETIMEDOUT)], .unknown),
            // The catalog may have had it before what came back could not be taken.
            ([FakeCatalog.lost(EPROTO)], .unknown), ([FakeCatalog.lost(EFBIG)], .unknown),
            // A proxy that lost the catalog in the middle says 503 without the catalog's words: it is not sent a second time.
            ([FakeCatalog.answer(503)], .unknown),
            ([FakeCatalog.refusal(507, "ServiceFailureException")], .failed), ([FakeCatalog.lost(EINVAL)], .failed),
            // What was not sent is sent again, and what was not taken as well.
            ([FakeCatalog.lost(ECONNREFUSED), FakeCatalog.refusal(409, "CommitFailedException")], .conflict),
            // After "not now" somebody may have thought otherwise.
            ([FakeCatalog.refusal(503, "ServiceUnavailableException"), FakeCatalog.refusal(409, "CommitFailedException")], .unknown),
            ([FakeCatalog.answer(200, ["unreadable": true])], .unknown),
            ([FakeCatalog.refusal(404, "NoSuchTableException")], .missing), ([FakeCatalog.refusal(400, "BadRequestException")], .failed),
            ([FakeCatalog.refusal(403, "ForbiddenException")], .failed),
        ]
        for (answers, wanted) in cases {
            let (catalog, transport) = try opened(answers)
            let error = #expect(throws: IcebergError.self) { try catalog.commit(table, requirements: [], updates: []) }
            let outcome: Outcome =
                switch error {
                case .commitConflict: .conflict
                case .commitUnknown: .unknown
                case .missing: .missing
                default: .failed
                }
            #expect(outcome == wanted, "\(answers): \(String(describing: error))")
            #expect(transport.requests.count == answers.count + 1, "\(answers)")
        }
    }

    // MARK: Other requests

    @Test func listsHaveAllPages() throws {
        let page = { (names: [String], next: JSONValue) in
            FakeCatalog.answer(
                200, ["identifiers": .array(names.map { ["namespace": ["a"], "name": .string($0)] }), "next-page-token": next])
        }
        let (catalog, transport) = try opened([page(["1", "2"], "x y"), page(["3"], .null)])
        #expect(try catalog.tables(in: ["a"]).map(\.name) == ["1", "2", "3"])
        #expect(transport.requests[2].url.contains("pageToken=x%20y"))
        let (endless, _) = try opened([page(["1"], "x"), page(["1"], "x")])
        #expect(throws: IcebergError.self) { try endless.tables(in: ["a"]) }
    }

    @Test func namespacesAreFoundAtAnyDepth() throws {
        let page = { @Sendable (names: [[String]]) in
            FakeCatalog.answer(200, ["namespaces": .array(names.map { .array($0.map { .string($0) }) })])
        }
        let (catalog, _) = try opened([page([["a"], ["b"]]), page([]), page([["a", "x"]]), page([])])
        #expect(try catalog.allNamespaces() == [["b"], ["a"], ["a", "x"]])
        // Answers that would be asked about for ever.
        let (circle, asked) = try opened([page([["a"]])] + Array(repeating: page([["a"]]), count: 200))
        #expect(throws: IcebergError.self) { try circle.allNamespaces() }
        #expect(asked.requests.count == 3)
        let deep = ScriptedTransport { request in
            guard !request.url.contains("/config") else { return FakeCatalog.answer(200) }
            let parent = request.url.split(separator: "parent=").dropFirst().first?.split(separator: "&").first ?? ""
            let levels = parent.isEmpty ? [] : parent.split(separator: "%1F").map(String.init)
            return page([levels + ["a"]])
        }
        #expect(throws: IcebergError.self) { try self.catalog(deep).allNamespaces() }
    }

    @Test func whatIsThereAlreadyIsAConflict() throws {
        let (catalog, transport) = try opened([
            FakeCatalog.refusal(409, "AlreadyExistsException"), FakeCatalog.refusal(404, "NoSuchNamespaceException"),
        ])
        let there = #expect(throws: IcebergError.self) { try catalog.create(table, schema: IcebergSchema([]), isStaged: true) }
        #expect(there?.isConflict == true)
        let body = try JSONValue(transport.requests[1].body)
        #expect(body["stage-create"] == true && body["location"] == .null && body["partition-spec"] == .null)
        guard case .missing = #expect(throws: IcebergError.self, performing: { try catalog.create(table, schema: IcebergSchema([])) })
        else {
            Issue.record("a missing namespace is named")
            return
        }
    }

    @Test func answersThatAreNoneAreErrors() throws {
        for body in ["", "<html>", "{", "{\"metadata\":{}}", "{\"metadata\":3}", "[]"] {
            let (catalog, _) = try opened([.success(HTTPResponse(status: 200, body: Array(body.utf8)))])
            guard case .malformed = #expect(throws: IcebergError.self, performing: { try catalog.load(table) }) else {
                Issue.record("\(body)")
                return
            }
        }
    }
}
