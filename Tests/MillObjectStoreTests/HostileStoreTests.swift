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

/// A store that answers whatever comes to it: every operation ends with an answer or an error.
@Suite struct HostileStoreTests {
    private static let bodies = [
        "", "<", "<Error/>", "<Error><Code>SlowDown</Code></Error>", "<Error><Code>ExpiredToken</Code></Error>", "<ListBucketResult/>",
        "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>a</NextContinuationToken></ListBucketResult>",
        "<ListBucketResult><Contents><Key>%</Key><Size>-1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>%zz%4</Key><Size>9223372036854775807</Size></Contents></ListBucketResult>",
        "<R><UploadId>u</UploadId></R>", "<R><UploadId></UploadId></R>", "<CompleteMultipartUploadResult/>", "<DeleteResult/>",
        "<DeleteResult><Error/></DeleteResult>", "<!DOCTYPE x><x/>", "plain words", "{\"error\": 1}", "\u{0}\u{1}\u{FFFD}",
    ]
    private static let headers: [HTTPHeaders] = [
        [:], ["ETag": ""], ["ETag": "\"x\"", "Content-Length": "-5"], ["ETag": "W/\"y\"", "Content-Length": "99999999999999999999"],
        ["Content-Length": "10", "ETag": "\"z\"", "Last-Modified": "yesterday"], ["Content-Range": "bytes 0-9/10", "Content-Length": "10"],
        ["Content-Range": "bytes x"], ["Retry-After": "-1"], ["Retry-After": "99999999999999"], ["x-amz-bucket-region": "elsewhere", "Date": "never"],
    ]

    @Test func everyOperationEnds() throws {
        let seed = UInt64.random(in: 0 ... .max)
        let random = SeededSource(seed)
        let transport = ScriptedTransport { request in
            if random.below(10) == 0 { return .failure(IOFailure(request.method, path: request.place, errorNumber: ECONNRESET)) }
            let status = [200, 200, 200, 204, 206, 301, 400, 403, 404, 409, 412, 416, 500, 503, 999, 0][random.below(16)]
            var response = HTTPResponse(
                status: status, headers: Self.headers[random.below(Self.headers.count)], body: Array(Self.bodies[random.below(Self.bodies.count)].utf8))
            if request.method == "HEAD" { response.body = [] }
            return .success(response)
        }
        var options = S3Options(endpoint: "http://h:1", credentials: FixedCredentials(S3Credentials(accessKeyID: "a", secretAccessKey: "b")))
        options.retries = RetryPolicy(triesMax: 3)
        let environment = Environment(files: MemoryFileSystem(), clock: VirtualClock(), random: random)
        let store = try S3ObjectStore(options, transport: transport, environment: environment)
        let large = [UInt8](repeating: 1, count: 2 * S3Options.partBytesMin)
        for step in 0..<1500 {
            do { try operate(on: store, random.below(9), large: step % 50 == 0 ? large : [1, 2, 3]) } catch is IOFailure {
                // Refused in words: what is wanted.
            } catch { Issue.record("\(error), seed \(seed)") }
        }
    }

    private func operate(on store: S3ObjectStore, _ number: Int, large: [UInt8]) throws {
        let location = "s3://bucket/a/b"
        switch number {
        case 0: try store.put(location, [1], .always)
        case 1: try store.put(location, [1], .isMissing)
        case 2: try store.put(location, [1], .hasTag("\"t\""))
        case 3: _ = try store.get(location)
        case 4: _ = try store.look(at: location)
        case 5: _ = try store.list("s3://bucket/a/")
        case 6: try store.remove([location, "s3://bucket/c", "s3://other/c"])
        case 7:
            let file = try store.openForReading(location)
            var buffer = [UInt8](repeating: 0, count: 10)
            _ = try buffer.withUnsafeMutableBytes { try file.read(at: 3, into: $0) }
        default:
            let writer = try store.openForWriting(location)
            try large.withUnsafeBytes { try writer.write($0, at: 0) }
            try writer.finish()
        }
    }
}
