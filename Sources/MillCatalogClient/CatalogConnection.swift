import MillHTTPClient
import MillIceberg
import MillIO
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Requests to a catalog: finds out its prefix and its say in properties, carries the token, and asks for another when the catalog wants
/// one.
///
/// Threading: any thread; blocks it.
final class CatalogConnection: Sendable {
    /// What `v1/config` answered, laid under and over what the user gave.
    struct Config: Sendable {
        var base: String
        /// `/v1`, and the prefix that the catalog wants behind it.
        var root: String
        var properties: [String: String]
    }

    let options: RESTCatalogOptions
    private let sender: RetryingSender
    private let token: AccessToken
    private let config = Mutex<Config?>(nil)

    init(_ options: RESTCatalogOptions, transport: any HTTPTransport, environment: Environment) {
        self.options = options
        sender = RetryingSender(transport, policy: options.retries, clock: environment.clock, random: environment.random)
        token = AccessToken(options, sender, clock: environment.clock)
    }

    /// Asked for once.
    func configuration() throws(IcebergError) -> Config {
        if let known = config.withLock({ $0 }) { return known }
        let base = Self.trimmed(options.uri)
        let query = options.warehouse.map { "?warehouse=\(PercentEncoding.encode($0))" } ?? ""
        let response = try answer("GET", "\(base)/v1/config\(query)").response
        if response.status == 404 {
            let words = CatalogRefusal(response).words
            throw .missing("catalog at \(base): \(words) (its URI may need a path, such as /api/catalog)")
        }
        guard response.isSuccess else { throw Self.failure("open", "\(base)/v1/config", response) }
        let json = try Self.json(response, "\(base)/v1/config")
        let properties = json["defaults"].texts.merging(options.properties) { $1 }.merging(json["overrides"].texts) { $1 }
        let prefix = properties["prefix"] ?? ""
        // As the catalog wrote it, which may be encoded: what no URL can have is all that is.
        let root = "/v1" + (prefix.isEmpty ? "" : "/" + PercentEncoding.encode(prefix, keeping: "/%:@!$&'()*+,;="))
        let found = Config(base: Self.trimmed(properties["uri"] ?? base), root: root, properties: properties)
        config.withLock { $0 = found }
        return found
    }

    /// Any answer to a request below the catalog's root.
    ///
    /// - Parameters:
    ///   - path: encoded, without the slash before it.
    ///   - isRepeatable: see `RetryingSender.send`.
    func send(
        _ method: String, _ path: String, query: [(name: String, value: String)] = [], _ body: JSONValue? = nil, isRepeatable: Bool = true,
        headers: HTTPHeaders = [:]
    ) throws(IcebergError) -> RetryingSender.Outcome {
        let config = try configuration()
        let query = query.isEmpty ? "" : "?" + query.map { "\($0.name)=\(PercentEncoding.encode($0.value))" }.joined(separator: "&")
        return try answer(method, config.base + config.root + "/" + path + query, body, isRepeatable: isRepeatable, headers)
    }

    private func answer(
        _ method: String, _ url: String, _ body: JSONValue? = nil, isRepeatable: Bool = true, _ more: HTTPHeaders = [:]
    ) throws(IcebergError) -> RetryingSender.Outcome {
        do throws(IOFailure) {
            var renewals = 0
            while true {
                let token = try token.current()
                var headers = options.headers
                for field in more.fields where headers[field.name] == nil { headers.append(field.name, field.value) }
                headers["Accept"] = "application/json"
                if body != nil { headers["Content-Type"] = "application/json" }
                if let token { headers["Authorization"] = "Bearer \(token)" }
                let request = HTTPRequest(
                    method, url, headers: headers, body: body.map { Array($0.text.utf8) } ?? [], responseBytesMax: 256 << 20,
                    timeouts: options.timeouts)
                let outcome = try sender.send(
                    isRepeatable: isRepeatable,
                    // A request that must not have its effect twice is repeated only when the catalog says that it had none.
                    isPassing: { isRepeatable ? RetryPolicy.isPassing(status: $0.status) : Self.isNotNow($0) }
                ) { () throws(IOFailure) in request }
                // 419 is the specification's word for a token that ran out.
                guard outcome.response.status == 401 || outcome.response.status == 419, renewals == 0, self.token.refuse(token) else {
                    return outcome
                }
                renewals += 1
            }
        } catch { throw .io(error) }
    }

    private static func isNotNow(_ response: HTTPResponse) -> Bool {
        response.status == 429 || response.status == 503 && CatalogRefusal(response).saysNothingWasDone
    }

    // MARK: Answers

    static func json(_ response: HTTPResponse, _ place: String) throws(IcebergError) -> JSONValue {
        do throws(BadBytes) { return try JSONValue(response.body) } catch { throw .malformed(location: place, what: error.what) }
    }

    /// What a refusal is, unless its user knows better.
    static func failure(_ operation: String, _ place: String, _ response: HTTPResponse) -> IcebergError {
        let refusal = CatalogRefusal(response)
        let errorNumber: Int32? =
            switch refusal.status {
            case 401, 403, 419: EACCES
            case 408, 504: ETIMEDOUT
            case 429, 500...599: EIO
            default: nil
            }
        switch refusal.status {
        case 404: return .missing("\(place): \(refusal.words)")
        case 406, 501: return .unsupported("\(operation) \"\(place)\": \(refusal.words)")
        case 409: return .commitConflict(refusal.words)
        default: break
        }
        guard let errorNumber else { return .badRequest("could not \(operation) \"\(place)\": \(refusal.words)") }
        return .io(IOFailure(operation, path: place, errorNumber: errorNumber, detail: refusal.words))
    }

    private static func trimmed(_ uri: String) -> String {
        var uri = uri
        while uri.hasSuffix("/") { uri.removeLast() }
        return uri
    }
}
