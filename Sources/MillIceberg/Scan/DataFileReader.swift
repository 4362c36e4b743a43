import MillBase
package import MillColumnar
import MillIO
import MillObjectStore
import MillParquet

/// Reads rows of one data file as columns of the table, without those that are deleted.
///
/// Columns go by their identifiers, whatever they were called when the file was written. One that the file does not have is what the schema
/// says rows from before it have: its partition value, its initial default, or NULL. Threading: one thread at a time.
package final class DataFileReader {
    package struct Batch {
        package let columns: [Column]
        package let count: Int
        /// For each row its position in the file.
        package let positions: [Int64]
    }

    private enum Source {
        /// A column of the scan.
        case file(Int)
        case constant(Scalar)
    }

    private let scan: ParquetScan
    private let sources: [(source: Source, type: SQLType)]
    private let deleted: DeletedPositions
    private let equality: EqualityDeletes
    /// By which identifier each of `sources` goes; those behind `wantedCount` are read for equality deletes alone.
    private let fieldIDs: [Int]
    private let wantedCount: Int
    /// Rows of the file, deleted ones among them.
    package let rowCount: Int64
    /// The position in the file of what comes next.
    package private(set) var nextRow: Int64 = 0

    /// - Parameters:
    ///   - fieldIDs: the columns wanted, top-level ones of the plan's schema.
    ///   - conditions: as the plan was made with; rows that cannot match stay out where the file's bounds say so.
    ///   - firstRow: where to begin, as a position in the file.
    package init(
        _ task: ScanPlan.Task, _ plan: ScanPlan, _ table: IcebergTable, fieldIDs: [Int], where conditions: [ScanCondition] = [],
        from firstRow: Int64 = 0
    ) throws(IcebergError) {
        let data = task.file
        guard data.format == "PARQUET" else { throw .unsupported("data files of format \(data.format), as is \"\(data.path)\"") }
        guard data.keyMetadata == nil else { throw .unsupported("encrypted data files") }
        let object: any File
        do throws(IOFailure) { object = try table.store.openForReading(data.path) } catch { throw .io(error) }
        let file: ParquetFile
        do throws(ParquetError) { file = try ParquetFile(object) } catch { throw .parquet(error) }
        let places = FieldPlaces(file, plan.schema, table.metadata)
        equality = try EqualityDeletes(
            task.deletes.map(\.file).filter { $0.content == .equalityDeletes }, plan.schema, table.store)
        wantedCount = fieldIDs.count
        let fieldIDs = fieldIDs + equality.fieldIDs.filter { !fieldIDs.contains($0) }
        self.fieldIDs = fieldIDs
        var (sources, requests): ([(source: Source, type: SQLType)], [ParquetScan.Request]) = ([], [])
        for id in fieldIDs {
            guard let field = plan.schema.fields.first(where: { $0.id == id }) else {
                throw .badRequest("the table has no column with the identifier \(id)")
            }
            guard let type = field.type.sqlType else { throw .unsupported("column \"\(field.name)\" of type \(field.type)") }
            if let place = places.place(of: field) {
                sources.append((.file(requests.count), type))
                let isPlain = file.columns[place].type == .timestamp && type == .timestamptz
                requests.append(.init(place, as: isPlain ? nil : type, try field.type.projection()))
            } else {
                sources.append((.constant(try Self.missing(field, data, table.metadata)), type))
            }
        }
        var tests: [ParquetCondition] = []
        for condition in conditions {
            guard let field = plan.schema.fields.first(where: { $0.id == condition.fieldID }), let place = places.place(of: field),
                file.columns[place].type == field.type.sqlType
            else { continue }
            tests.append(ParquetCondition(column: place, condition.kind.inParquet))
        }
        do throws(ParquetError) { scan = try ParquetScan(file, requests, where: tests, from: firstRow) } catch { throw .parquet(error) }
        self.sources = sources
        rowCount = file.metadata.rowCount
        nextRow = firstRow
        deleted = task.deletes.isEmpty ? DeletedPositions() : try DeleteReader(store: table.store).positions(of: data, task.deletes)
    }

    /// What rows of a file have in a column that came after it.
    private static func missing(_ field: NestedField, _ file: DataFile, _ metadata: TableMetadata) throws(IcebergError) -> Scalar {
        // Files that were brought in from elsewhere may have a column in their directory's name only.
        if let spec = metadata.partitionSpec(id: file.specID),
            let place = spec.fields.firstIndex(where: { $0.sourceID == field.id && $0.transform == .identity }),
            file.partition.indices.contains(place)
        {
            return file.partition[place]
        }
        if let value = field.initialDefault {
            guard let scalar = value.scalar(field.type) else { throw .unsupported("the default of column \"\(field.name)\"") }
            return scalar
        }
        guard !field.isRequired else {
            throw .malformed(location: file.path, what: "it has no column \"\(field.name)\", which is required")
        }
        return .null
    }

    /// The next rows, of at most so many of the file; nil after the last one. A batch may be empty of rows, when all of them are deleted.
    package func next(atMost rowsMax: Int = Limits.batchRowsMax) throws(IcebergError) -> Batch? {
        if sources.allSatisfy({ if case .constant = $0.source { true } else { false } }) { return nextConstants(rowsMax) }
        let batch: ParquetScan.Batch?
        do throws(ParquetError) { batch = try scan.next(atMost: rowsMax) } catch { throw .parquet(error) }
        guard let batch else { return nil }
        nextRow = batch.firstRow + Int64(batch.count)
        return result(batch.columns, batch.count, batch.firstRow)
    }

    private func nextConstants(_ rowsMax: Int) -> Batch? {
        guard nextRow < rowCount else { return nil }
        let count = Int(min(rowCount - nextRow, Int64(min(rowsMax, Limits.batchRowsMax))))
        defer { nextRow += Int64(count) }
        return result([], count, nextRow)
    }

    private func result(_ read: [Column], _ count: Int, _ firstRow: Int64) -> Batch {
        var rows: [UInt32] = []
        let hasDeletes = !deleted.isEmpty || !equality.isEmpty
        if hasDeletes {
            let tested = equality.isEmpty ? [:] : columns(read, count)
            rows = (0..<UInt32(count)).filter { row in
                !deleted.contains(firstRow + Int64(row)) && !equality.contains(Int(row)) { tested[$0] }
            }
        }
        let isWhole = !hasDeletes || rows.count == count
        let kept = isWhole ? count : rows.count
        let columns = sources.prefix(wantedCount).map { source, type in
            switch source {
            case .constant(let value): return Column.constant(value, type, count: kept)
            case .file(let index):
                guard !isWhole else { return read[index] }
                return rows.withUnsafeBufferPointer { pointer in
                    guard let base = pointer.baseAddress, kept > 0 else { return Column(read[index].type, uninitialized: 0) }
                    return read[index].gather(base, count: kept)
                }
            }
        }
        let positions = isWhole ? (0..<Int64(count)).map { firstRow + $0 } : rows.map { firstRow + Int64($0) }
        return Batch(columns: columns, count: kept, positions: positions)
    }
}

extension DataFileReader {
    /// All columns of a batch by their identifiers.
    private func columns(_ read: [Column], _ count: Int) -> [Int: Column] {
        var result: [Int: Column] = [:]
        for (id, (source, type)) in zip(fieldIDs, sources) {
            switch source {
            case .constant(let value): result[id] = .constant(value, type, count: count)
            case .file(let place): result[id] = read[place]
            }
        }
        return result
    }
}

extension ScanCondition.Kind {
    fileprivate var inParquet: ParquetCondition.Kind {
        switch self {
        case .between(let lower, let upper): .between(lower, upper)
        case .isNull: .isNull
        case .isNotNull: .isNotNull
        }
    }
}

/// Where a table's columns are in a file: by identifiers, or in files without any by the names that the table's mapping has, or has now.
private struct FieldPlaces {
    private var byID: [Int: Int] = [:]
    private var byName: [String: Int]?

    init(_ file: ParquetFile, _ schema: IcebergSchema, _ metadata: TableMetadata) {
        for (place, column) in file.columns.enumerated() {
            if let id = column.fieldID { byID[Int(id)] = place }
        }
        guard byID.isEmpty else { return }
        let names = Dictionary(file.columns.enumerated().map { ($0.element.name, $0.offset) }) { first, _ in first }
        byName = names
        for (name, id) in NameMapping(metadata.properties["schema.name-mapping.default"]).identifiers {
            if let place = names[name] { byID[id] = place }
        }
    }

    func place(of field: NestedField) -> Int? {
        if let place = byID[field.id] { return place }
        return byID.isEmpty ? byName?[field.name] : nil
    }
}
