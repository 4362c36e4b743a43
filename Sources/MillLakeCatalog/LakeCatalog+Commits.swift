import GRDB
import MillIO
import MillIceberg
import MillObjectStore

/// What one commit wants of one table.
struct TableChangeRequest: Sendable {
    var name: TableIdentifier
    var requirements: [TableRequirement]
    var updates: [TableUpdate]

    /// - Parameter name: of the path; nil takes it from the body.
    init(_ body: JSONValue, _ name: TableIdentifier?) throws {
        self.name = try name ?? TableIdentifier(body.required("identifier"))
        requirements = []
        for value in body["requirements"].array ?? [] { requirements.append(try TableRequirement(value)) }
        updates = []
        for value in body["updates"].array ?? [] { updates.append(try TableUpdate(value)) }
    }

    init(_ name: TableIdentifier, _ requirements: [TableRequirement], _ updates: [TableUpdate]) {
        (self.name, self.requirements, self.updates) = (name, requirements, updates)
    }
}

/// Commits, of one table or of several at once; the steps are in `LakeCatalog`.
extension LakeCatalog {
    /// A table of a commit, ready for the last step.
    private struct Prepared {
        var name: TableIdentifier
        /// What the row names now; nil for a new table.
        var before: String?
        var table: TableMetadata
        /// Where the new metadata goes; `before` when nothing changes.
        var location: String
        /// Old metadata files that the commit makes superfluous.
        var superfluous: [String] = []
    }

    func commitTable(_ name: TableIdentifier, _ call: Call) throws -> CatalogAnswer {
        let change = try TableChangeRequest(call.request.json(), name)
        try CatalogName.check(name.name, "table")
        try check(call.caller, .write, call.warehouse, name.namespace, name.name)
        let (table, location) = try commit([change], call.warehouse)[0]
        return CatalogAnswer(200, ["metadata-location": .string(location), "metadata": table.json])
    }

    func commitTransaction(_ call: Call) throws -> CatalogAnswer {
        guard call.request.method == "POST" else { throw Self.wrongMethod(call.request, "POST") }
        guard let values = try call.request.json()["table-changes"].array else {
            throw CatalogFailure.badRequest("\"table-changes\" is no list")
        }
        let changes = try values.map { try TableChangeRequest($0, nil) }
        for change in changes {
            try CatalogName.check(change.name.name, "table")
            try check(call.caller, .write, call.warehouse, change.name.namespace, change.name.name)
        }
        guard Set(changes.map(\.name)).count == changes.count else {
            throw CatalogFailure.badRequest("a table is in \"table-changes\" twice")
        }
        _ = try commit(changes, call.warehouse)
        return .done
    }

    /// All changes or none.
    func commit(_ changes: [TableChangeRequest], _ warehouse: Warehouse) throws -> [(table: TableMetadata, location: String)] {
        for _ in 0..<options.commitTriesMax {
            let prepared = try changes.map { try prepare($0, warehouse) }
            let isWritten = { (one: Prepared) in one.location != one.before }
            do { for one in prepared where isWritten(one) { try writeMetadata(one.table, one.location, warehouse) } } catch {
                forget(prepared.filter(isWritten).map(\.location), warehouse)
                throw error
            }
            if try swap(prepared, warehouse) {
                // What is not removed is found as an orphan.
                for one in prepared where !one.superfluous.isEmpty {
                    forget((try? own(one.superfluous, of: one.table.location, warehouse)) ?? [], warehouse)
                }
                return prepared.map { ($0.table, $0.location) }
            }
            forget(prepared.filter(isWritten).map(\.location), warehouse)
        }
        throw CatalogFailure.commitFailed("others changed the table \(options.commitTriesMax) times meanwhile")
    }

    private func prepare(_ change: TableChangeRequest, _ warehouse: Warehouse) throws -> Prepared {
        let creates = change.requirements.contains(.assertCreate)
        if creates, try database.read({ try EntryRow.find(change.name, warehouse, $0) }) == nil { return try prepareNew(change, warehouse) }
        let (base, before) = try load(change.name, warehouse)
        for requirement in change.requirements { try requirement.check(against: base) }
        var table = try base.applying(change.updates)
        guard table != base else { return Prepared(name: change.name, before: before, table: base, location: before) }
        table.lastUpdatedMillis = max(nowMillis, table.lastUpdatedMillis)
        if !Location.isSame(table.location, base.location) {
            let isTaken = try database.read { try EntryRow.isTaken(table.location, besides: Location.trimmed(base.location), $0) }
            guard !isTaken else { throw CatalogFailure.forbidden("location \(table.location.prefix(300)) is another table's") }
        }
        let superfluous = Self.log(before, of: base, in: &table)
        let location = try newMetadataLocation(table, after: before, warehouse)
        return Prepared(name: change.name, before: before, table: table, location: location, superfluous: superfluous)
    }

    private func prepareNew(_ change: TableChangeRequest, _ warehouse: Warehouse) throws -> Prepared {
        for requirement in change.requirements { try requirement.check(against: nil) }
        let location = try database.read { database in
            let namespace = try NamespaceRow.get(change.name.namespace, warehouse, database)
            let asked = change.updates.compactMap { update in if case .setLocation(let location) = update { location } else { nil } }.last
            return try newLocation(asked, change.name, namespace, warehouse, database)
        }
        var blank = TableMetadata.blank(nowMillis: nowMillis)
        blank.location = location
        let hasUUID = change.updates.contains { if case .assignUUID = $0 { true } else { false } }
        let table = try blank.applying((hasUUID ? [] : [.assignUUID(makeUUID())]) + change.updates, nowMillis: nowMillis)
        return Prepared(name: change.name, before: nil, table: table, location: try newMetadataLocation(table, after: nil, warehouse))
    }

    /// Notes the last metadata file in the table's log, as many as `write.metadata.previous-versions-max` says.
    ///
    /// - Returns: the files that fall out of the log and are to be removed.
    private static func log(_ location: String, of base: TableMetadata, in table: inout TableMetadata) -> [String] {
        table.metadataLog.append(.init(timestampMillis: base.lastUpdatedMillis, metadataFile: location))
        let count = max(1, table.properties["write.metadata.previous-versions-max"].flatMap { Int($0) } ?? 100)
        let fallen = table.metadataLog.prefix(max(0, table.metadataLog.count - count)).map(\.metadataFile)
        table.metadataLog.removeFirst(fallen.count)
        return table.properties["write.metadata.delete-after-commit.enabled"]?.lowercased() == "true" ? fallen : []
    }

    /// One transaction. False, and nothing is changed, when somebody else was faster.
    private func swap(_ prepared: [Prepared], _ warehouse: Warehouse) throws -> Bool {
        struct Lost: Error {}
        do {
            try database.write { database in
                for one in prepared {
                    guard let before = one.before else {
                        guard try EntryRow.find(one.name, warehouse, database) == nil else { throw Lost() }
                        try EntryRow.insert(
                            .table, one.name, location: one.table.location, metadataLocation: one.location, warehouse, database)
                        continue
                    }
                    try database.execute(
                        sql: """
                            UPDATE entries SET metadata_location = ?, location = ? WHERE metadata_location = ? AND kind = 'table' AND name = ?
                                AND namespace_id = (SELECT id FROM namespaces WHERE warehouse_id = ? AND path = ?)
                            """,
                        arguments: [
                            one.location, Location.trimmed(one.table.location), before, one.name.name, warehouse.id,
                            CatalogName.path(one.name.namespace),
                        ])
                    guard database.changesCount == 1 else { throw Lost() }
                }
            }
            return true
        } catch is Lost { return false } catch let failure as CatalogFailure {
            forget(prepared.filter { $0.location != $0.before }.map(\.location), warehouse)
            throw failure
        } catch {
            // The row may have been changed: the new file stays.
            throw CatalogFailure.commitUnknown(CatalogFailure(any: error).message)
        }
    }
}
