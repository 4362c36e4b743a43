import MillBase
import MillColumnar
import MillIceberg

/// What is read of a table in place of its rows: its metadata tables. Names and columns are Spark's.
enum TablePart: String, CaseIterable {
    case snapshots, history, files, manifests, partitions, refs

    /// Whether it is of one snapshot, or of the table.
    var isOfSnapshot: Bool {
        switch self {
        case .files, .manifests, .partitions: true
        case .snapshots, .history, .refs: false
        }
    }

    var columns: [Field] {
        switch self {
        case .snapshots:
            [
                Field("committed_at", .timestamptz), Field("snapshot_id", .int64), Field("parent_id", .int64), Field("operation", .varchar),
                Field("manifest_list", .varchar), Field("summary", .jsonb),
            ]
        case .history:
            [
                Field("made_current_at", .timestamptz), Field("snapshot_id", .int64), Field("parent_id", .int64),
                Field("is_current_ancestor", .boolean),
            ]
        case .files:
            [
                Field("content", .int32), Field("file_path", .varchar), Field("file_format", .varchar), Field("spec_id", .int32),
                Field("partition", .jsonb), Field("record_count", .int64), Field("file_size_in_bytes", .int64), Field("value_counts", .jsonb),
                Field("null_value_counts", .jsonb), Field("nan_value_counts", .jsonb), Field("lower_bounds", .jsonb),
                Field("upper_bounds", .jsonb), Field("split_offsets", .jsonb), Field("equality_ids", .jsonb), Field("sort_order_id", .int32),
            ]
        case .manifests:
            [
                Field("content", .int32), Field("path", .varchar), Field("length", .int64), Field("partition_spec_id", .int32),
                Field("added_snapshot_id", .int64), Field("added_data_files_count", .int32), Field("existing_data_files_count", .int32),
                Field("deleted_data_files_count", .int32), Field("added_delete_files_count", .int32),
                Field("existing_delete_files_count", .int32), Field("deleted_delete_files_count", .int32),
            ]
        case .partitions:
            [
                Field("partition", .jsonb), Field("spec_id", .int32), Field("record_count", .int64), Field("file_count", .int32),
                Field("total_data_file_size_in_bytes", .int64), Field("position_delete_record_count", .int64),
                Field("position_delete_file_count", .int32), Field("equality_delete_record_count", .int64),
                Field("equality_delete_file_count", .int32),
            ]
        case .refs:
            [
                Field("name", .varchar), Field("type", .varchar), Field("snapshot_id", .int64), Field("max_reference_age_in_ms", .int64),
                Field("min_snapshots_to_keep", .int32), Field("max_snapshot_age_in_ms", .int64),
            ]
        }
    }

    func rows(of table: IcebergTable, snapshotID: Int64?) throws(IcebergError) -> [[Scalar]] {
        let metadata = table.metadata
        switch self {
        case .snapshots:
            return metadata.snapshots.map { snapshot in
                let summary = snapshot.summary.filter { $0.key != "operation" }.map { ($0.key, JSONValue.string($0.value)) }
                return [
                    .int(snapshot.timestampMillis.multipliedReportingOverflow(by: 1000).partialValue), .int(snapshot.id), .int(snapshot.parentID),
                    .string(snapshot.summaryValue("operation")), .string(snapshot.manifestList),
                    .json(.object(Dictionary(summary) { $1 })),
                ]
            }
        case .history:
            let ancestors = Self.ancestors(metadata)
            return metadata.snapshotLog.map { entry in
                [
                    .int(entry.timestampMillis.multipliedReportingOverflow(by: 1000).partialValue), .int(entry.snapshotID),
                    .int(metadata.snapshot(id: entry.snapshotID)?.parentID), .boolean(ancestors.contains(entry.snapshotID)),
                ]
            }
        case .refs:
            return metadata.references.sorted { $0.key < $1.key }.map { name, reference in
                [
                    .string(name), .string(reference.isBranch ? "BRANCH" : "TAG"), .int(reference.snapshotID), .int(reference.maxRefAgeMillis),
                    .int(reference.minSnapshotsToKeep.map(Int64.init)), .int(reference.maxSnapshotAgeMillis),
                ]
            }
        case .manifests:
            return try table.manifests(of: snapshotID.flatMap(metadata.snapshot)).map { manifest in
                func counts(_ content: ManifestFile.Content) -> [Scalar] {
                    [manifest.added, manifest.existing, manifest.deleted].map { .int(manifest.content == content ? Int64($0?.files ?? 0) : 0) }
                }
                return [
                    .int(Int64(manifest.content.rawValue)), .string(manifest.path), .int(manifest.byteCount), .int(Int64(manifest.specID)),
                    .int(manifest.addedSnapshotID),
                ] + counts(.data) + counts(.deletes)
            }
        case .files:
            var rows: [[Scalar]] = []
            for file in try Self.liveFiles(table, snapshotID) { rows.append(try Self.row(file, metadata)) }
            return rows
        case .partitions:
            return try Self.partitions(try Self.liveFiles(table, snapshotID), table.metadata)
        }
    }

    private static func ancestors(_ metadata: TableMetadata) -> Set<Int64> {
        var found: Set<Int64> = []
        var next = metadata.snapshot(ofBranch: "main")
        while let snapshot = next, found.insert(snapshot.id).inserted { next = snapshot.parentID.flatMap(metadata.snapshot) }
        return found
    }

    /// Data files first, in the order of the manifests.
    private static func liveFiles(_ table: IcebergTable, _ snapshotID: Int64?) throws(IcebergError) -> [DataFile] {
        var files: [DataFile] = []
        for manifest in try table.manifests(of: snapshotID.flatMap(table.metadata.snapshot)) where manifest.mayHaveLiveFiles {
            for entry in try table.entries(of: manifest) where entry.isLive { files.append(entry.file) }
        }
        return files.filter { $0.content == .data } + files.filter { $0.content != .data }
    }

    private static func row(_ file: DataFile, _ metadata: TableMetadata) throws(IcebergError) -> [Scalar] {
        func counts(_ values: [Int: Int64]) -> Scalar {
            .json(.object(Dictionary(values.map { (metadata.name(of: $0.key), .int($0.value)) }) { $1 }))
        }
        func bounds(_ values: [Int: [UInt8]]) -> Scalar {
            .json(.object(Dictionary(values.map { (metadata.name(of: $0.key), metadata.text(of: $0.value, $0.key)) }) { $1 }))
        }
        return [
            .int(Int64(file.content.rawValue)), .string(file.path), .string(file.format), .int(Int64(file.specID)),
            .json(try partition(file, metadata)), .int(file.recordCount), .int(file.fileByteCount), counts(file.valueCounts),
            counts(file.nullCounts), counts(file.nanCounts), bounds(file.lowerBounds), bounds(file.upperBounds),
            .json(.array(file.splitOffsets.map { .int($0) })), file.equalityIDs.isEmpty ? .null : .json(.array(file.equalityIDs.map { JSONValue($0) })),
            .int(file.sortOrderID.map(Int64.init)),
        ]
    }

    /// Its values by the names of the spec's fields, as text.
    private static func partition(_ file: DataFile, _ metadata: TableMetadata) throws(IcebergError) -> JSONValue {
        guard let spec = metadata.partitionSpec(id: file.specID) else { return .object([:]) }
        let types = try metadata.partitionTypes(of: spec)
        return .object(
            Dictionary(
                zip(spec.fields, zip(types, file.partition)).map { field, value in (field.name, JSONValue(text: value.1, of: value.0)) }) { $1 })
    }

    private static func partitions(_ files: [DataFile], _ metadata: TableMetadata) throws(IcebergError) -> [[Scalar]] {
        struct Sums {
            var specID: Int
            var partition: JSONValue
            var rows: Int64 = 0
            var files: Int64 = 0
            var bytes: Int64 = 0
            var deletes: [DataFile.Content: (rows: Int64, files: Int64)] = [:]
        }
        var sums: [String: Sums] = [:]
        for file in files {
            let partition = try partition(file, metadata)
            let key = "\(file.specID) \(partition.text)"
            var sum = sums[key] ?? Sums(specID: file.specID, partition: partition)
            if file.content == .data {
                sum.rows &+= file.recordCount
                sum.files += 1
                sum.bytes &+= file.fileByteCount
            } else {
                let before = sum.deletes[file.content] ?? (0, 0)
                sum.deletes[file.content] = (before.rows &+ file.recordCount, before.files + 1)
            }
            sums[key] = sum
        }
        return sums.sorted { $0.key < $1.key }.map { _, sum in
            let position = sum.deletes[.positionDeletes] ?? (0, 0)
            let equality = sum.deletes[.equalityDeletes] ?? (0, 0)
            return [
                .json(sum.partition), .int(Int64(sum.specID)), .int(sum.rows), .int(sum.files), .int(sum.bytes), .int(position.rows),
                .int(position.files), .int(equality.rows), .int(equality.files),
            ]
        }
    }
}

extension TableMetadata {
    fileprivate func name(of fieldID: Int) -> String {
        currentSchema.field(id: fieldID)?.name ?? schemas.lazy.compactMap { $0.field(id: fieldID)?.name }.first ?? "\(fieldID)"
    }

    /// A bound for people to read; null when it cannot be told.
    fileprivate func text(of bytes: [UInt8], _ fieldID: Int) -> JSONValue {
        guard let field = schemas.lazy.compactMap({ $0.field(id: fieldID) }).first, let value = SingleValue.decode(bytes, field.type) else {
            return .null
        }
        return JSONValue(text: value, of: field.type)
    }
}

extension JSONValue {
    fileprivate init(text value: Scalar, of type: IcebergType) {
        guard value != .null, let sqlType = type.sqlType else {
            self = .null
            return
        }
        self = Column.constant(value, sqlType, count: 1).text(0).map { .string($0) } ?? .null
    }
}

extension Scalar {
    fileprivate static func int(_ value: Int64?) -> Scalar { value.map { .int($0) } ?? .null }
    fileprivate static func string(_ value: String?) -> Scalar { value.map { .string($0) } ?? .null }
    /// As jsonb has it.
    fileprivate static func json(_ value: JSONValue) -> Scalar {
        var text = value.text
        var canonical: [UInt8] = []
        text.withUTF8 { bytes in
            // It fails for a zero byte alone, which no name or value of a table's metadata has.
            try? JSONCanonicalizer.canonicalize(bytes, to: &canonical)
        }
        return canonical.isEmpty ? .null : .string(String(decoding: canonical, as: UTF8.self))
    }
}
