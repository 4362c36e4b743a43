import MillColumnar
import MillIO
import MillObjectStore
import MillTestKit

@testable import MillIceberg

/// A table of random rows that knows what is in it.
struct SampleTable {
    struct Place: Hashable {
        var path: String
        var position: Int64
    }

    let catalog: TestCatalog
    var table: IcebergTable
    var random: SeededGenerator
    /// The rows by where they are, in the columns of the schema that the table has now.
    var rows: [Place: [Scalar]] = [:]
    var files: [String: DataFile] = [:]

    static let fields: [NestedField] = [
        NestedField(1, "id", .long, isRequired: true), NestedField(2, "name", .string), NestedField(3, "at", .timestamptz),
        NestedField(4, "amount", .decimal(precision: 12, scale: 2)), NestedField(5, "flag", .boolean), NestedField(6, "small", .int),
        NestedField(7, "ratio", .double), NestedField(8, "part", .float), NestedField(9, "day", .date), NestedField(10, "hour", .time),
        NestedField(11, "local", .timestamp), NestedField(12, "bytes", .binary),
        NestedField(13, "wide", .decimal(precision: 38, scale: 10)),
        NestedField(14, "middle", .decimal(precision: 7, scale: 3)),
    ]

    static let spec = PartitionSpec([
        PartitionField(sourceID: 2, fieldID: 1000, name: "name_cut", .truncate(2)),
        PartitionField(sourceID: 1, fieldID: 1001, name: "id_bucket", .bucket(3)),
        PartitionField(sourceID: 9, fieldID: 1002, name: "day_month", .month),
    ])

    init(
        _ name: String, seed: UInt64, store: any ObjectStore = MemoryObjectStore(), root: String = "file:///lake", version: Int = 2,
        spec: PartitionSpec = PartitionSpec(), fields: [NestedField] = SampleTable.fields, properties: [String: String] = [:],
        catalogNumber: Int = 0
    ) throws {
        catalog = TestCatalog(store, number: catalogNumber)
        random = SeededGenerator(seed: seed)
        let metadata = TableMetadata(
            formatVersion: version, tableUUID: UUIDText.text((0..<16).map { UInt8($0 + catalogNumber) }) ?? "", location: root + "/" + name,
            schema: IcebergSchema(fields), spec: spec, properties: properties, nowMillis: 1_600_000_000_000)
        table = try catalog.create(TableIdentifier(namespace: ["test"], name: name), metadata)
    }

    var settings: CommitSettings { CommitSettings(pause: { _ in }) }
    var types: [SQLType] { table.metadata.currentSchema.fields.map { $0.type.sqlType ?? .varchar } }

    mutating func draw(_ field: NestedField) -> Scalar {
        if !field.isRequired, random.oneIn(5) { return .null }
        switch field.type {
        case .boolean: return .boolean(random.oneIn(2))
        case .int: return .int(Int64(random.number(-5...5)) * 1_000_003)
        case .long: return .int(Int64(random.number(-1_000_000_000_000...1_000_000_000_000)))
        case .float: return .float(Double(Float(random.number(-100...100)) / 8))
        case .double: return .float(random.oneIn(30) ? .nan : Double(random.number(-100_000...100_000)) / 7)
        case .decimal(let precision, let scale):
            let limit = min(precision, 18)
            let bound = Int(Decimal.powerOfTen(Int32(limit)) - 1)
            return .decimal(Decimal(unscaled: Int128(random.number(-bound...bound)), scale: Int32(scale)))
        case .date: return .int(Int64(random.number(18_000...18_100)))
        case .time: return .int(Int64(random.number(0...86_399_999_999)))
        case .timestamp, .timestamptz: return .int(Int64(random.number(1_500_000_000_000_000...1_700_000_000_000_000)))
        case .string: return .string(random.pick(["", "a", "north", "nörd", "south of everything there is", "ünder", "🦀 crab"]))
        case .uuid: return .string(UUIDText.text((0..<16).map { _ in UInt8(random.number(0...255)) }) ?? "")
        case .fixed(let count): return .bytes((0..<count).map { _ in UInt8(random.number(0...255)) })
        case .structure, .list, .map: return .string(canonical(json(field)))
        default: return .bytes((0..<random.number(0...30)).map { UInt8($0) })
        }
    }

    /// A value as JSON, a NULL among them where the field takes it.
    private mutating func json(_ field: NestedField) -> String {
        func quoted(_ text: String) -> String {
            var out: [UInt8] = []
            Array(text.utf8).withUnsafeBufferPointer { JSONCanonicalizer.appendString($0, to: &out) }
            return String(decoding: out, as: UTF8.self)
        }
        switch field.type {
        case .structure(let members):
            var parts: [String] = []
            for member in members {
                parts.append(quoted(member.name) + ":" + (member.isRequired || !random.oneIn(4) ? json(member) : "null"))
            }
            // JSON has no order of its own.
            return "{" + parts.shuffled(using: &random).joined(separator: ",") + "}"
        case .list(let element):
            let values = (0..<random.number(0...4)).map { _ in element.isRequired || !random.oneIn(5) ? json(element) : "null" }
            return "[" + values.joined(separator: ",") + "]"
        case .map(_, let value):
            let entries = (0..<random.number(0...3)).map { number in
                quoted("k\(number)") + ":" + (value.isRequired || !random.oneIn(5) ? json(value) : "null")
            }
            return "{" + entries.joined(separator: ",") + "}"
        default:
            var required = field
            required.isRequired = true
            switch draw(required) {
            case .string(let text): return quoted(text)
            case .boolean(let value): return "\(value)"
            case .int(let value) where field.type == .int || field.type == .long: return "\(value)"
            case .float(let value) where value.isFinite: return Column.constant(.float(value), .float64, count: 1).text(0) ?? ""
            case let value:
                return quoted(Column.constant(value, field.type.sqlType ?? .varchar, count: 1).text(0) ?? "")
            }
        }
    }

    private func canonical(_ text: String) -> String {
        var out: [UInt8] = []
        Array(text.utf8).withUnsafeBufferPointer { bytes in try? JSONCanonicalizer.canonicalize(bytes, to: &out) }
        return String(decoding: out, as: UTF8.self)
    }

    /// Columns of columns.
    static let nestedFields: [NestedField] = [
        NestedField(1, "id", .long, isRequired: true), NestedField(2, "tags", .list(NestedField(3, "element", .string))),
        NestedField(
            4, "point",
            .structure([
                NestedField(5, "x", .double), NestedField(6, "y", .int, isRequired: true), NestedField(7, "label", .string),
                NestedField(8, "path", .list(NestedField(9, "element", .structure([NestedField(10, "at", .long, isRequired: true)]), isRequired: true))),
            ])),
        NestedField(11, "counts", .map(key: NestedField(12, "key", .string, isRequired: true), value: NestedField(13, "value", .long))),
        NestedField(14, "grid", .list(NestedField(15, "element", .list(NestedField(16, "element", .int, isRequired: true))))),
        NestedField(17, "uid", .uuid), NestedField(18, "code", .fixed(4)),
        NestedField(
            19, "days",
            .map(
                key: NestedField(20, "key", .string, isRequired: true),
                value: NestedField(21, "value", .structure([NestedField(22, "day", .date), NestedField(23, "hour", .time)]), isRequired: true)),
            isRequired: true),
    ]

    /// Adds rows in one commit.
    @discardableResult
    mutating func append(_ count: Int, operation: SnapshotChange.Operation = .append, targetFileBytes: Int = 512 << 20) throws -> [DataFile]
    {
        let written = try write(count, targetFileBytes: targetFileBytes)
        let change =
            operation == .append
            ? SnapshotChange.append(written.files, summary: [("test.rows", "\(count)")]) : .overwriteAll(with: written.files)
        if operation != .append { rows = [:] }
        table = try SnapshotCommit.run(change, on: table, settings).table
        keep(written)
        return written.files
    }

    struct Written {
        var files: [DataFile]
        var rows: [Place: [Scalar]]
    }

    /// Writes files that are in no snapshot yet.
    mutating func write(_ count: Int, targetFileBytes: Int = 512 << 20) throws -> Written {
        let fields = table.metadata.currentSchema.fields
        var settings = DataFileWriter.Settings()
        settings.targetFileBytes = targetFileBytes
        settings.openFilesMax = random.pick([2, 64])
        settings.tellsReorderings = true
        let inputs = fields.map { DataFileWriter.Input($0.id, $0.type.sqlType ?? .varchar) }
        let writer = try DataFileWriter(table.metadata, inputs, table.store, settings, random: table.random)
        var written: [Place: [Scalar]] = [:]
        var left = count
        while left > 0 {
            let size = min(left, random.pick([1, 100, 4096]))
            var drawn: [[Scalar]] = []
            for _ in 0..<size { drawn.append(fields.map { draw($0) }) }
            let columns = fields.indices.map { index in
                let column = Column(inputs[index].type, capacity: size)
                for row in drawn { column.append(row[index]) }
                return column
            }
            for placement in try writer.append(columns, count: size) {
                for (offset, row) in placement.rows.enumerated() {
                    written[Place(path: placement.path, position: placement.firstPosition + Int64(offset))] = drawn[Int(row)]
                }
            }
            left -= size
        }
        let files = try writer.finish()
        // Where rows are in files that were sorted.
        for reordering in writer.takeReorderings() {
            let rows = reordering.positions.indices.map { written.removeValue(forKey: Place(path: reordering.path, position: Int64($0))) }
            for (row, position) in zip(rows, reordering.positions) {
                written[Place(path: reordering.path, position: Int64(position))] = row
            }
        }
        return Written(files: files, rows: written)
    }

    mutating func keep(_ written: Written) {
        rows.merge(written.rows) { $1 }
        for file in written.files { files[file.path] = file }
    }

    /// Takes about one in so many rows away.
    mutating func deletes(oneIn share: Int) -> [RowDeletes] {
        var byFile: [String: DeletedPositions] = [:]
        for place in rows.keys.sorted(by: { ($0.path, $0.position) < ($1.path, $1.position) }) where random.oneIn(share) {
            byFile[place.path, default: DeletedPositions()].insert(place.position)
        }
        return byFile.compactMap { path, positions in
            files[path].map { RowDeletes(dataFile: path, specID: $0.specID, partition: $0.partition, positions: positions) }
        }
    }

    mutating func delete(oneIn share: Int, adding count: Int = 0) throws {
        let gone = deletes(oneIn: share)
        let written = try write(count)
        let change = SnapshotChange.rowDelta(written.files, gone, basedOn: table.metadata.snapshot(ofBranch: "main")?.id)
        table = try SnapshotCommit.run(change, on: table, settings).table
        forget(gone)
        keep(written)
    }

    mutating func forget(_ gone: [RowDeletes]) {
        for delete in gone {
            for position in delete.positions.positions { rows[Place(path: delete.dataFile, position: position)] = nil }
        }
    }

    /// What a scan gives.
    func scanned(_ version: ScanPlan.Version = .current, where conditions: [ScanCondition] = []) throws -> [[Scalar]] {
        let plan = try ScanPlan(table, version, where: conditions)
        var result: [[Scalar]] = []
        for task in plan.tasks {
            let reader = try DataFileReader(task, plan, table, fieldIDs: plan.schema.fields.map(\.id), where: conditions)
            while let batch = try reader.next() {
                for row in 0..<batch.count { result.append(batch.columns.map { $0.scalar(row) }) }
            }
        }
        return result
    }

    /// In an order of their own, for comparing.
    static func sorted(_ rows: [[Scalar]]) -> [String] { rows.map { "\($0)" }.sorted() }

    var expected: [String] { Self.sorted(Array(rows.values)) }
}
