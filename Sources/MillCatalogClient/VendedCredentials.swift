package import MillIceberg
package import MillObjectStore
import MillHTTPClient
import MillIO
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Keys that a catalog lends for a table's files, asked for anew before they run out or when the store no longer takes them.
///
/// Threading: any thread; may block to ask the catalog.
final class VendedCredentials: S3CredentialSource {
    private struct Held {
        var credentials: S3Credentials?
        /// Milliseconds since 1970; nil for keys that do not say.
        var expiresAtMillis: Int64?
        var isRefused = false
    }

    /// Asks for others while the old ones hold for a while.
    private static let marginMillis: Int64 = 5 * 60 * 1000

    private let clock: any Clock
    private let ask: @Sendable () throws(IcebergError) -> [String: String]
    private let held: Mutex<Held>

    /// - Parameters:
    ///   - config: what the catalog gave with the table.
    ///   - ask: asks it again.
    init(_ config: [String: String], clock: any Clock, ask: @escaping @Sendable () throws(IcebergError) -> [String: String]) {
        self.clock = clock
        self.ask = ask
        held = Mutex(Self.held(config))
    }

    func credentials() throws(IOFailure) -> S3Credentials? {
        let held = held.withLock { $0 }
        let isDue = held.isRefused || held.expiresAtMillis.map { clock.nowMicros / 1000 + Self.marginMillis >= $0 } ?? false
        guard isDue else { return held.credentials }
        do throws(IcebergError) {
            let fresh = Self.held(try ask())
            self.held.withLock { $0 = fresh }
            return fresh.credentials
        } catch {
            // Old keys that still hold are better than none.
            if !held.isRefused, let expires = held.expiresAtMillis, clock.nowMicros / 1000 < expires { return held.credentials }
            if case .io(let failure) = error { throw failure }
            throw IOFailure("get keys for", path: "s3://", errorNumber: EACCES, detail: "\(error)")
        }
    }

    func refused(_ credentials: S3Credentials) {
        held.withLock { held in
            if held.credentials == credentials { held.isRefused = true }
        }
    }

    private static func held(_ config: [String: String]) -> Held {
        Held(credentials: keys(config), expiresAtMillis: config["s3.session-token-expires-at-ms"].flatMap { Int64($0) })
    }

    /// The keys among a table's configuration; nil when it has none.
    static func keys(_ config: [String: String]) -> S3Credentials? {
        guard let id = config["s3.access-key-id"], let secret = config["s3.secret-access-key"] else { return nil }
        return S3Credentials(accessKeyID: id, secretAccessKey: secret, sessionToken: config["s3.session-token"])
    }

    /// Of the credentials that a catalog lists by prefix those of the longest that a location begins with.
    static func config(_ list: JSONValue, for location: String) -> [String: String] {
        (list.array ?? [])
            .filter { location.hasPrefix($0["prefix"].string ?? "") }
            .max { ($0["prefix"].string ?? "").count < ($1["prefix"].string ?? "").count }
            .map { $0["config"].texts } ?? [:]
    }
}

extension RESTCatalog {
    /// The store of a table's files, with the keys that the catalog lends, or those that the user gave where it lends none. What the
    /// catalog says of the endpoint and the region counts over what the user says, as in other clients.
    ///
    /// - Parameter local: of tables on this machine's disk; nil refuses them: a catalog elsewhere has no say in what is written here.
    /// - Throws: `io` for options that make no sense, or without keys; `unsupported` where the catalog would sign each request itself.
    package func store(
        for table: TableIdentifier, _ loaded: LoadedTable, local: (any ObjectStore)? = nil
    ) throws(IcebergError) -> any ObjectStore {
        let location = loaded.metadata.location
        guard !location.hasPrefix("file:"), !location.hasPrefix("/") else { return ObjectStores(local: local, s3: nil) }
        let properties = Self.properties(try connection.configuration().properties, loaded.config)
        if properties["s3.remote-signing-enabled"] == "true", VendedCredentials.keys(properties) == nil {
            throw .unsupported("the catalog lends no keys for \(table) but would sign every request itself")
        }
        do throws(IOFailure) {
            var options = try S3Options(properties: properties, environment: environment)
            if VendedCredentials.keys(loaded.config)?.sessionToken != nil {
                options.credentials = VendedCredentials(loaded.config, clock: environment.clock) { [self] () throws(IcebergError) in
                    try load(table).config
                }
            }
            return ObjectStores(local: local, s3: try S3ObjectStore(options, transport: transport, environment: environment))
        } catch { throw .io(error) }
    }

    /// The user's properties under the table's. What belongs together comes from one side.
    private static func properties(_ own: [String: String], _ lent: [String: String]) -> [String: String] {
        var own = own
        if lent["client.region"] != nil { own["s3.region"] = nil }
        if lent["s3.access-key-id"] != nil {
            for name in ["s3.access-key-id", "s3.secret-access-key", "s3.session-token"] { own[name] = nil }
        }
        return own.merging(lent) { $1 }
    }
}
