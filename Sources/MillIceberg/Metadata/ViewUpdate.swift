/// A change of a view's metadata, in the REST catalog's words. Where an identifier is -1 it means what the same commit added last.
package enum ViewUpdate: Hashable, Sendable {
    case assignUUID(String)
    case addSchema(IcebergSchema)
    case setLocation(String)
    case setProperties([String: String])
    case removeProperties([String])
    case addVersion(ViewMetadata.Version)
    case setCurrentVersion(Int)
    /// There is one format: nothing to do.
    case keepFormat

    package init(_ json: JSONValue) throws(BadBytes) {
        switch try json.requiredString("action") {
        case "assign-uuid": self = .assignUUID(try json.requiredString("uuid"))
        case "upgrade-format-version":
            guard try json.requiredInt("format-version") == 1 else { throw BadBytes("the format version of a view is 1") }
            self = .keepFormat
        case "add-schema": self = .addSchema(try IcebergSchema(try json.required("schema")))
        case "set-location": self = .setLocation(try json.requiredString("location"))
        case "set-properties": self = .setProperties(try json.required("updates").allTexts("updates"))
        case "remove-properties": self = .removeProperties(try json.required("removals").textList("removals"))
        case "add-view-version": self = .addVersion(try ViewMetadata.Version(try json.required("view-version")))
        case "set-current-view-version": self = .setCurrentVersion(try json.requiredInt("view-version-id"))
        case let action: throw BadBytes("there is no update \"\(action)\" of a view")
        }
    }
}

extension ViewMetadata {
    /// Versions that are kept unless `version.history.num-entries` says otherwise.
    private static let versionsKept = 10

    /// The view after updates, in their order.
    package func applying(_ updates: [ViewUpdate], nowMillis: Int64) throws(IcebergError) -> ViewMetadata {
        var view = self
        var (lastSchema, lastVersion): (Int?, Int?) = (nil, nil)
        var versionIDs: [Int: Int] = [:]
        for update in updates {
            switch update {
            case .assignUUID(let uuid):
                guard uuid.lowercased() == view.viewUUID.lowercased() else {
                    throw .badRequest("the view's UUID is \(view.viewUUID), it cannot become \(uuid)")
                }
            case .addSchema(let schema): lastSchema = view.add(schema)
            case .setLocation(let location): view.location = location
            case .setProperties(let properties): view.properties.merge(properties) { $1 }
            case .removeProperties(let names): for name in names { view.properties[name] = nil }
            case .addVersion(let version):
                lastVersion = try view.add(version, lastSchema)
                versionIDs[version.versionID] = lastVersion
            case .setCurrentVersion(let id):
                guard let found = id == -1 ? lastVersion : versionIDs[id] ?? id, view.versions.contains(where: { $0.versionID == found })
                else {
                    throw .badRequest("there is no version \(id) of the view")
                }
                guard found != view.currentVersionID || view.versionLog.isEmpty else { continue }
                view.currentVersionID = found
                view.versionLog.append(
                    LogEntry(timestampMillis: max(nowMillis, view.versionLog.last?.timestampMillis ?? 0), versionID: found))
            case .keepFormat: break
            }
        }
        view.forgetOldVersions()
        return view
    }

    private mutating func add(_ schema: IcebergSchema) -> Int {
        if let same = schemas.first(where: { $0.fields == schema.fields }) { return same.schemaID }
        var added = schema
        if schemas.contains(where: { $0.schemaID == schema.schemaID }) || schema.schemaID < 0 {
            added.schemaID = (schemas.map(\.schemaID).max() ?? -1) + 1
        }
        schemas.append(added)
        return added.schemaID
    }

    private mutating func add(_ version: Version, _ lastSchema: Int?) throws(IcebergError) -> Int {
        var added = version
        if added.schemaID == -1 {
            guard let lastSchema else { throw .badRequest("no schema was added that -1 could mean") }
            added.schemaID = lastSchema
        }
        guard schemas.contains(where: { $0.schemaID == added.schemaID }) else { throw .badRequest("there is no schema \(added.schemaID)") }
        if let same = versions.first(where: { $0.isSame(added) }) { return same.versionID }
        if versions.contains(where: { $0.versionID == added.versionID }) || added.versionID <= 0 {
            added.versionID = (versions.map(\.versionID).max() ?? 0) + 1
        }
        versions.append(added)
        return added.versionID
    }

    private mutating func forgetOldVersions() {
        let count = max(1, properties["version.history.num-entries"].flatMap { Int($0) } ?? Self.versionsKept)
        while versions.count > count, let oldest = versions.firstIndex(where: { $0.versionID != currentVersionID }) {
            versions.remove(at: oldest)
        }
        let kept = Set(versions.map(\.versionID))
        if let last = versionLog.lastIndex(where: { !kept.contains($0.versionID) }) { versionLog.removeSubrange(...last) }
    }
}
