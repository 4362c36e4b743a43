import MillHTTPClient
import MillIO
import MillTestKit
import Synchronization
import Testing

@testable import MillObjectStore

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

@Suite struct S3ObjectStoreTests {
    private let fake = FakeS3()
    private let clock = VirtualClock()
    private var environment: Environment { Environment(files: MemoryFileSystem(), clock: clock, random: SeededSource(5)) }
    private static let keys = S3Credentials(accessKeyID: "id", secretAccessKey: "secret")

    private func options(_ credentials: any S3CredentialSource = FixedCredentials(keys)) -> S3Options {
        S3Options(endpoint: "http://fake:9000", credentials: credentials)
    }

    private func store(_ transport: (any HTTPTransport)? = nil, _ options: S3Options? = nil) throws -> S3ObjectStore {
        try S3ObjectStore(options ?? self.options(), transport: transport ?? fake.transport, environment: environment)
    }

    private func refusal(_ status: Int, _ code: String, _ headers: HTTPHeaders = [:]) -> ScriptedTransport.Answer {
        .success(
            HTTPResponse(
                status: status, headers: headers, body: Array("<Error><Code>\(code)</Code><Message>said so</Message></Error>".utf8)))
    }

    private func lost(_ errorNumber: Int32 = ECONNRESET) -> ScriptedTransport.Answer {
        .failure(IOFailure("PUT", path: "http://fake", errorNumber: errorNumber))
    }

    /// The failure of an operation against a server that gives one answer.
    private func failure(_ answer: ScriptedTransport.Answer, _ body: (S3ObjectStore) throws -> Void) throws -> IOFailure? {
        let store = try store(ScriptedTransport { _ in answer })
        return #expect(throws: IOFailure.self) { try body(store) }
    }

    // MARK: Failures

    @Test func whatTheStoreSaysIsSaidOn() throws {
        let cases: [(ScriptedTransport.Answer, Int32, String)] = [
            (refusal(403, "AccessDenied"), EACCES, "AccessDenied: said so"),
            (refusal(403, "SignatureDoesNotMatch"), EACCES, "the secret key"),
            (refusal(404, "NoSuchBucket"), ENOENT, "made first"),
            (refusal(400, "ExpiredToken"), EACCES, "run out"),
            (refusal(400, "AuthorizationHeaderMalformed", ["x-amz-bucket-region": "eu-west-1"]), EINVAL, "region \"eu-west-1\""),
            (.success(HTTPResponse(status: 301, headers: ["x-amz-bucket-region": "eu-west-1"])), EINVAL, "region \"eu-west-1\""),
            (refusal(503, "SlowDown"), EIO, "SlowDown"),
            (refusal(507, "XMinioStorageFull"), ENOSPC, "XMinioStorageFull"),
            (.success(HTTPResponse(status: 500, body: Array("<html>a proxy's page</html>".utf8))), EIO, "500"),
            (.success(HTTPResponse(status: 400, body: Array("plain words".utf8))), EINVAL, "plain words"),
            (lost(ETIMEDOUT), ETIMEDOUT, "http://fake"), (lost(ECONNREFUSED), EIO, "http://fake"),
        ]
        for (answer, errorNumber, words) in cases {
            let failure = try failure(answer) { try $0.put("s3://bucket/key", [1], .always) }
            #expect(failure?.errorNumber == errorNumber && failure?.detail?.contains(words) == true, "\(String(describing: failure))")
            #expect(failure?.path == "s3://bucket/key")
        }
    }

    @Test func aClockThatIsWrongIsNamed() throws {
        clock.advance(by: .seconds(1000))
        let headers: HTTPHeaders = ["Date": "Tue, 14 Nov 2023 22:13:21 GMT"]
        let failure = try failure(refusal(403, "RequestTimeTooSkewed", headers)) { _ = try $0.get("s3://bucket/key") }
        #expect(failure?.detail?.contains("1000 seconds ahead") == true, "\(String(describing: failure))")
    }

    @Test func keysThatRanOutAreAskedForAnew() throws {
        let lent = LentKeys()
        let transport = ScriptedTransport { request in
            request.headers["x-amz-security-token"] == "token 2"
                ? .success(HTTPResponse(status: 200, body: [7]))
                : .success(HTTPResponse(status: 400, body: Array("<Error><Code>ExpiredToken</Code></Error>".utf8)))
        }
        let store = try store(transport, options(lent))
        #expect(try store.get("s3://bucket/key") == [7])
        #expect(transport.requests.count == 2)
    }

    private final class LentKeys: S3CredentialSource {
        private let number = Atomic(1)
        func credentials() -> S3Credentials? {
            S3Credentials(accessKeyID: "id", secretAccessKey: "secret", sessionToken: "token \(number.load(ordering: .relaxed))")
        }
        func refused(_ credentials: S3Credentials) { number.add(1, ordering: .relaxed) }
    }

    // MARK: Puts

    @Test func aLostAnswerToAConditionalPutIsNoConflict() throws {
        fake.fail(after: [lost()])
        try store().put("s3://bucket/v1", [1, 2, 3], .isMissing)
        #expect(fake.keys == ["v1"])
        // Somebody else's object is one, however the tries went.
        fake.fail(before: [lost()])
        #expect(#expect(throws: IOFailure.self) { try store().put("s3://bucket/v1", [9], .isMissing) }?.errorNumber == EEXIST)
        #expect(try store().get("s3://bucket/v1") == [1, 2, 3])
    }

    @Test func aStoreThatIgnoresConditionsIsFoundOut() throws {
        #expect(try store().enforcesConditions(under: "s3://bucket/lake/"))
        fake.settings.honoursConditions = false
        #expect(try store().enforcesConditions(under: "s3://bucket/lake/") == false)
        #expect(fake.keys.isEmpty)
    }

    @Test func publicBucketsAreAskedWithoutASignature() throws {
        let transport = ScriptedTransport { _ in .success(HTTPResponse(status: 200, body: [1])) }
        _ = try store(transport, options(FixedCredentials(nil))).get("s3://bucket/key")
        #expect(transport.requests[0].headers["Authorization"] == nil)
    }

    // MARK: Reading

    @Test func anObjectThatWasReplacedIsNotMixedWithTheOther() throws {
        fake.set("f", [UInt8](repeating: 1, count: 1000))
        let file = try store().openForReading("s3://bucket/f")
        fake.set("f", [UInt8](repeating: 2, count: 1000))
        var buffer = [UInt8](repeating: 0, count: 10)
        let failure = #expect(throws: IOFailure.self) { try buffer.withUnsafeMutableBytes { _ = try file.read(at: 0, into: $0) } }
        #expect(failure?.errorNumber == ESTALE)
    }

    @Test func aStoreWithoutRangesIsNotBelieved() throws {
        let transport = ScriptedTransport { request in
            .success(
                HTTPResponse(
                    status: 200, headers: ["Content-Length": "100"], body: request.method == "HEAD" ? [] : [UInt8](repeating: 1, count: 10))
            )
        }
        let file = try store(transport).openForReading("s3://bucket/f")
        var buffer = [UInt8](repeating: 0, count: 10)
        #expect(throws: IOFailure.self) { try buffer.withUnsafeMutableBytes { _ = try file.read(at: 50, into: $0) } }
    }

    // MARK: Listings and removal

    @Test func allPagesAreListed() throws {
        fake.settings.pageSize = 7
        for number in 0..<50 { fake.set("p/\(number) +%", [1]) }
        #expect(try store().list("s3://bucket/p/").count == 50)
        #expect(try store().list("s3://bucket/p/49").map(\.location) == ["s3://bucket/p/49 +%"])
        #expect(try store().list("s3a://bucket").count == 50)
    }

    @Test func listingsThatDoNotEndAreAnError() throws {
        let page = "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken></ListBucketResult>"
        for text in [
            page, "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>", "<Other/>", "no XML",
            "<ListBucketResult><Contents/></ListBucketResult>",
        ] {
            let failure = try failure(.success(HTTPResponse(status: 200, body: Array(text.utf8)))) { _ = try $0.list("s3://bucket/p") }
            #expect(failure?.errorNumber == EIO, "\(text)")
        }
    }

    @Test func manyAreRemovedByFewRequestsAndWhatCannotBeIsSaid() throws {
        for number in 0..<2500 { fake.set("p/\(number)", [1]) }
        fake.set("p/locked", [1])
        let transport = fake.transport
        let locations = fake.keys.map { "s3://bucket/\($0)" }
        let failure = try #require(#expect(throws: IOFailure.self) { try store(transport).remove(locations + ["s3://bucket/odd\u{1}"]) })
        #expect(failure.errorNumber == EACCES && failure.path == "s3://bucket/p/locked")
        #expect(transport.requests.count == 4)
        #expect(fake.keys == ["p/locked"])
    }

    @Test func aStoreWithoutBatchesRemovesOneByOne() throws {
        fake.settings.knowsBatchDelete = false
        for number in 0..<5 { fake.set("\(number)", [1]) }
        try store().remove((0..<5).map { "s3://bucket/\($0)" })
        #expect(fake.keys.isEmpty)
    }

    // MARK: Locations and options

    @Test func bucketsStandInThePathOrTheHost() throws {
        let url = { (endpoint: String?, region: String, isPathStyle: Bool?, bucket: String) in
            let options = S3Options(endpoint: endpoint, region: region, isPathStyle: isPathStyle, credentials: FixedCredentials(nil))
            return try S3Endpoint(options).url(bucket, "a b/c", query: "x=1")
        }
        #expect(try url(nil, "eu-west-1", nil, "lake") == "https://lake.s3.eu-west-1.amazonaws.com/a%20b/c?x=1")
        #expect(try url(nil, "eu-west-1", nil, "my.lake") == "https://s3.eu-west-1.amazonaws.com/my.lake/a%20b/c?x=1")
        #expect(try url("http://127.0.0.1:9000/", "r", nil, "lake") == "http://127.0.0.1:9000/lake/a%20b/c?x=1")
        #expect(try url("http://host:80", "r", false, "lake") == "http://lake.host/a%20b/c?x=1")
        #expect(try url("minio:9000", "r", true, "lake") == "https://minio:9000/lake/a%20b/c?x=1")
        for bad in ["ftp://host", "http://", "http://host/path", "http://me@host", "http://ho st"] {
            #expect(throws: IOFailure.self, "\(bad)") { try url(bad, "r", true, "lake") }
        }
    }

    @Test func locationsAreCheckedBeforeAnythingIsSent() throws {
        let transport = ScriptedTransport([])
        for location in [
            "s3://", "s3://b", "s3://bucket", "s3://bucket/", "s3://buc ket/x", "s3://bucket/" + String(repeating: "k", count: 1025),
            "http://x/y", "/x",
        ] {
            #expect(throws: IOFailure.self, "\(location)") { try store(transport).put(location, [1], .always) }
        }
        #expect(transport.requests.isEmpty)
    }

    @Test func optionsGoByEitherName() throws {
        let iceberg = [
            "s3.endpoint": "http://h:1", "client.region": "r", "s3.access-key-id": "i", "s3.secret-access-key": "s",
            "s3.session-token": "t",
        ]
        let risingWave = [
            "s3.endpoint": "http://h:1", "s3.region": "r", "s3.access.key": "i", "s3.secret.key": "s", "s3.path.style.access": "true",
        ]
        for (properties, token) in [(iceberg, "t" as String?), (risingWave, nil)] {
            let options = try S3Options(properties: properties, environment: .system)
            #expect(options.endpoint == "http://h:1" && options.region == "r" && options.isPathStyle)
            #expect(try options.credentials.credentials() == S3Credentials(accessKeyID: "i", secretAccessKey: "s", sessionToken: token))
        }
        #expect(throws: IOFailure.self) { try S3Options(properties: ["s3.access-key-id": "i"], environment: .system) }
        #expect(throws: IOFailure.self) { try S3Options(properties: ["s3.path-style-access": "maybe"], environment: .system) }
        #expect(try S3Options(properties: ["s3.anonymous": "true"], environment: .system).credentials.credentials() == nil)
    }

    @Test func schemesChooseTheStore() throws {
        let stores = ObjectStores(local: LocalObjectStore(environment: environment, root: "/lake"), s3: try store())
        for location in ["file:///lake/x", "s3://bucket/x"] {
            try stores.put(location, Array(location.utf8), .always)
            #expect(try stores.get(location) == Array(location.utf8))
        }
        try stores.remove(["file:///lake/x", "s3://bucket/x"])
        #expect(try stores.list("s3://bucket/").isEmpty && stores.list("file:///lake").isEmpty)
        #expect(throws: IOFailure.self) { try stores.get("gs://bucket/x") }
    }

    @Test func optionsThatMakeNoStoreAreSaidWhenItIsUsed() throws {
        let stores = ObjectStores(
            environment: environment, transport: fake.transport, properties: ["s3.access-key-id": "alone"], root: "/lake")
        try stores.put("/lake/x", [1], .always)
        #expect(try stores.get("/lake/x") == [1])
        let failure = #expect(throws: IOFailure.self) { try stores.list("s3://bucket/") }
        #expect(failure?.errorNumber == EINVAL && failure?.path == "s3://bucket/" && failure?.detail?.contains("together") == true)
    }

    @Test func presignedURLsHoldForAWhileOnly() throws {
        let url = try store().presigned("GET", "s3://bucket/a b", seconds: 60)
        #expect(url.hasPrefix("http://fake:9000/bucket/a%20b?") && url.contains("X-Amz-Expires=60&"))
        for seconds in [0, -1, 604_801] {
            #expect(throws: IOFailure.self) { try store().presigned("GET", "s3://bucket/a", seconds: seconds) }
        }
    }
}
