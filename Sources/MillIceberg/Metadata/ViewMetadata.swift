/// All that a view is, as its metadata file has it. Versions are kept as clients send them: what they say in SQL is theirs.
///
/// Source: Iceberg view specification, format version 1.
package struct ViewMetadata: Hashable, Sendable {
    package var viewUUID: String
    package var location: String
    package var schemas: [IcebergSchema] = []
    package var currentVersionID = 0
    package var versions: [Version] = []
    package var versionLog: [LogEntry] = []
    package var properties: [String: String] = [:]

    package struct Version: Hashable, Sendable {
        package var versionID: Int
        package var schemaID: Int
        package var timestampMillis: Int64
        /// Summary, representations, default catalog and namespace.
        package var members: JSONValue

        package init(_ json: JSONValue) throws(BadBytes) {
            versionID = try json.requiredInt("version-id")
            schemaID = try json.requiredInt("schema-id")
            timestampMillis = try json.requiredInt64("timestamp-ms")
            guard let representations = try json.required("representations").array, !representations.isEmpty else {
                throw BadBytes("a view version has no representations")
            }
            _ = try json.required("default-namespace")
            members = json
        }

        package var json: JSONValue {
            members.with("version-id", JSONValue(versionID)).with("schema-id", JSONValue(schemaID)).with(
                "timestamp-ms", .int(timestampMillis))
        }

        /// Whether it says the same as another, whatever its number and time.
        func isSame(_ other: Version) -> Bool {
            func bare(_ version: Version) -> JSONValue {
                version.members.with("version-id", 0).with("timestamp-ms", 0).with("schema-id", 0)
            }
            return schemaID == other.schemaID && bare(self) == bare(other)
        }
    }

    package struct LogEntry: Hashable, Sendable {
        package var timestampMillis: Int64
        package var versionID: Int
    }

    package init(viewUUID: String, location: String) { (self.viewUUID, self.location) = (viewUUID, location) }

    package init(_ bytes: [UInt8], location: String) throws(IcebergError) {
        do throws(BadBytes) { try self.init(JSONValue(bytes)) } catch { throw .malformed(location: location, what: error.what) }
    }

    package init(_ json: JSONValue) throws(BadBytes) {
        guard try json.requiredInt("format-version") == 1 else { throw BadBytes("the format version of the view is not 1") }
        self.init(viewUUID: try json.requiredString("view-uuid"), location: try json.requiredString("location"))
        for value in json["schemas"].array ?? [] { schemas.append(try IcebergSchema(value)) }
        currentVersionID = try json.requiredInt("current-version-id")
        for value in json["versions"].array ?? [] { versions.append(try Version(value)) }
        for value in json["version-log"].array ?? [] {
            versionLog.append(
                LogEntry(timestampMillis: try value.requiredInt64("timestamp-ms"), versionID: try value.requiredInt("version-id")))
        }
        properties = json["properties"].texts
    }

    package var json: JSONValue {
        [
            "view-uuid": .string(viewUUID), "format-version": 1, "location": .string(location), "schemas": .array(schemas.map(\.json)),
            "current-version-id": JSONValue(currentVersionID), "versions": .array(versions.map(\.json)),
            "version-log": .array(versionLog.map { ["timestamp-ms": .int($0.timestampMillis), "version-id": JSONValue($0.versionID)] }),
            "properties": JSONValue(properties),
        ]
    }
}
