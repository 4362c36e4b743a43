import MillBase
import MillCatalogClient
import MillIceberg
import MillIO

/// What sinks and sources of Iceberg tables both take: RisingWave's names.
extension ConnectorOptions {
    /// `database.name` and `table.name`.
    mutating func icebergTable() throws(SQLError) -> TableIdentifier {
        let kind = try take("catalog.type") ?? "rest"
        guard kind.lowercased() == "rest" else {
            throw SQLError(
                .featureNotSupported, "an Iceberg catalog of type \"\(kind)\" is not supported",
                hint: "Use catalog.type = 'rest', with the catalog that this server runs or any other that speaks Iceberg's REST protocol.")
        }
        let database = try require("database.name", hint: "Set it to the namespace that the table is in.")
        let name = try require("table.name", hint: "Set it to the table's name.")
        let table = TableIdentifier(namespace: database.split(separator: ".").map(String.init), name: name)
        guard !table.namespace.isEmpty else { throw invalid("database.name", database, expected: "a name") }
        return table
    }

    /// `catalog.uri` and what else a REST catalog and its store take.
    mutating func icebergCatalog() throws(SQLError) -> RESTCatalogOptions {
        var properties: [String: String] = [:]
        properties["catalog.uri"] = try require(
            "catalog.uri", hint: "Set it to where the catalog speaks Iceberg's REST protocol, such as 'http://localhost:8181/api/catalog'.")
        for option in [
            "warehouse.path", "catalog.credential", "catalog.scope", "catalog.token", "catalog.oauth2_server_uri", "catalog.header",
        ] {
            properties[option] = try take(option)
        }
        for (option, value) in takeAll(prefix: "s3.") { properties["s3." + option] = value }
        do throws(IOFailure) { return try RESTCatalogOptions(properties: properties) } catch {
            throw SQLError(.invalidParameterValue, error.detail ?? "the catalog's options make no sense")
        }
    }
}
