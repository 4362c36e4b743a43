import MillAvro
import MillColumnar

/// Reads a manifest's lines, with what they inherit from the line of the list that names it.
///
/// A file that the manifest adds has its snapshot and sequence numbers only from the list, since both are settled by the commit. Reads the
/// formats 1 to 3; of format 1 all numbers are zero and all files are data. Source: Iceberg specification, manifests, inheritance.
package struct ManifestReader {
    private var reader: AvroFileReader
    private let manifest: ManifestFile
    private let entry: RecordFields
    private let file: RecordFields
    private let partition: RecordFields
    /// The spec's fields in the partition record.
    private let partitionIDs: [Int]
    private var nextRowID: Int64?

    /// - Parameters:
    ///   - bytes: the manifest's.
    ///   - spec: that the list says it is of.
    package init(_ bytes: [UInt8], _ manifest: ManifestFile, _ spec: PartitionSpec) throws(IcebergError) {
        self.manifest = manifest
        do throws(AvroError) { reader = try AvroFileReader(bytes, file: manifest.path) } catch { throw .avro(error) }
        let written = ManifestSchemas.entry(partition: spec.fields.map { ($0, .int) }, version: 3)
        guard let record = reader.schema.record, let like = written.record else {
            throw .malformed(location: manifest.path, what: "its lines are no records")
        }
        entry = RecordFields(record, like: like)
        guard let fileRecord = entry.schema(ManifestSchemas.Entry.dataFile)?.record,
            let fileLike = like.fields.last?.schema.record
        else { throw .malformed(location: manifest.path, what: "its lines have no data file") }
        file = RecordFields(fileRecord, like: fileLike)
        let partitionRecord = file.schema(ManifestSchemas.File.partition)?.record ?? AvroRecord("r102", [])
        partition = RecordFields(
            partitionRecord, spec.fields.map { ($0.fieldID, ManifestSchemas.avroName($0.name)) })
        partitionIDs = spec.fields.map(\.fieldID)
        nextRowID = manifest.firstRowID
    }

    /// All lines, those of deleted files among them.
    package static func entries(_ bytes: [UInt8], _ manifest: ManifestFile, _ spec: PartitionSpec) throws(IcebergError) -> [ManifestEntry] {
        var reader = try ManifestReader(bytes, manifest, spec)
        var result: [ManifestEntry] = []
        while let entry = try reader.next() { result.append(entry) }
        return result
    }

    /// The next line; nil after the last one.
    package mutating func next() throws(IcebergError) -> ManifestEntry? {
        let value: AvroValue?
        do throws(AvroError) { value = try reader.next() } catch { throw .avro(error) }
        guard let value else { return nil }
        do throws(BadBytes) { return try entry(value.fields ?? []) } catch {
            throw .malformed(location: manifest.path, what: error.what)
        }
    }

    private mutating func entry(_ values: [AvroValue]) throws(BadBytes) -> ManifestEntry {
        typealias Field = ManifestSchemas.Entry
        guard let status = ManifestEntry.Status(rawValue: Int(try entry.required(Field.status, of: values))) else {
            throw BadBytes("a line has an unknown status")
        }
        var result = ManifestEntry(
            status, snapshotID: entry.int(Field.snapshotID, of: values) ?? manifest.addedSnapshotID,
            sequenceNumber: entry.int(Field.sequenceNumber, of: values),
            fileSequenceNumber: entry.int(Field.fileSequenceNumber, of: values),
            try dataFile(entry.value(Field.dataFile, of: values).fields ?? []))
        if !entry.has(Field.sequenceNumber) {
            (result.sequenceNumber, result.fileSequenceNumber) = (0, 0)
        } else if status == .added || manifest.sequenceNumber == 0 {
            result.sequenceNumber = result.sequenceNumber ?? manifest.sequenceNumber
            result.fileSequenceNumber = result.fileSequenceNumber ?? manifest.sequenceNumber
        }
        if result.sequenceNumber == nil, result.isLive { throw BadBytes("a file that was there before has no sequence number") }
        if result.isLive, result.file.firstRowID == nil, manifest.content == .data, let id = nextRowID {
            result.file.firstRowID = id
            let (next, overflow) = id.addingReportingOverflow(result.file.recordCount)
            guard !overflow else { throw BadBytes("its row identifiers leave their range") }
            nextRowID = next
        }
        return result
    }

    private func dataFile(_ values: [AvroValue]) throws(BadBytes) -> DataFile {
        typealias Field = ManifestSchemas.File
        var partitionValues: [Scalar] = []
        let record = file.value(Field.partition, of: values).fields ?? []
        for id in partitionIDs {
            guard let schema = partition.schema(id) else {
                partitionValues.append(.null)
                continue
            }
            partitionValues.append(try partition.value(id, of: record).scalar(schema))
        }
        let (recordCount, byteCount) = (
            try file.required(Field.recordCount, of: values), try file.required(Field.fileByteCount, of: values)
        )
        guard recordCount >= 0, byteCount >= 0 else { throw BadBytes("a file has fewer than no rows or bytes") }
        var result = DataFile(
            path: try file.requiredText(Field.path, of: values), specID: manifest.specID, partition: partitionValues,
            recordCount: recordCount,
            fileByteCount: byteCount)
        guard let content = DataFile.Content(rawValue: Int(file.int(Field.content, of: values) ?? 0)) else {
            throw BadBytes("a file has an unknown content")
        }
        result.content = content
        result.format = try file.requiredText(Field.format, of: values).uppercased()
        result.columnByteCounts = file.value(Field.columnByteCounts, of: values).pairs(\.int)
        result.valueCounts = file.value(Field.valueCounts, of: values).pairs(\.int)
        result.nullCounts = file.value(Field.nullCounts, of: values).pairs(\.int)
        result.nanCounts = file.value(Field.nanCounts, of: values).pairs(\.int)
        result.lowerBounds = file.value(Field.lowerBounds, of: values).pairs(\.bytes)
        result.upperBounds = file.value(Field.upperBounds, of: values).pairs(\.bytes)
        result.keyMetadata = file.bytes(Field.keyMetadata, of: values)
        result.splitOffsets = (file.value(Field.splitOffsets, of: values).elements ?? []).compactMap(\.int)
        result.equalityIDs = (file.value(Field.equalityIDs, of: values).elements ?? []).compactMap { $0.int.map { Int($0) } }
        result.sortOrderID = file.int(Field.sortOrderID, of: values).map { Int($0) }
        result.firstRowID = file.int(Field.firstRowID, of: values)
        result.referencedDataFile = file.string(Field.referencedDataFile, of: values)
        result.contentOffset = file.int(Field.contentOffset, of: values)
        result.contentByteCount = file.int(Field.contentByteCount, of: values)
        return result
    }
}
