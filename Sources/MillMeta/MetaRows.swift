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
            let id: UInt32 = try row.value("id")
            let own = columns[id] ?? []
            let kindName: String = try row.value("kind")
            guard let kind = CatalogObject.Kind(rawValue: kindName), kind != .system else {
                throw SQLError(.dataCorrupted, "the stored object \"\(try row.value("name") as String)\" is of no known kind: \(kindName)")
            }
            var object = CatalogObject(
                id: ObjectID(id), schemaName: try row.value("schema_name"), name: try row.value("name"), kind: kind, columns: try own.map(column),
                primaryKey: try primaryKey(of: own),
                dependencies: try (dependencies[id] ?? []).map { ObjectID(try $0.value("depends_on")) }, definition: try row.value("definition"),
                options: try (options[id] ?? []).map { CatalogOption(try $0.value("name"), try $0.value("value")) })
            var failure: SQLError?
            if let text = try PlanText(row, "query") {
                do throws(SQLError) { object.query = try text.decoded(BoundQuery.self, of: object) } catch { failure = error }
            }
            if let text = try watermarks[id]?.first.flatMap({ try PlanText($0, "rule") }) {
                do throws(SQLError) { object.watermark = try text.decoded(SourceWatermark.self, of: object) } catch { failure = error }
            }
            let job = try jobs[id]?.first.map { try self.job($0, of: object) }
            let pause = try pauses[id]?.first.map {
                StoredPause(number: UInt64(bitPattern: try $0.value("number") as Int64), sinceMicros: try $0.value("since_micros"))
            }
            objects.append(StoredObject(object: object, origin: try origin(origins[id] ?? []), job: job, pause: pause, failure: failure))
        }
        return StoredCatalog(
            schemas: try String.fetchAll(database, sql: "SELECT name FROM schemas ORDER BY name"), catalogs: try attachments(database),
            nextID: ObjectID(try UInt32.fetchOne(database, sql: "SELECT value FROM counters WHERE name = 'next_object_id'") ?? 0),
            objects: objects)
    }

    private static func attachments(_ database: Database) throws -> [StoredAttachment] {
        let options = try Dictionary(grouping: Row.fetchAll(database, sql: "SELECT * FROM catalog_options ORDER BY catalog, position")) { row in
            try row.value("catalog") as String
        }
        return try String.fetchAll(database, sql: "SELECT name FROM catalogs ORDER BY name").map { name in
            StoredAttachment(name: name, options: try (options[name] ?? []).map { CatalogOption(try $0.value("name"), try $0.value("value")) })
        }
    }

    /// All rows of a table by the object they belong to, each object's in order.
    private static func rows(_ table: String, _ database: Database, order: String = "position") throws -> [UInt32: [Row]] {
        try Dictionary(grouping: Row.fetchAll(database, sql: "SELECT * FROM \(table) ORDER BY object_id, \(order)")) { try $0.value("object_id") }
    }

    private static func primaryKey(of columns: [Row]) throws -> [Int] {
        let places = try columns.indices.compactMap { index -> (place: Int, column: Int)? in
            let place: Int? = try columns[index].value("key_position")
            return place.map { ($0, index) }
        }
        return places.sorted { $0.place < $1.place }.map(\.column)
    }

    private static func origin(_ rows: [Row]) throws -> [SourceSplit: SplitOffset] {
        var origin: [SourceSplit: SplitOffset] = [:]
        for row in rows {
            let split = SourceSplit(name: try row.value("split"), topic: try row.value("topic"), partition: try row.value("partition"))
            origin[split] = SplitOffset(try row.value("position"))
        }
        return origin
    }

    private static func column(_ row: Row) throws -> CatalogColumn {
        let typeName: String = try row.value("type")
        guard let type = SQLType(name: typeName) else {
            throw SQLError(.dataCorrupted, "the stored column \"\(try row.value("name") as String)\" is of no known type: \(typeName)")
        }
        var column = CatalogColumn(
            try row.value("name"), type, isNullable: try row.value("nullable"), defaultText: try row.value("default_text"),
            isHidden: try row.value("hidden"))
        column.lengthMax = try row.value("length_max")
        return column
    }

    private static func job(_ row: Row, of object: CatalogObject) throws -> StoredJob {
        let stateName: String = try row.value("state")
        guard let state = JobState(rawValue: stateName), let text = try PlanText(row, "plan") else {
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
    fileprivate init?(_ row: Row, _ prefix: String) throws {
        guard let text = try row.value(prefix) as String? else { return nil }
        self.init(text: text, version: try row.value("\(prefix)_version") ?? 0, checksum: try row.value("\(prefix)_crc32c") ?? 0)
    }
}

extension Row {
    /// A column's value; a subscript would end the process for one that does not fit its type.
    fileprivate func value<T: DatabaseValueConvertible>(_ column: String) throws -> T { try decode(T.self, forColumn: column) }
}
