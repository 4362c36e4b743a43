import MillColumnar
import MillHTTPClient

/// AWS Signature Version 4: what a request says, in one canonical form, under a key that is derived from the secret, a day, a region and a
/// service. Source: "Signature Version 4 signing process" of AWS' documentation; its published examples are the tests.
///
///     canonical request = method, path, query, headers, names of headers, hash of the body      one a line, sorted, encoded
///     string to sign    = AWS4-HMAC-SHA256, time, day/region/service/aws4_request, hash of the canonical request
///     signing key       = HMAC over HMAC: "AWS4" + secret, day, region, service, "aws4_request"
struct S3Signer {
    var credentials: S3Credentials
    var region: String
    var service = "s3"

    static let algorithm = "AWS4-HMAC-SHA256"

    /// A request as far as it is signed.
    struct Message {
        var method: String
        /// Percent-encoded, beginning with a slash.
        var path: String
        /// Names and values as they are, not encoded.
        var query: [(name: String, value: String)] = []
        /// `host` among them.
        var headers: [(name: String, value: String)]
        /// SHA-256 of the body in hexadecimal, or `UNSIGNED-PAYLOAD`.
        var payloadHash: String
    }

    /// The value of the header `Authorization`. The message's headers have `x-amz-date` of the same time.
    func authorization(_ message: Message, time: S3Time) -> String {
        let headers = Self.canonicalHeaders(message.headers)
        let names = headers.map(\.name).joined(separator: ";")
        let signature = signature(message, headers, time)
        return "\(Self.algorithm) Credential=\(credentials.accessKeyID)/\(scope(time)), SignedHeaders=\(names), Signature=\(signature)"
    }

    /// The query of a URL that needs no headers but `host`, for `seconds` from then on, in its order and not encoded.
    func presignedQuery(_ message: Message, time: S3Time, seconds: Int) -> [(name: String, value: String)] {
        var message = message
        let headers = Self.canonicalHeaders(message.headers)
        message.query += [
            ("X-Amz-Algorithm", Self.algorithm), ("X-Amz-Credential", "\(credentials.accessKeyID)/\(scope(time))"),
            ("X-Amz-Date", time.stamp),
            ("X-Amz-Expires", "\(seconds)"), ("X-Amz-SignedHeaders", headers.map(\.name).joined(separator: ";")),
        ]
        if let token = credentials.sessionToken { message.query.append(("X-Amz-Security-Token", token)) }
        return message.query + [("X-Amz-Signature", signature(message, headers, time))]
    }

    /// As it is signed, and as it is sent: encoded and sorted.
    static func canonicalQuery(_ query: [(name: String, value: String)]) -> String {
        query.map { (PercentEncoding.encode($0.name), PercentEncoding.encode($0.value)) }
            .sorted { $0 < $1 }
            .map { "\($0.0)=\($0.1)" }
            .joined(separator: "&")
    }

    private func scope(_ time: S3Time) -> String { "\(time.day)/\(region)/\(service)/aws4_request" }

    private func signature(_ message: Message, _ headers: [(name: String, value: String)], _ time: S3Time) -> String {
        let lines = headers.map { "\($0.name):\($0.value)\n" }.joined()
        let request = [
            message.method, message.path, Self.canonicalQuery(message.query), lines, headers.map(\.name).joined(separator: ";"),
            message.payloadHash,
        ].joined(separator: "\n")
        let text = [Self.algorithm, time.stamp, scope(time), Digest.hexadecimal(Digest.sha256(request))].joined(separator: "\n")
        var key = Array("AWS4\(credentials.secretAccessKey)".utf8)
        for part in [time.day, region, service, "aws4_request"] { key = Digest.hmac(key: key, part) }
        return Digest.hexadecimal(Digest.hmac(key: key, text))
    }

    /// Lowercase, sorted, each name once; values without spaces around and with one in a row within.
    private static func canonicalHeaders(_ headers: [(name: String, value: String)]) -> [(name: String, value: String)] {
        var values: [String: [String]] = [:]
        for header in headers {
            let value = header.value.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            values[header.name.lowercased(), default: []].append(value)
        }
        return values.sorted { $0.key < $1.key }.map { ($0.key, $0.value.joined(separator: ",")) }
    }
}

/// A moment as signatures write it.
struct S3Time {
    /// `20130524T000000Z`
    var stamp: String
    /// `20130524`
    var day: String { String(stamp.prefix(8)) }

    /// - Parameter micros: since 1970-01-01T00:00:00Z.
    init(micros: Int64) {
        let seconds = Int(micros / 1_000_000)
        let date = CivilDate(days: seconds / 86_400)
        let second = seconds % 86_400
        let padded = { (value: Int, width: Int) in String(repeating: "0", count: max(0, width - "\(value)".count)) + "\(value)" }
        stamp =
            padded(date.year, 4) + padded(date.month, 2) + padded(date.day, 2) + "T" + padded(second / 3600, 2)
            + padded(second / 60 % 60, 2)
            + padded(second % 60, 2) + "Z"
    }
}
