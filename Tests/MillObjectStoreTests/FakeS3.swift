import MillHTTPClient
import MillIO
import Synchronization

@testable import MillObjectStore

/// As much of S3 as the store speaks to, in memory: objects with tags, conditions, ranges, pages of listings, multipart uploads. One
/// bucket, in the path. Requests without a signature are refused.
final class FakeS3: Sendable {
    struct Settings: Sendable {
        var pageSize = 1000
        var honoursConditions = true
        var knowsBatchDelete = true
    }

    private struct State {
        var settings = Settings()
        var objects: [String: [UInt8]] = [:]
        var tags: [String: String] = [:]
        var uploads: [String: [Int: [UInt8]]] = [:]
        var nextUpload = 1
        /// Answers that come before anything else happens, and ones that take the place of the real one after it happened.
        var before: [ScriptedTransport.Answer] = []
        var after: [ScriptedTransport.Answer] = []
    }

    private let state = Mutex(State())
    var settings: Settings {
        get { state.withLock { $0.settings } }
        set { state.withLock { $0.settings = newValue } }
    }

    var transport: ScriptedTransport { ScriptedTransport { [self] in answer($0) } }
    var keys: [String] { state.withLock { $0.objects.keys.sorted() } }
    var uploadCount: Int { state.withLock { $0.uploads.count } }

    /// The next requests fail like that, before they have an effect or after.
    func fail(before: [ScriptedTransport.Answer] = [], after: [ScriptedTransport.Answer] = []) {
        state.withLock { state in
            state.before += before
            state.after += after
        }
    }

    func set(_ key: String, _ bytes: [UInt8]) { state.withLock { Self.store(key, bytes, &$0) } }

    private static func store(_ key: String, _ bytes: [UInt8], _ state: inout State) {
        state.objects[key] = bytes
        state.tags[key] = "\"\(Digest.hexadecimal(Digest.md5(bytes)))\""
    }

    private func answer(_ request: HTTPRequest) -> ScriptedTransport.Answer {
        state.withLock { state in
            if !state.before.isEmpty { return state.before.removeFirst() }
            let response = Self.response(request, &state)
            return state.after.isEmpty ? .success(response) : state.after.removeFirst()
        }
    }

    private static func refusal(_ status: Int, _ code: String) -> HTTPResponse {
        HTTPResponse(status: status, body: Array("<Error><Code>\(code)</Code><Message>of a test</Message></Error>".utf8))
    }

    private static func response(_ request: HTTPRequest, _ state: inout State) -> HTTPResponse {
        guard request.headers["Authorization"] != nil else { return refusal(403, "AccessDenied") }
        let parts = request.url.split(separator: "?", maxSplits: 1)
        let path = parts[0].drop { $0 != ":" }.dropFirst(3).drop { $0 != "/" }.dropFirst()
        let key = PercentEncoding.decode(String(path.drop { $0 != "/" }.dropFirst()))
        var query: [String: String] = [:]
        for pair in parts.count > 1 ? parts[1].split(separator: "&") : [] {
            let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            query[String(sides[0])] = PercentEncoding.decode(String(sides[1]))
        }
        switch request.method {
        case "PUT" where query["uploadId"] != nil: return part(request, query, &state)
        case "PUT": return put(request, key, &state)
        case "POST" where query["uploads"] != nil: return startUpload(&state)
        case "POST" where query["delete"] != nil: return removeMany(request, &state)
        case "POST": return complete(request, key, query["uploadId"] ?? "", &state)
        case "DELETE":
            if let upload = query["uploadId"] { state.uploads[upload] = nil } else { state.objects[key] = nil }
            return HTTPResponse(status: 204)
        case "GET" where query["list-type"] != nil: return list(query, state)
        default: return get(request, key, state)
        }
    }

    private static func put(_ request: HTTPRequest, _ key: String, _ state: inout State) -> HTTPResponse {
        if state.settings.honoursConditions {
            if request.headers["If-None-Match"] == "*", state.objects[key] != nil { return refusal(412, "PreconditionFailed") }
            if let tag = request.headers["If-Match"] {
                if state.objects[key] == nil { return refusal(404, "NoSuchKey") }
                if state.tags[key] != tag { return refusal(412, "PreconditionFailed") }
            }
        }
        store(key, request.body, &state)
        return HTTPResponse(status: 200, headers: ["ETag": state.tags[key] ?? ""])
    }

    private static func get(_ request: HTTPRequest, _ key: String, _ state: State) -> HTTPResponse {
        guard let bytes = state.objects[key] else {
            return request.method == "HEAD" ? HTTPResponse(status: 404) : refusal(404, "NoSuchKey")
        }
        let headers: HTTPHeaders = [
            "ETag": state.tags[key] ?? "", "Content-Length": "\(bytes.count)", "Last-Modified": "Fri, 24 May 2013 00:00:00 GMT",
        ]
        if request.method == "HEAD" { return HTTPResponse(status: 200, headers: headers) }
        if let tag = request.headers["If-Match"], tag != state.tags[key] { return refusal(412, "PreconditionFailed") }
        guard let range = request.headers["Range"]?.dropFirst("bytes=".count).split(separator: "-"), let start = Int(range[0]),
            let end = Int(range[1])
        else {
            return HTTPResponse(status: 200, headers: headers, body: bytes)
        }
        return HTTPResponse(
            status: 206, headers: ["Content-Range": "bytes \(start)-\(end)/\(bytes.count)"],
            body: Array(bytes[start...min(end, bytes.count - 1)]))
    }

    private static func list(_ query: [String: String], _ state: State) -> HTTPResponse {
        let found = state.objects.filter { $0.key.hasPrefix(query["prefix"] ?? "") }.sorted { $0.key < $1.key }
        let start = Int(query["continuation-token"] ?? "0") ?? 0
        let page = found.dropFirst(start).prefix(state.settings.pageSize)
        let contents = page.map { key, bytes in
            "<Contents><Key>\(PercentEncoding.encode(key, keeping: "/"))</Key><Size>\(bytes.count)</Size>"
                + "<ETag>\(XMLElement.escaped(state.tags[key] ?? "") ?? "")</ETag><LastModified>2013-05-24T00:00:00.000Z</LastModified></Contents>"
        }
        let isCut = start + page.count < found.count
        let next = isCut ? "<NextContinuationToken>\(start + page.count)</NextContinuationToken>" : ""
        let text =
            "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>\(isCut)</IsTruncated>\(next)\(contents.joined())</ListBucketResult>"
        return HTTPResponse(status: 200, body: Array(text.utf8))
    }

    private static func removeMany(_ request: HTTPRequest, _ state: inout State) -> HTTPResponse {
        guard state.settings.knowsBatchDelete else { return refusal(501, "NotImplemented") }
        guard request.headers["Content-MD5"] == Digest.base64(Digest.md5(request.body)), let root = XMLElement(document: request.body)
        else {
            return refusal(400, "BadDigest")
        }
        var errors = ""
        for key in root.all("Object").compactMap({ $0["Key"]?.text }) {
            if key.hasSuffix("locked") {
                errors += "<Error><Key>\(key)</Key><Code>AccessDenied</Code><Message>no</Message></Error>"
            } else {
                state.objects[key] = nil
            }
        }
        return HTTPResponse(status: 200, body: Array("<DeleteResult>\(errors)</DeleteResult>".utf8))
    }

    // MARK: Uploads of parts

    private static func startUpload(_ state: inout State) -> HTTPResponse {
        let id = "upload-\(state.nextUpload)"
        state.nextUpload += 1
        state.uploads[id] = [:]
        return HTTPResponse(status: 200, body: Array("<R><UploadId>\(id)</UploadId></R>".utf8))
    }

    private static func part(_ request: HTTPRequest, _ query: [String: String], _ state: inout State) -> HTTPResponse {
        guard let id = query["uploadId"], state.uploads[id] != nil, let number = Int(query["partNumber"] ?? "") else {
            return refusal(404, "NoSuchUpload")
        }
        state.uploads[id]?[number] = request.body
        return HTTPResponse(status: 200, headers: ["ETag": "\"\(Digest.hexadecimal(Digest.md5(request.body)))\""])
    }

    private static func complete(_ request: HTTPRequest, _ key: String, _ id: String, _ state: inout State) -> HTTPResponse {
        guard let parts = state.uploads[id] else { return refusal(404, "NoSuchUpload") }
        let numbers = XMLElement(document: request.body)?.all("Part").compactMap { $0["PartNumber"].flatMap { Int($0.text) } } ?? []
        guard numbers == Array(1...parts.count) else { return refusal(400, "InvalidPart") }
        state.uploads[id] = nil
        store(key, numbers.flatMap { parts[$0] ?? [] }, &state)
        let digests = numbers.flatMap { Digest.md5(parts[$0] ?? []) }
        state.tags[key] = "\"\(Digest.hexadecimal(Digest.md5(digests)))-\(parts.count)\""
        return HTTPResponse(status: 200, body: Array("<CompleteMultipartUploadResult/>".utf8))
    }
}
