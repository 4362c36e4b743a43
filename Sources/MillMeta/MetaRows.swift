import GRDB
import MillBase
import MillCatalog
import MillColumnar
import MillConnectorKit
import MillPlan

/// Catalog objects to rows and back, inside a transaction of the caller's.
enum MetaRows {
    // MARK: Writing

    static func insert(_ object: CatalogObject, into database: Database) throws {
        // A materialized view means what its stream plan does.
        let query = object.kind == .view ? try object.query.map(PlanText.init(encoding:)) : nil
        try database.execute(
            sql: """
                INSERT INTO objects (id, schema_name, name, kind, definition, query, query_version, query_crc32c)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                object.id.number, object.schemaName, object.name, object.kind.rawValue, object.definition, query?.text, query?.version,
                query?.checksum,
            ])
        for (position, column) in object.columns.enumerated() {
            try database.execute(
                sql: """
                    INSERT INTO columns (object_id, position, name, type, nullable, default_text, length_max, hidden, key_position)
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                    """,
                arguments: [
                    object.id.number, position, column.name, column.type.name, column.isNullable, column.defaultText, column.lengthMax,
                    column.isHidden,
                    object.primaryKey.firstIndex(of: position),
                ])
        }
        if let watermark = object.watermark {
            let rule = try PlanText(encoding: watermark)
            try database.execute(
                sql: "INSERT INTO watermarks (object_id, rule, rule_version, rule_crc32c) VALUES (?, ?, ?, ?)",
                arguments: [object.id.number, rule.text, rule.version, rule.checksum])
        }
        for (position, option) in object.options.enumerated() {
            try database.execute(
                sql: "INSERT INTO options (object_id, position, name, value) VALUES (?, ?, ?, ?)",
                arguments: [object.id.number, position, option.name, option.value])
        }
        for (position, dependency) in object.dependencies.enumerated() {
            try database.execute(
                sql: "INSERT INTO dependencies (object_id, position, depends_on) VALUES (?, ?, ?)",
                arguments: [object.id.number, position, dependency.number])
        }
    }

    static func insert(_ origin: [SourceSplit: SplitOffset], of id: ObjectID, into database: Database) throws {
        for (split, offset) in origin {
            try database.execute(
                sql: "INSERT INTO origins (object_id, split, topic, partition, position) VALUES (?, ?, ?, ?, ?)",
                arguments: [id.number, split.name, split.topic, split.partition, offset.position])
        }
    }

    /// - Returns: the plan's checksum.
    static func put(_ plan: StreamPlan, _ state: JobState, of id: ObjectID, into database: Database) throws -> UInt32 {
        let stored = try PlanText(encoding: plan)
        try database.execute(
            sql: "INSERT OR REPLACE INTO jobs (object_id, state, plan, plan_version, plan_crc32c) VALUES (?, ?, ?, ?, ?)",
            arguments: [id.number, state.rawValue, stored.text, stored.version, stored.checksum])
        return stored.checksum
    }

    // MARK: Reading

    static func load(_ database: Database) throws -> StoredCatalog {
        let columns = try rows("columns", database)
        let options = try rows("options", database)
        let dependencies = try rows("dependencies", database)
        let origins = try rows("origins", database, order: "split")
        let jobs = try rows("jobs", database, order: "object_id")
        let pauses = try rows("pauses", database, order: "object_id")
        let watermarks = try rows("watermarks", database, order: "object_id")
        var objects: [StoredObject] = []
        for row in try Row.fetchAll(database, sql: "SELECT * FROM objects ORDER BY id") {
            let id: UInt32 = row["id"]
            let own = columns[id] ?? []
            let kindName: String = row["kind"]
            guard let kind = CatalogObject.Kind(rawValue: kindName), kind != .system else {
                throw SQLError(.dataCorrupted, "the stored object \"\(row["name"] as String)\" is of no known kind: \(kindName)")
            }
            var object = CatalogObject(
                id: ObjectID(id), schemaName: row["schema_name"], name: row["name"], kind: kind, columns: try own.map(column),
                primaryKey: primaryKey(of: own),
                dependencies: (dependencies[id] ?? []).map { ObjectID($0["depends_on"]) }, definition: row["definition"],
                options: (options[id] ?? []).map { CatalogOption($0["name"], $0["value"]) })
            var failure: SQLError?
            if let text = PlanText(row, "query") {
                do throws(SQLError) { object.query = try text.decoded(BoundQuery.self, of: object) } catch { failure = error }
            }
            if let text = watermarks[id]?.first.flatMap({ PlanText($0, "rule") }) {
                do throws(SQLError) { object.watermark = try text.decoded(SourceWatermark.self, of: object) } catch { failure = error }
            }
            let job = try jobs[id]?.first.map { try self.job($0, of: object) }
            let pause = pauses[id]?.first.map { UInt64(bitPattern: $0["number"] as Int64) }
            objects.append(StoredObject(object: object, origin: origin(origins[id] ?? []), job: job, pause: pause, failure: failure))
        }
        return StoredCatalog(
            schemas: try String.fetchAll(database, sql: "SELECT name FROM schemas ORDER BY name"),
            nextID: ObjectID(try UInt32.fetchOne(database, sql: "SELECT value FROM counters WHERE name = 'next_object_id'") ?? 0),
            objects: objects)
    }

    /// All rows of a table by the object they belong to, each object's in order.
    private static func rows(_ table: String, _ database: Database, order: String = "position") throws -> [UInt32: [Row]] {
        Dictionary(grouping: try Row.fetchAll(database, sql: "SELECT * FROM \(table) ORDER BY object_id, \(order)")) { $0["object_id"] }
    }

    private static func primaryKey(of columns: [Row]) -> [Int] {
        let places = columns.indices.compactMap { index -> (place: Int, column: Int)? in
            let place: Int? = columns[index]["key_position"]
            return place.map { ($0, index) }
        }
        return places.sorted { $0.place < $1.place }.map(\.column)
    }

    private static func origin(_ rows: [Row]) -> [SourceSplit: SplitOffset] {
        var origin: [SourceSplit: SplitOffset] = [:]
        for row in rows {
            let split = SourceSplit(name: row["split"], topic: row["topic"], partition: row["partition"])
            origin[split] = SplitOffset(row["position"])
        }
        return origin
    }

    private static func column(_ row: Row) throws -> CatalogColumn {
        let typeName: String = row["type"]
        guard let type = SQLType(name: typeName) else {
            throw SQLError(.dataCorrupted, "the stored column \"\(row["name"] as String)\" is of no known type: \(typeName)")
        }
        var column = CatalogColumn(
            row["name"], type, isNullable: row["nullable"], defaultText: row["default_text"], isHidden: row["hidden"])
        column.lengthMax = row["length_max"]
        return column
    }

    private static func job(_ row: Row, of object: CatalogObject) throws -> StoredJob {
        let stateName: String = row["state"]
        guard let state = JobState(rawValue: stateName), let text = PlanText(row, "plan") else {
            throw SQLError(.dataCorrupted, "the stored job of \"\(object.name)\" is in no known state: \(stateName)")
        }
        do throws(SQLError) {
            let plan = try text.decoded(StreamPlan.self, of: object)
            return StoredJob(state: state, planVersion: text.version, plan: .success(plan), planChecksum: text.checksum)
        } catch {
            return StoredJob(state: state, planVersion: text.version, plan: .failure(error), planChecksum: text.checksum)
        }
    }
}

extension PlanText {
    /// Columns `prefix`, `prefix_version` and `prefix_crc32c` of a row; nil when they are NULL.
    fileprivate init?(_ row: Row, _ prefix: String) {
        guard let text = row[prefix] as String? else { return nil }
        self.init(text: text, version: row["\(prefix)_version"] ?? 0, checksum: row["\(prefix)_crc32c"] ?? 0)
    }
}
