package import MillHTTPClient
package import MillIO

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// How a store that speaks S3 is reached.
package struct S3Options: Sendable {
    /// Scheme, host and port of a store that is not Amazon's; nil for Amazon's of the region.
    package var endpoint: String?
    package var region: String
    /// The bucket in the path, not in the host's name. Stores of one's own mostly want that.
    package var isPathStyle: Bool
    package var credentials: any S3CredentialSource
    package var timeouts = HTTPTimeouts()
    package var retries = RetryPolicy()
    /// Bytes of each part of a large object but its last: what S3 calls a part has at least 5 MiB, and an object at most 10,000 of them.
    package var partBytes = 8 << 20
    /// Parts of one object under way at once. A writer holds this many and one more in memory.
    package var partsAtOnce = 3
    /// The largest object that `get` reads whole.
    package var getBytesMax = 512 << 20
    /// The most objects that `list` gives.
    package var listCountMax = 5_000_000

    package static let partBytesMin = 5 << 20
    package static let partCountMax = 10_000

    package init(endpoint: String? = nil, region: String = "us-east-1", isPathStyle: Bool? = nil, credentials: any S3CredentialSource) {
        self.endpoint = endpoint
        self.region = region
        self.isPathStyle = isPathStyle ?? (endpoint != nil)
        self.credentials = credentials
    }

    /// Names of options, each as Iceberg's properties and as RisingWave's sinks write it.
    private static let names: [String: [String]] = [
        "endpoint": ["s3.endpoint"], "region": ["s3.region", "client.region"], "id": ["s3.access-key-id", "s3.access.key"],
        "secret": ["s3.secret-access-key", "s3.secret.key"], "token": ["s3.session-token", "s3.session.token"],
        "pathStyle": ["s3.path-style-access", "s3.path.style.access"], "anonymous": ["s3.anonymous"],
    ]

    /// Options by their names in Iceberg's properties or RisingWave's sinks (`s3.endpoint`, `s3.access-key-id` or `s3.access.key`, ...);
    /// what they leave out is taken from the environment's `AWS_*` variables. Properties that are none of these are left alone.
    ///
    /// - Throws: `EINVAL` for a value that cannot be, `EACCES` without keys.
    package init(properties: [String: String], environment: Environment) throws(IOFailure) {
        let value = { (name: String) in (Self.names[name] ?? []).lazy.compactMap { properties[$0] }.first { !$0.isEmpty } }
        let endpoint = value("endpoint") ?? environment.variable("AWS_ENDPOINT_URL_S3") ?? environment.variable("AWS_ENDPOINT_URL")
        let region = value("region") ?? environment.variable("AWS_REGION") ?? environment.variable("AWS_DEFAULT_REGION") ?? "us-east-1"
        self.init(
            endpoint: endpoint, region: region, isPathStyle: try Self.flag(value("pathStyle"), "s3.path-style-access"),
            credentials: FixedCredentials(nil))
        if try Self.flag(value("anonymous"), "s3.anonymous") == true { return }
        switch (value("id"), value("secret")) {
        case (let id?, let secret?):
            credentials = FixedCredentials(S3Credentials(accessKeyID: id, secretAccessKey: secret, sessionToken: value("token")))
        case (nil, nil):
            guard let found = S3Credentials(environment: environment) else {
                throw IOFailure(
                    "open", path: endpoint ?? "s3://", errorNumber: EACCES,
                    detail:
                        "there are no keys for S3: give s3.access-key-id and s3.secret-access-key, or set AWS_ACCESS_KEY_ID and its secret"
                )
            }
            credentials = FixedCredentials(found)
        default:
            throw IOFailure(
                "open", path: endpoint ?? "s3://", errorNumber: EINVAL,
                detail: "s3.access-key-id and s3.secret-access-key are given together or not at all")
        }
    }

    private static func flag(_ text: String?, _ name: String) throws(IOFailure) -> Bool? {
        switch text?.lowercased() {
        case nil: return nil
        case "true": return true
        case "false": return false
        default: throw IOFailure("open", path: "s3://", errorNumber: EINVAL, detail: "\(name) is true or false, not \"\(text ?? "")\"")
        }
    }
}
