import MillHTTPClient
import MillIO

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Where a bucket answers, and how a key is written in a URL of it.
struct S3Endpoint: Hashable, Sendable {
    /// `http` or `https`.
    private let scheme: String
    /// Host, and port unless it is the scheme's own: what a client sends as `Host`.
    private let authority: String
    private let isPathStyle: Bool

    /// - Throws: `EINVAL` for an endpoint that is no `http://` or `https://` with a host and nothing behind it.
    init(_ options: S3Options) throws(IOFailure) {
        let text = options.endpoint ?? "https://s3.\(options.region).amazonaws.com" + (options.region.hasPrefix("cn-") ? ".cn" : "")
        let parts = text.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
        let isBare = parts.count == 1
        scheme = isBare ? "https" : parts[0].lowercased()
        var rest = isBare ? text[...] : parts[1]
        while rest.hasSuffix("/") { rest.removeLast() }
        let isHost = !rest.isEmpty && rest.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"/?#@\\".utf8.contains($0) }
        guard scheme == "http" || scheme == "https", isHost else {
            throw IOFailure("open", path: text, errorNumber: EINVAL, detail: "an endpoint is written http://host:port or https://host:port")
        }
        let port = scheme == "http" ? ":80" : ":443"
        authority = rest.lowercased().hasSuffix(port) ? String(rest.dropLast(port.count)) : String(rest)
        isPathStyle = options.isPathStyle
    }

    /// A point in a bucket's name makes a host that no certificate covers.
    private func hasBucketInPath(_ bucket: String) -> Bool { isPathStyle || (scheme == "https" && bucket.contains(".")) }

    func host(_ bucket: String) -> String { hasBucketInPath(bucket) ? authority : "\(bucket).\(authority)" }

    /// Percent-encoded, with the slash it begins with.
    func path(_ bucket: String, _ key: String) -> String {
        let key = PercentEncoding.encode(key, keeping: "/")
        return hasBucketInPath(bucket) ? "/\(bucket)/\(key)" : "/\(key)"
    }

    func url(_ bucket: String, _ key: String, query: String) -> String {
        "\(scheme)://\(host(bucket))\(path(bucket, key))" + (query.isEmpty ? "" : "?\(query)")
    }
}
