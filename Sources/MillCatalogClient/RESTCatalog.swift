package import MillHTTPClient
package import MillIceberg
package import MillIO

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A catalog of tables that speaks Iceberg's REST protocol: Polaris, Nessie, Lakekeeper, Unity, SeaweedFS, our own.
///
/// Source: Apache Iceberg's `rest-catalog-open-api.yaml`.
///
/// Commits. A refused requirement (409) is `commitConflict`: nothing has changed, and the table may be loaded and the commit be made anew.
/// An answer that was lost or cannot be read, or is 5xx, is `commitUnknown`: whether the change is there can only be seen in the table. So
/// is a conflict after a try whose outcome is not known: what stands in the way may be that try's own work. Only of 501, and of 503 and 507
/// in the catalog's own words, is it sure that nothing was done: a proxy says 503, too, when it loses the catalog in the middle.
///
/// Nothing is asked of the catalog before the first use. Threading: any thread; calls block.
package final class RESTCatalog: TableCatalog {
    let connection: CatalogConnection
    let transport: any HTTPTransport
    let environment: Environment

    package init(_ options: RESTCatalogOptions, transport: any HTTPTransport, environment: Environment) {
        connection = CatalogConnection(options, transport: transport, environment: environment)
        self.transport = transport
        self.environment = environment
    }

    // MARK: Tables

    package func load(_ table: TableIdentifier) throws(IcebergError) -> LoadedTable {
        let path = Self.path(table)
        let response = try connection.send("GET", path, headers: delegation).response
        if response.status == 404 { throw .missing("table \(table)") }
        guard response.isSuccess else { throw CatalogConnection.failure("load", "\(table)", response) }
        return try Self.loaded(response, "\(table)")
    }

    package func exists(_ table: TableIdentifier) throws(IcebergError) -> Bool {
        let response = try connection.send("HEAD", Self.path(table)).response
        if response.status == 404 { return false }
        guard response.isSuccess else { throw CatalogConnection.failure("look at", "\(table)", response) }
        return true
    }

    package func commit(_ table: TableIdentifier, requirements: [TableRequirement], updates: [TableUpdate]) throws(IcebergError)
        -> LoadedTable
    {
        let body: JSONValue = [
            "identifier": table.json, "requirements": .array(requirements.map(\.json)), "updates": .array(updates.map(\.json)),
        ]
        let outcome: RetryingSender.Outcome
        do throws(IcebergError) { outcome = try connection.send("POST", Self.path(table), body, isRepeatable: false) } catch {
            guard case .io(let failure) = error, !Self.hadNoEffect(failure) else { throw error }
            throw .commitUnknown("\(table): \(failure.detail ?? failure.description)")
        }
        let response = outcome.response
        switch response.status {
        case 200..<300: return try Self.committed(response, table)
        case 404: throw .missing("table \(table)")
        case 409:
            let words = CatalogRefusal(response).words
            throw outcome.isRepeated ? .commitUnknown("\(table): \(words), after a try whose outcome is not known") : .commitConflict(words)
        case 500..<600 where !CatalogRefusal(response).saysNothingWasDone:
            throw .commitUnknown("\(table): \(CatalogRefusal(response).words)")
        default: throw CatalogConnection.failure("commit to", "\(table)", response)
        }
    }

    /// Makes a table, or readies one that a commit with `assertCreate` makes.
    ///
    /// - Parameters:
    ///   - location: nil leaves it to the catalog.
    ///   - isStaged: nothing is there before the commit.
    /// - Returns: the table as the catalog made it: identifiers of its fields are the catalog's.
    /// - Throws: `commitConflict` when there is one of that name.
    package func create(
        _ table: TableIdentifier, schema: IcebergSchema, spec: PartitionSpec = PartitionSpec(), order: SortOrder = SortOrder(),
        location: String? = nil,
        properties: [String: String] = [:], isStaged: Bool = false
    ) throws(IcebergError) -> LoadedTable {
        var body: JSONValue = [
            "name": .string(table.name), "schema": schema.json, "stage-create": .boolean(isStaged), "properties": JSONValue(properties),
        ]
        if !spec.fields.isEmpty { body = body.with("partition-spec", spec.json) }
        if !order.fields.isEmpty { body = body.with("write-order", order.json) }
        body = body.with("location", location.map { .string($0) })
        let path = Self.path(table.namespace) + "/tables"
        let response = try connection.send("POST", path, body, isRepeatable: false, headers: delegation).response
        if response.status == 404 { throw .missing("namespace \(table.namespace.joined(separator: "."))") }
        guard response.isSuccess else { throw CatalogConnection.failure("create", "\(table)", response) }
        return try Self.loaded(response, "\(table)")
    }

    /// - Parameter isPurged: asks the catalog to remove its files as well.
    package func drop(_ table: TableIdentifier, isPurged: Bool = false) throws(IcebergError) {
        let outcome = try connection.send("DELETE", Self.path(table), query: [("purgeRequested", "\(isPurged)")])
        // The try before may have dropped it.
        if outcome.response.isSuccess || (outcome.response.status == 404 && outcome.isRepeated) { return }
        if outcome.response.status == 404 { throw .missing("table \(table)") }
        throw CatalogConnection.failure("drop", "\(table)", outcome.response)
    }

    package func rename(_ table: TableIdentifier, to name: TableIdentifier) throws(IcebergError) {
        let response = try connection.send("POST", "tables/rename", ["source": table.json, "destination": name.json], isRepeatable: false)
            .response
        if response.status == 404 { throw .missing("table \(table), or the namespace of \(name)") }
        guard response.isSuccess else { throw CatalogConnection.failure("rename", "\(table)", response) }
    }

    /// The tables of a namespace, all pages of them.
    package func tables(in namespace: [String]) throws(IcebergError) -> [TableIdentifier] {
        var found: [TableIdentifier] = []
        for item in try pages(Self.path(namespace) + "/tables", "identifiers", []) {
            do throws(BadBytes) { found.append(try TableIdentifier(item)) } catch {
                throw .malformed(location: "the list of tables", what: error.what)
            }
        }
        return found
    }

    // MARK: Namespaces

    /// The namespaces right below one, or all that are below none.
    package func namespaces(under parent: [String] = []) throws(IcebergError) -> [[String]] {
        let query = parent.isEmpty ? [] : [(name: "parent", value: parent.joined(separator: Self.separator))]
        return try pages("namespaces", "namespaces", query).map { item in (item.array ?? []).compactMap(\.string) }
    }

    /// The namespaces at any depth.
    /// - Throws: `malformed` when the catalog's answers lead nowhere: a namespace below itself would be walked for ever.
    package func allNamespaces() throws(IcebergError) -> [[String]] {
        var found: [[String]] = []
        var open = try namespaces()
        while let next = open.popLast() {
            found.append(next)
            guard found.count + open.count <= Self.listCountMax else {
                throw .unsupported("a catalog of more than \(Self.listCountMax) namespaces")
            }
            let below = try namespaces(under: next)
            guard below.allSatisfy({ $0.count == next.count + 1 && $0.starts(with: next) && $0.count <= Self.depthMax }) else {
                throw .malformed(location: next.joined(separator: "."), what: "the catalog names namespaces below it that are not, or too deep")
            }
            open += below
        }
        return found
    }

    package func exists(namespace: [String]) throws(IcebergError) -> Bool {
        // Not every catalog answers HEAD here.
        let response = try connection.send("GET", Self.path(namespace)).response
        if response.status == 404 { return false }
        guard response.isSuccess else { throw CatalogConnection.failure("look at", namespace.joined(separator: "."), response) }
        return true
    }

    /// - Throws: `commitConflict` when it is there already.
    package func create(namespace: [String], properties: [String: String] = [:]) throws(IcebergError) {
        let body: JSONValue = ["namespace": .array(namespace.map { .string($0) }), "properties": JSONValue(properties)]
        let response = try connection.send("POST", "namespaces", body, isRepeatable: false).response
        guard response.isSuccess else { throw CatalogConnection.failure("create", namespace.joined(separator: "."), response) }
    }

    /// - Throws: `missing`, or `commitConflict` while something is in it.
    package func drop(namespace: [String]) throws(IcebergError) {
        let response = try connection.send("DELETE", Self.path(namespace)).response
        guard response.isSuccess else { throw CatalogConnection.failure("drop", namespace.joined(separator: "."), response) }
    }

    // MARK: Parts

    /// Between the levels of a namespace, as the specification has it.
    private static let separator = "\u{1F}"
    /// The most that listings give.
    private static let listCountMax = 1_000_000
    private static let pageCountMax = 100_000
    /// Levels of namespaces.
    private static let depthMax = 64

    /// Asks for keys to the table's files, unless the user gave some or chose otherwise.
    private var delegation: HTTPHeaders {
        connection.options.properties["s3.access-key-id"] == nil ? ["X-Iceberg-Access-Delegation": "vended-credentials"] : [:]
    }

    static func path(_ namespace: [String]) -> String { "namespaces/" + PercentEncoding.encode(namespace.joined(separator: separator)) }
    static func path(_ table: TableIdentifier) -> String { path(table.namespace) + "/tables/" + PercentEncoding.encode(table.name) }

    private func pages(_ path: String, _ member: String, _ query: [(name: String, value: String)]) throws(IcebergError) -> [JSONValue] {
        var found: [JSONValue] = []
        var token: String?
        var pageCount = 0
        repeat {
            pageCount += 1
            // Catalogs that know pages give them only to who names a token, an empty one first.
            let page = query + [("pageToken", token ?? ""), ("pageSize", "1000")]
            let response = try connection.send("GET", path, query: page).response
            if response.status == 404 { throw .missing(path) }
            guard response.isSuccess else { throw CatalogConnection.failure("list", path, response) }
            let json = try CatalogConnection.json(response, path)
            found += json[member].array ?? []
            guard found.count <= Self.listCountMax else { throw .unsupported("a listing of more than \(Self.listCountMax) names") }
            let next = json["next-page-token"].string.flatMap { $0.isEmpty ? nil : $0 }
            guard next == nil || (next != token && pageCount < Self.pageCountMax) else {
                throw .malformed(location: path, what: "the catalog's list does not end")
            }
            token = next
        } while token != nil
        return found
    }

    private static func loaded(_ response: HTTPResponse, _ place: String) throws(IcebergError) -> LoadedTable {
        let json = try CatalogConnection.json(response, place)
        let metadata: TableMetadata
        do throws(BadBytes) { metadata = try TableMetadata(json.required("metadata")) } catch {
            throw .malformed(location: place, what: error.what)
        }
        let lent = VendedCredentials.config(json["storage-credentials"], for: metadata.location)
        return LoadedTable(
            metadata: metadata, metadataLocation: json["metadata-location"].string, config: json["config"].texts.merging(lent) { $1 })
    }

    /// Whether a request that failed so cannot have been carried out: it was not sent, or no token was to be had for it. All else may have
    /// happened after the catalog had it, an answer that is too long or no HTTP as well.
    private static func hadNoEffect(_ failure: IOFailure) -> Bool {
        RetryPolicy.isUnsent(failure) || failure.errorNumber == EACCES || failure.errorNumber == EINVAL
    }

    /// A commit's answer has no configuration, and from some catalogs nothing that can be read: the commit is made all the same.
    private static func committed(_ response: HTTPResponse, _ table: TableIdentifier) throws(IcebergError) -> LoadedTable {
        do throws(IcebergError) { return try loaded(response, "\(table)") } catch {
            throw .commitUnknown("\(table): the catalog took the commit, and its answer cannot be read: \(error)")
        }
    }
}
