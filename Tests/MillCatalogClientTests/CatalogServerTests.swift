import MillColumnar
import MillHTTPClient
import MillIceberg
import MillIO
import MillObjectStore
import MillTestKit
import Testing

@testable import MillCatalogClient

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Not a test by itself: does with a real catalog what `Scripts/test-catalog-client` says, so that another client can look at what we did
/// and we at what it did.
@Suite struct CatalogServerTests {
    private static let directory = Environment.system.variable("MILLRACE_CATALOG_PIPES")

    @Test(.enabled(if: directory != nil, "Scripts/test-catalog-client runs it")) func doesWithTablesWhatItIsTold() throws {
        var session = CatalogSession()
        try CommandPipes.serve(try #require(Self.directory)) { try session.run($0) }
    }
}

/// A catalog, and the tables that were loaded from it.
private struct CatalogSession {
    private var catalog: RESTCatalog?
    private var loaded: [String: LoadedTable] = [:]

    private func name(_ text: String) -> TableIdentifier {
        let parts = text.split(separator: ".").map(String.init)
        return TableIdentifier(namespace: Array(parts.dropLast()), name: parts.last ?? "")
    }

    mutating func run(_ words: [String]) throws -> String {
        if words[0] == "use" {
            var properties: [String: String] = [:]
            for pair in words.dropFirst() {
                let sides = pair.split(separator: "=", maxSplits: 1).map(String.init)
                properties[sides[0]] = sides.count > 1 ? sides[1] : ""
            }
            var options = try RESTCatalogOptions(properties: properties)
            options.retries = RetryPolicy(triesMax: 4, first: .milliseconds(50), last: .milliseconds(500), total: .seconds(5))
            catalog = RESTCatalog(options, transport: CurlTransport(), environment: .system)
            return ""
        }
        guard let catalog else { throw IOFailure("run", path: words[0], errorNumber: EINVAL) }
        switch words[0] {
        case "namespaces": return try catalog.namespaces().map { $0.joined(separator: ".") }.sorted().joined(separator: " ")
        case "make-namespace": try catalog.create(namespace: words[1].split(separator: ".").map(String.init))
        case "has-namespace": return "\(try catalog.exists(namespace: words[1].split(separator: ".").map(String.init)))"
        case "drop-namespace": try catalog.drop(namespace: words[1].split(separator: ".").map(String.init))
        case "tables":
            return try catalog.tables(in: words[1].split(separator: ".").map(String.init)).map(\.name).sorted().joined(separator: " ")
        default: return try runOnTable(catalog, words)
        }
        return ""
    }

    private mutating func runOnTable(_ catalog: RESTCatalog, _ words: [String]) throws -> String {
        let table = name(words[1])
        switch words[0] {
        case "create":
            let fields = [NestedField(1, "id", .long, isRequired: true), NestedField(2, "name", .string)]
            loaded[words[1]] = try catalog.create(table, schema: IcebergSchema(fields), properties: ["made.by": "us"])
        case "exists": return "\(try catalog.exists(table))"
        case "drop": try catalog.drop(table)
        case "load":
            let found = try catalog.load(table)
            loaded[words[1]] = found
            return
                "\(found.metadata.tableUUID)\t\(found.metadata.currentSchema.fields.map(\.name).joined(separator: ","))\t\(found.metadataLocation ?? "")"
        case "property":
            guard let known = loaded[words[1]]?.metadata else { throw IOFailure("load", path: words[1], errorNumber: ENOENT) }
            // What was known when it was loaded must still hold.
            let requirements: [TableRequirement] = [
                .assertTableUUID(known.tableUUID), .assertRefSnapshotID(ref: "main", snapshotID: known.references["main"]?.snapshotID),
            ]
            loaded[words[1]] = try catalog.commit(table, requirements: requirements, updates: [.setProperties([words[2]: words[3]])])
        case "append": try append(table, catalog, first: Int(words[2]) ?? 0, count: Int(words[3]) ?? 0)
        case "metadata": return "\(try store(table, catalog).0.get(loaded[words[1]]?.metadataLocation ?? "").count)"
        default: throw IOFailure("run", path: words[0], errorNumber: EINVAL)
        }
        return ""
    }

    private func store(_ table: TableIdentifier, _ catalog: RESTCatalog) throws -> (any ObjectStore, LoadedTable) {
        let found = try catalog.load(table)
        return (try catalog.store(for: table, found), found)
    }

    /// Rows of a number and its name, by one commit that is tried again after conflicts.
    private func append(_ identifier: TableIdentifier, _ catalog: RESTCatalog, first: Int, count: Int) throws {
        let environment = Environment.system
        let (store, found) = try store(identifier, catalog)
        let table = IcebergTable(
            identifier, metadata: found.metadata, catalog: catalog, store: store, clock: environment.clock, random: environment.random)
        let fields = found.metadata.currentSchema.fields
        let inputs = fields.map { DataFileWriter.Input($0.id, $0.type.sqlType ?? .varchar) }
        let writer = try DataFileWriter(found.metadata, inputs, store, random: environment.random)
        let columns = inputs.map { Column($0.type, capacity: count) }
        for number in first..<first + count {
            columns[0].append(.int(Int64(number)))
            columns[1].append(number % 10 == 0 ? .null : .string("row \(number)"))
        }
        try writer.append(columns, count: count)
        let clock = environment.clock
        _ = try SnapshotCommit.run(
            .append(try writer.finish(), summary: [("first", "\(first)")]), on: table, CommitSettings { clock.pause(for: $0) })
    }
}
