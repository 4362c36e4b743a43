import MillHTTPClient
import MillIO
import MillTestKit
import Testing

@testable import MillObjectStore

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Not a test by itself: does to a real store what `Scripts/test-s3` says, a line a command, over two named pipes, so that another client
/// can look at what we did and we at what it did.
@Suite struct S3ServerTests {
    private static let directory = Environment.system.variable("MILLRACE_S3_PIPES")

    @Test(.enabled(if: directory != nil, "Scripts/test-s3 runs it")) func doesWhatItIsTold() throws {
        let directory = try #require(Self.directory)
        var session = S3Session()
        try CommandPipes.serve(directory) { try session.run($0) }
    }
}

/// A store, and the objects that are open in it.
private struct S3Session {
    private var store: S3ObjectStore?
    private var writer: (any ObjectWriter)?
    private var reader: (any File)?
    private let files = LocalFileSystem()

    private func load(_ path: String) throws -> [UInt8] {
        let file = try files.open(path, .read)
        var bytes = [UInt8](repeating: 0, count: try file.size())
        _ = try bytes.withUnsafeMutableBytes { try file.read(at: 0, into: $0) }
        return bytes
    }

    private func save(_ bytes: [UInt8], _ path: String) throws {
        let file = try files.open(path, .create)
        try bytes.withUnsafeBytes { try file.write($0, at: 0) }
    }

    private func condition(_ text: String) -> PutCondition {
        switch text {
        case "always": .always
        case "missing": .isMissing
        default: .hasTag(text)
        }
    }

    mutating func run(_ words: [String]) throws -> String {
        if words[0] == "use" {
            var options = S3Options(
                endpoint: words[1], credentials: FixedCredentials(S3Credentials(accessKeyID: words[2], secretAccessKey: words[3])))
            options.retries = RetryPolicy(triesMax: 4, first: .milliseconds(50), last: .milliseconds(500), total: .seconds(5))
            let transport = CurlTransport(.init(rootsFile: words.count > 4 ? words[4] : nil))
            store = try S3ObjectStore(options, transport: transport, environment: .system)
            return ""
        }
        guard let store else { throw IOFailure("run", path: words[0], errorNumber: EINVAL) }
        switch words[0] {
        case "put": try store.put(words[1], load(words[2]), condition(words[3]))
        case "get": try save(store.get(words[1]), words[2])
        case "look": return try store.look(at: words[1]).map { "\($0.byteCount)\t\($0.tag ?? "")\t\($0.modifiedMicros)" } ?? "none"
        case "list":
            let lines = try store.list(words[1]).map { "\($0.location)\t\($0.byteCount)\t\($0.tag ?? "")\n" }
            try save(Array(lines.joined().utf8), words[2])
        case "remove": try store.remove(String(decoding: load(words[1]), as: UTF8.self).split(separator: "\n").map(String.init))
        case "presign": return try store.presigned(words[1], words[2], seconds: 600)
        case "conditions": return "\(try store.enforcesConditions(under: words[1]))"
        case "open": reader = try store.openForReading(words[1])
        case "read": return try read(offset: Int(words[1]) ?? 0, count: Int(words[2]) ?? 0, words[3])
        default: try write(store, words)
        }
        return ""
    }

    private func read(offset: Int, count: Int, _ path: String) throws -> String {
        var bytes = [UInt8](repeating: 0, count: count)
        let found = try bytes.withUnsafeMutableBytes { try reader?.read(at: offset, into: $0) ?? 0 }
        try save(Array(bytes[..<found]), path)
        return "\(found)"
    }

    private mutating func write(_ store: S3ObjectStore, _ words: [String]) throws {
        switch words[0] {
        case "create": writer = try store.openForWriting(words[1])
        case "write":
            let bytes = try load(words[1])
            for start in stride(from: 0, to: bytes.count, by: 1_000_003) {
                try bytes[start..<min(start + 1_000_003, bytes.count)].withUnsafeBytes { try writer?.write($0, at: writer?.size() ?? 0) }
            }
        case "finish": try writer?.finish()
        case "abandon": writer?.abandon()
        default: throw IOFailure("run", path: words[0], errorNumber: EINVAL)
        }
    }
}
