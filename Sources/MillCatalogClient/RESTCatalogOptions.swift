package import MillHTTPClient
package import MillIO

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// How a catalog that speaks Iceberg's REST protocol is reached.
package struct RESTCatalogOptions: Sendable {
    /// With or without a slash at its end; `/v1/...` comes behind it.
    package var uri: String
    /// What the catalog calls the warehouse; nil when it has but one.
    package var warehouse: String?
    /// Instead of asking for one.
    package var token: String?
    /// `id:secret`, or a secret alone, by which a token is asked for.
    package var credential: String?
    /// Of that token.
    package var scope = "catalog"
    /// Where a token is asked for; the catalog's own endpoint unless it is set.
    package var oauth2ServerURI: String?
    /// Sent with every request to the catalog.
    package var headers: HTTPHeaders
    /// All properties as they were given, for what the catalog's answers are laid over: `s3.*` among them.
    package var properties: [String: String]
    package var timeouts = HTTPTimeouts()
    package var retries = RetryPolicy()

    package init(uri: String, properties: [String: String] = [:]) {
        self.uri = uri
        self.properties = properties
        headers = [:]
    }

    /// Names of RisingWave's sinks for what Iceberg calls otherwise.
    private static let aliases = [
        "catalog.uri": "uri", "warehouse.path": "warehouse", "catalog.credential": "credential", "catalog.token": "token",
        "catalog.scope": "scope", "catalog.header": "header", "catalog.oauth2_server_uri": "oauth2-server-uri",
        "catalog.oauth2-server-uri": "oauth2-server-uri", "s3.access.key": "s3.access-key-id", "s3.secret.key": "s3.secret-access-key",
        "s3.path.style.access": "s3.path-style-access",
    ]

    /// All that are understood, and of Iceberg's other clients what has no meaning here.
    package static var names: Set<String> {
        Set(aliases.keys).union(aliases.values).union(["prefix", "io-impl", "cache-enabled", "token-refresh-enabled"])
    }

    /// Of names that go on: `s3.region`, `header.X-Tenant`.
    package static let prefixes = ["s3.", "header.", "client.", "rest."]

    /// Options by their names in Iceberg's properties (`uri`, `warehouse`, `credential`, `scope`, `oauth2-server-uri`, `token`, `prefix`,
    /// `header.NAME`) or RisingWave's sinks (`catalog.uri`, `warehouse.path`, `catalog.header='a=b;c=d'`, ...). What is none of these is
    /// kept among the properties.
    ///
    /// - Throws: `EINVAL` without a URI, or with one that is none.
    package init(properties given: [String: String]) throws(IOFailure) {
        var properties: [String: String] = [:]
        for (name, value) in given { properties[Self.aliases[name] ?? name] = value }
        let uri = properties["uri"] ?? ""
        guard uri.hasPrefix("http://") || uri.hasPrefix("https://") else {
            throw IOFailure("open", path: uri, errorNumber: EINVAL, detail: "the catalog's URI begins with http:// or https://")
        }
        self.init(uri: uri, properties: properties)
        warehouse = properties["warehouse"]
        token = properties["token"]
        credential = properties["credential"]
        scope = properties["scope"] ?? scope
        oauth2ServerURI = properties["oauth2-server-uri"]
        for (name, value) in properties.sorted(by: { $0.key < $1.key }) where name.hasPrefix("header.") {
            headers[String(name.dropFirst(7))] = value
        }
        for pair in (properties["header"] ?? "").split(separator: ";") {
            guard let equals = pair.firstIndex(of: "=") else {
                throw IOFailure(
                    "open", path: uri, errorNumber: EINVAL, detail: "catalog.header is written name=value;name=value, not \"\(pair)\"")
            }
            headers[String(pair[..<equals])] = String(pair[pair.index(after: equals)...])
        }
    }
}
