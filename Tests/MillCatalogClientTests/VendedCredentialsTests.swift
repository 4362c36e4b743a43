import MillHTTPClient
import MillIceberg
import MillIO
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

@Suite struct VendedCredentialsTests {
    private let clock = VirtualClock()
    private let table = TableIdentifier(namespace: ["a"], name: "t")
    private var environment: Environment { Environment(files: MemoryFileSystem(), clock: clock, random: SeededSource(2)) }

    /// What a catalog lends the nth time, until a moment.
    private static func lent(_ number: Int, until millis: Int64) -> [String: String] {
        [
            "s3.access-key-id": "id\(number)", "s3.secret-access-key": "s", "s3.session-token": "token\(number)",
            "s3.endpoint": "http://lent:1",
            "client.region": "eu", "s3.session-token-expires-at-ms": "\(millis)",
        ]
    }

    @Test func keysAreRenewedBeforeTheyRunOut() throws {
        let now = clock.nowMicros / 1000
        let asked = Winners()
        let source = VendedCredentials(Self.lent(1, until: now + 3_600_000), clock: clock) { () throws(IcebergError) in
            Self.lent(1 + asked.next(), until: now + 7_200_000)
        }
        #expect(try source.credentials()?.sessionToken == "token1")
        clock.advance(by: .seconds(3400))
        #expect(try source.credentials()?.sessionToken == "token2")
        #expect(try source.credentials()?.sessionToken == "token2")
        let keys = try #require(try source.credentials())
        source.refused(keys)
        #expect(try source.credentials()?.sessionToken == "token3")
        // What was refused is another key's business by now.
        source.refused(keys)
        #expect(try source.credentials()?.sessionToken == "token3")
    }

    private final class Winners: Sendable {
        private let count = Mutex(0)
        func next() -> Int {
            count.withLock { count in
                count += 1
                return count
            }
        }
    }

    @Test func whileTheCatalogIsAwayOldKeysServeAsLongAsTheyHold() throws {
        let source = VendedCredentials(Self.lent(1, until: clock.nowMicros / 1000 + 600_000), clock: clock) { () throws(IcebergError) in
            throw .io(IOFailure("load", path: "t", errorNumber: EIO))
        }
        clock.advance(by: .seconds(400))
        #expect(try source.credentials()?.sessionToken == "token1")
        clock.advance(by: .seconds(300))
        #expect(throws: IOFailure.self) { try source.credentials() }
    }

    @Test func theLongestPrefixLends() {
        let list: JSONValue = [
            ["prefix": "s3://bucket", "config": ["s3.access-key-id": "wide"]],
            ["prefix": "s3://bucket/t", "config": ["s3.access-key-id": "narrow"]],
            ["prefix": "s3://other", "config": ["s3.access-key-id": "other"]],
        ]
        #expect(VendedCredentials.config(list, for: "s3://bucket/t/x")["s3.access-key-id"] == "narrow")
        #expect(VendedCredentials.config(list, for: "s3://bucket/u")["s3.access-key-id"] == "wide")
        #expect(VendedCredentials.config(.null, for: "s3://bucket/u").isEmpty)
    }

    @Test func aTablesStoreSignsWithWhatTheCatalogLends() throws {
        let config = Self.lent(1, until: clock.nowMicros / 1000 + 3_600_000)
        let transport = ScriptedTransport { request in
            if request.url.contains("/v1/config") { return FakeCatalog.answer(200) }
            if request.url.contains("/tables/") { return FakeCatalog.answer(200, FakeCatalog.loaded(config: JSONValue(config))) }
            return .success(HTTPResponse(status: 200, body: [7]))
        }
        let options = try RESTCatalogOptions(properties: ["uri": "http://c", "s3.endpoint": "http://mine:1", "s3.region": "here"])
        let catalog = RESTCatalog(options, transport: transport, environment: environment)
        let store = try catalog.store(for: table, catalog.load(table))
        #expect(try store.get("s3://bucket/t/x") == [7])
        let request = try #require(transport.requests.last)
        #expect(request.url == "http://lent:1/bucket/t/x" && request.headers["x-amz-security-token"] == "token1")
        #expect(
            request.headers["Authorization"]?.contains("Credential=id1/") == true
                && request.headers["Authorization"]?.contains("/eu/s3/") == true)
    }

    @Test func theUsersOwnKeysServeWhereNoneAreLent() throws {
        let transport = ScriptedTransport { request in
            if request.url.contains("/v1/config") { return FakeCatalog.answer(200) }
            return request.url.contains("/tables/")
                ? FakeCatalog.answer(200, FakeCatalog.loaded()) : .success(HTTPResponse(status: 200, body: [7]))
        }
        let options = try RESTCatalogOptions(
            properties: [
                "uri": "http://c", "s3.endpoint": "http://mine:1", "s3.access.key": "me", "s3.secret.key": "s", "s3.region": "here",
            ])
        let catalog = RESTCatalog(options, transport: transport, environment: environment)
        _ = try catalog.store(for: table, catalog.load(table)).get("s3://bucket/t/x")
        #expect(transport.requests.last?.headers["Authorization"]?.contains("Credential=me/") == true)
        #expect(transport.requests[1].headers["X-Iceberg-Access-Delegation"] == nil)
    }

    @Test func aCatalogThatWouldSignItselfIsNotSupported() throws {
        let transport = ScriptedTransport { request in
            let config: JSONValue = ["s3.remote-signing-enabled": "true"]
            return FakeCatalog.answer(200, request.url.contains("/tables/") ? FakeCatalog.loaded(config: config) : [:])
        }
        let catalog = RESTCatalog(try RESTCatalogOptions(properties: ["uri": "http://c"]), transport: transport, environment: environment)
        guard case .unsupported = #expect(throws: IcebergError.self, performing: { try catalog.store(for: table, catalog.load(table)) })
        else {
            Issue.record("it is not refused")
            return
        }
    }

    @Test func aCatalogElsewhereHasNoSayInFilesHere() throws {
        let transport = ScriptedTransport { request in
            FakeCatalog.answer(200, request.url.contains("/tables/") ? FakeCatalog.loaded("file:///etc") : [:])
        }
        let catalog = RESTCatalog(try RESTCatalogOptions(properties: ["uri": "http://c"]), transport: transport, environment: environment)
        let store = try catalog.store(for: table, catalog.load(table))
        #expect(throws: IOFailure.self) { try store.get("file:///etc/hostname") }
    }
}
