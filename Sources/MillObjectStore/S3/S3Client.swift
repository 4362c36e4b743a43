import MillHTTPClient
import MillIO

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Requests to S3: signs them, tries again what may pass, and says what went wrong. Which requests is its users' matter.
///
/// Threading: any thread; blocks it.
struct S3Client: Sendable {
    let options: S3Options
    let clock: any Clock
    let cancellation: Cancellation?
    private let endpoint: S3Endpoint
    private let sender: RetryingSender

    init(_ options: S3Options, transport: any HTTPTransport, environment: Environment, cancellation: Cancellation? = nil) throws(IOFailure)
    {
        self.options = options
        self.cancellation = cancellation
        clock = environment.clock
        endpoint = try S3Endpoint(options)
        sender = RetryingSender(transport, policy: options.retries, clock: environment.clock, random: environment.random)
    }

    private init(_ client: S3Client, _ cancellation: Cancellation) {
        options = client.options
        clock = client.clock
        endpoint = client.endpoint
        sender = client.sender
        self.cancellation = cancellation
    }

    /// The same, whose requests end when that says so.
    func cancelled(by cancellation: Cancellation) -> S3Client { S3Client(self, cancellation) }

    /// A request before it is signed.
    struct Request {
        var method: String
        var location: S3Location
        var query: [(name: String, value: String)] = []
        var headers: [(name: String, value: String)] = []
        var body: [UInt8] = []
        var responseBytesMax = 16 << 20
        /// Its answer begins with status 200 before it is known whether it succeeds.
        var mayFailLate = false
    }

    /// Any answer, refusals included.
    func send(_ request: Request, receiving buffer: UnsafeMutableRawBufferPointer? = nil) throws(IOFailure) -> RetryingSender.Outcome {
        let hash = Digest.hexadecimal(Digest.sha256(request.body))
        var renewals = 0
        while true {
            let credentials = try options.credentials.credentials()
            let outcome = try sender.send(receiving: buffer, isPassing: { Self.isPassing($0, request) }) { () throws(IOFailure) in
                signed(request, credentials, payloadHash: hash)
            }
            // Keys that were lent run out; others are asked for once.
            guard let credentials, renewals == 0, !outcome.response.isSuccess, S3Refusal(outcome.response).isOfExpiredKeys else {
                return outcome
            }
            options.credentials.refused(credentials)
            guard try options.credentials.credentials() != credentials else { return outcome }
            renewals += 1
        }
    }

    /// A URL by which anyone may make one request for some time.
    func presigned(_ method: String, _ location: S3Location, seconds: Int) throws(IOFailure) -> String {
        let host = endpoint.host(location.bucket)
        guard let credentials = try options.credentials.credentials() else {
            return endpoint.url(location.bucket, location.key, query: "")
        }
        let message = S3Signer.Message(
            method: method, path: endpoint.path(location.bucket, location.key), headers: [("host", host)], payloadHash: "UNSIGNED-PAYLOAD")
        let query = S3Signer(credentials: credentials, region: options.region).presignedQuery(
            message, time: S3Time(micros: clock.nowMicros), seconds: seconds)
        return endpoint.url(location.bucket, location.key, query: S3Signer.canonicalQuery(query))
    }

    private func signed(_ request: Request, _ credentials: S3Credentials?, payloadHash: String) -> HTTPRequest {
        let (bucket, key) = (request.location.bucket, request.location.key)
        var headers = request.headers
        if let credentials {
            let time = S3Time(micros: clock.nowMicros)
            headers += [("x-amz-content-sha256", payloadHash), ("x-amz-date", time.stamp)]
            if let token = credentials.sessionToken { headers.append(("x-amz-security-token", token)) }
            let message = S3Signer.Message(
                method: request.method, path: endpoint.path(bucket, key), query: request.query,
                headers: headers + [("host", endpoint.host(bucket))],
                payloadHash: payloadHash)
            headers.append(("Authorization", S3Signer(credentials: credentials, region: options.region).authorization(message, time: time)))
        }
        let query = S3Signer.canonicalQuery(request.query)
        return HTTPRequest(
            request.method, endpoint.url(bucket, key, query: query),
            headers: HTTPHeaders(headers.map { .init(name: $0.name, value: $0.value) }),
            body: request.body, responseBytesMax: request.responseBytesMax, timeouts: options.timeouts, cancellation: cancellation)
    }

    private static func isPassing(_ response: HTTPResponse, _ request: Request) -> Bool {
        if RetryPolicy.isPassing(status: response.status) { return true }
        guard !response.isSuccess || request.mayFailLate else { return false }
        return S3Refusal(response).isPassing
    }

    /// What a refusal is to whoever asked. `operation` reads after "could not".
    func failure(_ operation: String, _ location: S3Location, _ response: HTTPResponse) -> IOFailure {
        let refusal = S3Refusal(response)
        return IOFailure(
            operation, path: location.text, errorNumber: refusal.errorNumber,
            detail: refusal.words(region: options.region, nowMicros: clock.nowMicros))
    }

    /// A store that is away is one thing to who uses it, however far the request came.
    func away(_ operation: String, _ location: S3Location, _ failure: IOFailure) -> IOFailure {
        let errorNumber: Int32 =
            switch failure.errorNumber {
            case EHOSTUNREACH, ECONNREFUSED, ECONNABORTED, ECONNRESET, EPROTO: EIO
            default: failure.errorNumber
            }
        let words = failure.detail ?? systemMessage(failure.errorNumber)
        // Some failures of these do not come from the store, and have their own place.
        return IOFailure(operation, path: location.text, errorNumber: errorNumber, detail: "\(failure.path): \(words)")
    }
}
