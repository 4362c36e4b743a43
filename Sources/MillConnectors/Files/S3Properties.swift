import MillBase

/// Options of statements for S3, as Iceberg's properties, RisingWave's sinks and RisingWave's sources write them.
enum S3Properties {
    private static let spellings: [[String]] = [
        ["s3.endpoint", "s3.endpoint_url"], ["s3.region", "client.region", "s3.region_name"],
        ["s3.access-key-id", "s3.access.key", "s3.credentials.access"], ["s3.secret-access-key", "s3.secret.key", "s3.credentials.secret"],
        ["s3.session-token", "s3.session.token"], ["s3.path-style-access", "s3.path.style.access"], ["s3.anonymous"],
    ]

    /// Takes them out; each under the first of its names, which `S3Options` reads.
    static func take(from options: inout ConnectorOptions) throws(SQLError) -> [String: String] {
        var properties: [String: String] = [:]
        for names in spellings { if let value = try options.take(names) { properties[names[0]] = value } }
        return properties
    }

    static func isLocation(_ path: String) -> Bool { ["s3://", "s3a://", "s3n://"].contains { path.hasPrefix($0) } }
}
