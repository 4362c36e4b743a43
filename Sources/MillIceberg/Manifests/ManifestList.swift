import MillAvro
package import MillIO

/// The list of a snapshot's manifests, as bytes.
///
/// Written for each try of a commit: only here do manifests get their sequence number and, in format 3, the first of their rows' identifiers.
package enum ManifestList {
    /// What the list says of its snapshot.
    package struct Header: Hashable, Sendable {
        package var snapshotID: Int64
        package var parentID: Int64?
        package var sequenceNumber: Int64
        package var formatVersion: Int
        /// v3: the table's next row identifier.
        package var firstRowID: Int64?

        package init(snapshotID: Int64, parentID: Int64?, sequenceNumber: Int64, formatVersion: Int, firstRowID: Int64?) {
            self.snapshotID = snapshotID
            self.parentID = parentID
            self.sequenceNumber = sequenceNumber
            self.formatVersion = formatVersion
            self.firstRowID = firstRowID
        }
    }

    /// Numbers the manifests that this commit adds, and writes all of them.
    /// - Returns: the bytes, the manifests as a reader will find them, and how many row identifiers they took.
    package static func write(_ manifests: [ManifestFile], _ header: Header, random: any RandomSource) throws(IcebergError)
        -> (bytes: [UInt8], manifests: [ManifestFile], assignedRows: Int64)
    {
        var metadata = [
            (key: "snapshot-id", value: "\(header.snapshotID)"), ("parent-snapshot-id", header.parentID.map { "\($0)" } ?? "null"),
            ("sequence-number", "\(header.sequenceNumber)"), ("format-version", "\(header.formatVersion)"),
        ]
        if let first = header.firstRowID { metadata.append(("first-row-id", "\(first)")) }
        var writer = AvroFileWriter(
            ManifestSchemas.list(version: header.formatVersion), metadata: metadata, codec: .deflate(level: 6), random: random)
        var nextRowID = header.firstRowID
        var numbered: [ManifestFile] = []
        for var manifest in manifests {
            if manifest.sequenceNumber == ManifestFile.unassigned {
                manifest.sequenceNumber = header.sequenceNumber
                if manifest.minSequenceNumber == ManifestFile.unassigned { manifest.minSequenceNumber = header.sequenceNumber }
            }
            if let id = nextRowID, manifest.content == .data, manifest.firstRowID == nil {
                manifest.firstRowID = id
                nextRowID = id.plus(manifest.added?.rows ?? 0).plus(manifest.existing?.rows ?? 0)
            }
            do throws(AvroError) { try writer.append(avro(manifest, header.formatVersion)) } catch { throw .avro(error) }
            numbered.append(manifest)
        }
        return (writer.finish(), numbered, (nextRowID ?? 0) - (header.firstRowID ?? 0))
    }

    private static func avro(_ manifest: ManifestFile, _ version: Int) -> AvroValue {
        let summaries = manifest.partitions.map { summary in
            AvroValue.record([
                .boolean(summary.containsNull), summary.containsNaN.map { .boolean($0) } ?? .null,
                summary.lower.map { .bytes($0) } ?? .null,
                summary.upper.map { .bytes($0) } ?? .null,
            ])
        }
        var values: [AvroValue] = [
            .string(manifest.path), .int(manifest.byteCount), .int(Int64(manifest.specID)), .int(Int64(manifest.content.rawValue)),
            .int(manifest.sequenceNumber), .int(manifest.minSequenceNumber), .int(manifest.addedSnapshotID),
        ]
        let counts = [manifest.added, manifest.existing, manifest.deleted].map { $0 ?? ManifestFile.Counts() }
        values += counts.map { .int(Int64($0.files)) }
        values += counts.map { .int($0.rows) }
        values.append(summaries.isEmpty ? .null : .array(summaries))
        values.append(manifest.keyMetadata.map { .bytes($0) } ?? .null)
        if version >= 3 { values.append(manifest.firstRowID.map { .int($0) } ?? .null) }
        return .record(values)
    }

    /// The manifests of a list, of format 1 to 3.
    package static func read(_ bytes: [UInt8], path: String) throws(IcebergError) -> [ManifestFile] {
        typealias Field = ManifestSchemas.List
        var reader: AvroFileReader
        do throws(AvroError) { reader = try AvroFileReader(bytes, file: path) } catch { throw .avro(error) }
        guard let record = reader.schema.record, let like = ManifestSchemas.list(version: 3).record else {
            throw .malformed(location: path, what: "its lines are no records")
        }
        let fields = RecordFields(record, like: like)
        var summaryFields: RecordFields?
        if case .array(let items, _)? = fields.schema(Field.partitions)?.unwrapped.encoded, let record = items.record {
            summaryFields = RecordFields(
                record,
                [
                    (Field.containsNull, "contains_null"), (Field.containsNaN, "contains_nan"), (Field.lower, "lower_bound"),
                    (Field.upper, "upper_bound"),
                ])
        }
        var result: [ManifestFile] = []
        while true {
            let value: AvroValue?
            do throws(AvroError) { value = try reader.next() } catch { throw .avro(error) }
            guard let values = value?.fields else { return result }
            do throws(BadBytes) { result.append(try manifest(values, fields, summaryFields)) } catch {
                throw .malformed(location: path, what: error.what)
            }
        }
    }

    private static func manifest(_ values: [AvroValue], _ fields: RecordFields, _ summaryFields: RecordFields?) throws(BadBytes)
        -> ManifestFile
    {
        typealias Field = ManifestSchemas.List
        guard let content = ManifestFile.Content(rawValue: Int(fields.int(Field.content, of: values) ?? 0)) else {
            throw BadBytes("a manifest has an unknown content")
        }
        var result = ManifestFile(
            path: try fields.requiredText(Field.path, of: values), byteCount: try fields.required(Field.byteCount, of: values),
            specID: Int(try fields.required(Field.specID, of: values)), content: content,
            sequenceNumber: fields.int(Field.sequenceNumber, of: values) ?? 0,
            minSequenceNumber: fields.int(Field.minSequenceNumber, of: values) ?? 0,
            addedSnapshotID: fields.int(Field.addedSnapshotID, of: values) ?? 0)
        func counts(_ files: Int, _ rows: Int) -> ManifestFile.Counts? {
            // Below zero is as good as not said.
            guard let count = fields.int(files, of: values), count >= 0 else { return nil }
            return ManifestFile.Counts(files: Int(count), rows: max(0, fields.int(rows, of: values) ?? 0))
        }
        guard result.byteCount >= 0 else { throw BadBytes("a manifest has fewer than no bytes") }
        result.added = counts(Field.addedFiles, Field.addedRows)
        result.existing = counts(Field.existingFiles, Field.existingRows)
        result.deleted = counts(Field.deletedFiles, Field.deletedRows)
        if let summaryFields {
            result.partitions = (fields.value(Field.partitions, of: values).elements ?? []).map { element in
                let parts = element.fields ?? []
                return PartitionSummary(
                    containsNull: summaryFields.value(Field.containsNull, of: parts).boolean ?? true,
                    containsNaN: summaryFields.value(Field.containsNaN, of: parts).boolean,
                    lower: summaryFields.bytes(Field.lower, of: parts),
                    upper: summaryFields.bytes(Field.upper, of: parts))
            }
        }
        result.keyMetadata = fields.bytes(Field.keyMetadata, of: values)
        result.firstRowID = fields.int(Field.firstRowID, of: values)
        return result
    }
}
