import MillAvro
import MillColumnar
package import MillIO

/// Writes a manifest into memory, and counts what its line of the list has to say.
///
/// One partition spec and one content to a manifest. What a snapshot adds has no sequence number of its own, so that the manifest stays as it
/// is when the commit is tried again on top of somebody else's.
package struct ManifestWriter {
    private let table: TableMetadata
    private let spec: PartitionSpec
    private let types: [IcebergType]
    private let content: ManifestFile.Content
    private let snapshotID: Int64
    private var writer: AvroFileWriter
    private var added = ManifestFile.Counts()
    private var existing = ManifestFile.Counts()
    private var deleted = ManifestFile.Counts()
    private var minSequenceNumber: Int64?
    private var summaries: [SummaryBuilder]

    /// - Throws: `unsupported` for tables of format 1, `malformed` for a spec that the table does not have.
    package init(_ table: TableMetadata, specID: Int, _ content: ManifestFile.Content, snapshotID: Int64, random: any RandomSource)
        throws(IcebergError)
    {
        guard table.formatVersion >= 2 else { throw .unsupported("writing to tables of format version 1") }
        guard let spec = table.partitionSpec(id: specID) else {
            throw .malformed(location: table.location, what: "it has no partition spec \(specID)")
        }
        self.table = table
        self.spec = spec
        types = try table.partitionTypes(of: spec)
        self.content = content
        self.snapshotID = snapshotID
        summaries = types.map { SummaryBuilder($0) }
        let schema = table.currentSchema
        writer = AvroFileWriter(
            ManifestSchemas.entry(partition: Array(zip(spec.fields, types)), version: table.formatVersion),
            metadata: [
                ("schema", schema.jsonText), ("schema-id", "\(schema.schemaID)"), ("partition-spec", spec.fieldsJSONText),
                ("partition-spec-id", "\(specID)"), ("format-version", "\(table.formatVersion)"),
                ("content", content == .data ? "data" : "deletes"),
            ], codec: .deflate(level: 6), random: random)
    }

    package var byteCount: Int { writer.byteCount }
    package var entryCount: Int { writer.objectCount }

    package mutating func append(_ entry: ManifestEntry) throws(IcebergError) {
        do throws(BadBytes) {
            let value = try Self.avro(entry, types, table.formatVersion)
            do throws(AvroError) { try writer.append(value) } catch { throw BadBytes("\(error)") }
        } catch { throw .malformed(location: entry.file.path, what: error.what) }
        let rows = entry.file.recordCount
        switch entry.status {
        case .added: added = .init(files: added.files + 1, rows: added.rows.plus(rows))
        case .existing: existing = .init(files: existing.files + 1, rows: existing.rows.plus(rows))
        case .deleted: deleted = .init(files: deleted.files + 1, rows: deleted.rows.plus(rows))
        }
        if entry.isLive, let number = entry.sequenceNumber { minSequenceNumber = min(minSequenceNumber ?? number, number) }
        for index in summaries.indices { summaries[index].add(entry.file.partition[index]) }
    }

    /// The manifest's bytes, and its line for a list.
    package mutating func finish(path: String) -> (bytes: [UInt8], manifest: ManifestFile) {
        let bytes = writer.finish()
        var manifest = ManifestFile(
            path: path, byteCount: Int64(bytes.count), specID: spec.specID, content: content, sequenceNumber: ManifestFile.unassigned,
            minSequenceNumber: minSequenceNumber ?? ManifestFile.unassigned, addedSnapshotID: snapshotID)
        // Files without a number get the commit's, which is above all others.
        (manifest.added, manifest.existing, manifest.deleted) = (added, existing, deleted)
        manifest.partitions = summaries.map(\.summary)
        return (bytes, manifest)
    }

    private static func avro(_ entry: ManifestEntry, _ types: [IcebergType], _ version: Int) throws(BadBytes) -> AvroValue {
        .record([
            .int(Int64(entry.status.rawValue)), optional(entry.snapshotID), optional(entry.sequenceNumber),
            optional(entry.fileSequenceNumber),
            try avro(entry.file, types, version),
        ])
    }

    /// In the order of `ManifestSchemas.dataFile`.
    private static func avro(_ file: DataFile, _ types: [IcebergType], _ version: Int) throws(BadBytes) -> AvroValue {
        guard file.partition.count == types.count else {
            throw BadBytes("it has \(file.partition.count) partition values, its spec \(types.count)")
        }
        var partition: [AvroValue] = []
        for (value, type) in zip(file.partition, types) { partition.append(try value.avro(type)) }
        var values: [AvroValue] = [
            .int(Int64(file.content.rawValue)), .string(file.path), .string(file.format), .record(partition), .int(file.recordCount),
            .int(file.fileByteCount), pairs(file.columnByteCounts) { .int($0) }, pairs(file.valueCounts) { .int($0) },
            pairs(file.nullCounts) { .int($0) }, pairs(file.nanCounts) { .int($0) }, pairs(file.lowerBounds) { .bytes($0) },
            pairs(file.upperBounds) { .bytes($0) }, file.keyMetadata.map { .bytes($0) } ?? .null,
            file.splitOffsets.isEmpty ? .null : .array(file.splitOffsets.map { .int($0) }),
            file.equalityIDs.isEmpty ? .null : .array(file.equalityIDs.map { .int(Int64($0)) }),
            optional(file.sortOrderID.map { Int64($0) }),
        ]
        if version >= 3 { values.append(optional(file.firstRowID)) }
        values.append(file.referencedDataFile.map { .string($0) } ?? .null)
        if version >= 3 { values += [optional(file.contentOffset), optional(file.contentByteCount)] }
        return .record(values)
    }

    private static func optional(_ value: Int64?) -> AvroValue { value.map { .int($0) } ?? .null }

    private static func pairs<T>(_ values: [Int: T], _ convert: (T) -> AvroValue) -> AvroValue {
        guard !values.isEmpty else { return .null }
        return .array(values.sorted { $0.key < $1.key }.map { .record([.int(Int64($0.key)), convert($0.value)]) })
    }
}

extension ManifestFile {
    /// The sequence number of a manifest whose commit has none yet.
    static let unassigned: Int64 = -1
}

/// What one partition field's values in a manifest are.
private struct SummaryBuilder {
    private let type: IcebergType
    private var containsNull = false
    private var containsNaN = false
    private var lower: Scalar?
    private var upper: Scalar?

    init(_ type: IcebergType) { self.type = type }

    mutating func add(_ value: Scalar) {
        switch value {
        case .null: containsNull = true
        case .float(let number) where number.isNaN: containsNaN = true
        default:
            if lower.map({ ScalarOrder.compare(value, $0) < 0 }) ?? true { lower = value }
            if upper.map({ ScalarOrder.compare(value, $0) > 0 }) ?? true { upper = value }
        }
    }

    var summary: PartitionSummary {
        PartitionSummary(
            containsNull: containsNull, containsNaN: containsNaN, lower: lower.flatMap { SingleValue.encode($0, type) },
            upper: upper.flatMap { SingleValue.encode($0, type) })
    }
}
