import MillAvro
import MillColumnar

/// The Avro schemas of manifests and their lists. Field identifiers are the specification's, and by them files are read.
enum ManifestSchemas {
    /// Identifiers of `manifest_entry` and of `data_file` in it.
    enum Entry {
        static let status = 0
        static let snapshotID = 1
        static let dataFile = 2
        static let sequenceNumber = 3
        static let fileSequenceNumber = 4
    }

    enum File {
        static let path = 100
        static let format = 101
        static let partition = 102
        static let recordCount = 103
        static let fileByteCount = 104
        static let columnByteCounts = 108
        static let valueCounts = 109
        static let nullCounts = 110
        static let lowerBounds = 125
        static let upperBounds = 128
        static let keyMetadata = 131
        static let splitOffsets = 132
        static let content = 134
        static let equalityIDs = 135
        static let nanCounts = 137
        static let sortOrderID = 140
        static let firstRowID = 142
        static let referencedDataFile = 143
        static let contentOffset = 144
        static let contentByteCount = 145
    }

    /// - Parameter version: of the table's format: 2 or 3.
    static func entry(partition: [(field: PartitionField, type: IcebergType)], version: Int) -> AvroSchema {
        .record(
            AvroRecord(
                "manifest_entry",
                [
                    AvroField("status", .int, fieldID: Entry.status),
                    AvroField("snapshot_id", .optional(.long), fieldID: Entry.snapshotID),
                    AvroField("sequence_number", .optional(.long), fieldID: Entry.sequenceNumber),
                    AvroField("file_sequence_number", .optional(.long), fieldID: Entry.fileSequenceNumber),
                    AvroField("data_file", dataFile(partition, version), fieldID: Entry.dataFile),
                ]))
    }

    private static func dataFile(_ partition: [(field: PartitionField, type: IcebergType)], _ version: Int) -> AvroSchema {
        var fields = [
            AvroField("content", .int, fieldID: File.content),
            AvroField("file_path", .string, fieldID: File.path),
            AvroField("file_format", .string, fieldID: File.format),
            AvroField("partition", self.partition(partition), fieldID: File.partition),
            AvroField("record_count", .long, fieldID: File.recordCount),
            AvroField("file_size_in_bytes", .long, fieldID: File.fileByteCount),
            AvroField("column_sizes", map(.long, 117, 118), fieldID: File.columnByteCounts),
            AvroField("value_counts", map(.long, 119, 120), fieldID: File.valueCounts),
            AvroField("null_value_counts", map(.long, 121, 122), fieldID: File.nullCounts),
            AvroField("nan_value_counts", map(.long, 138, 139), fieldID: File.nanCounts),
            AvroField("lower_bounds", map(.bytes, 126, 127), fieldID: File.lowerBounds),
            AvroField("upper_bounds", map(.bytes, 129, 130), fieldID: File.upperBounds),
            AvroField("key_metadata", .optional(.bytes), fieldID: File.keyMetadata),
            AvroField("split_offsets", .optional(.array(.long, elementID: 133)), fieldID: File.splitOffsets),
            AvroField("equality_ids", .optional(.array(.int, elementID: 136)), fieldID: File.equalityIDs),
            AvroField("sort_order_id", .optional(.int), fieldID: File.sortOrderID),
        ]
        if version >= 3 { fields.append(AvroField("first_row_id", .optional(.long), fieldID: File.firstRowID)) }
        fields.append(AvroField("referenced_data_file", .optional(.string), fieldID: File.referencedDataFile))
        if version >= 3 {
            fields.append(AvroField("content_offset", .optional(.long), fieldID: File.contentOffset))
            fields.append(AvroField("content_size_in_bytes", .optional(.long), fieldID: File.contentByteCount))
        }
        return .record(AvroRecord("r2", fields))
    }

    /// Avro's maps have texts as keys: numbers make an array of pairs.
    private static func map(_ values: AvroSchema, _ keyID: Int, _ valueID: Int) -> AvroSchema {
        let pair = AvroRecord(
            "k\(keyID)_v\(valueID)", [AvroField("key", .int, fieldID: keyID), AvroField("value", values, fieldID: valueID)])
        return .optional(.logical(AvroLogicalType("map"), .array(.record(pair), elementID: nil)))
    }

    private static func partition(_ fields: [(field: PartitionField, type: IcebergType)]) -> AvroSchema {
        .record(
            AvroRecord(
                "r102",
                fields.map { field, type in
                    AvroField(avroName(field.name), .optional(avro(type, id: field.fieldID)), fieldID: field.fieldID)
                }))
    }

    /// Avro's names have letters, digits and underscores only; what else there is goes by its code, as the reference implementation has it.
    static func avroName(_ name: String) -> String {
        var result = ""
        for (index, scalar) in name.unicodeScalars.enumerated() {
            let isLetter = scalar == "_" || (scalar.isASCII && scalar.properties.isAlphabetic)
            let isDigit = ("0"..."9").contains(scalar)
            if isLetter || isDigit && index > 0 {
                result.unicodeScalars.append(scalar)
            } else {
                result += isDigit ? "_\(scalar)" : "_x" + String(scalar.value, radix: 16, uppercase: true)
            }
        }
        return result
    }

    private static func avro(_ type: IcebergType, id: Int) -> AvroSchema {
        switch type {
        case .boolean: .boolean
        case .int: .int
        case .long: .long
        case .float: .float
        case .double: .double
        case .date: .logical(AvroLogicalType("date"), .int)
        case .time: .logical(AvroLogicalType("time-micros"), .long)
        case .timestamp: .logical(AvroLogicalType("timestamp-micros", adjustsToUTC: false), .long)
        case .timestamptz: .logical(AvroLogicalType("timestamp-micros", adjustsToUTC: true), .long)
        case .decimal(let precision, let scale):
            .logical(
                AvroLogicalType("decimal", precision: precision, scale: scale),
                .fixed(name: "decimal_\(precision)_\(scale)", byteCount: decimalBytes(precision)))
        case .uuid: .logical(AvroLogicalType("uuid"), .fixed(name: "uuid_fixed", byteCount: 16))
        case .fixed(let count): .fixed(name: "fixed_\(count)", byteCount: count)
        case .binary: .bytes
        default: .string
        }
    }

    /// The fewest bytes that hold any number of so many digits, and its sign.
    static func decimalBytes(_ precision: Int) -> Int {
        SingleValue.decimalBytes(Decimal.powerOfTen(Int32(clamping: precision)) - 1).count
    }

    // MARK: Lists

    enum List {
        static let path = 500
        static let byteCount = 501
        static let specID = 502
        static let addedSnapshotID = 503
        static let addedFiles = 504
        static let existingFiles = 505
        static let deletedFiles = 506
        static let partitions = 507
        static let containsNull = 509
        static let lower = 510
        static let upper = 511
        static let addedRows = 512
        static let existingRows = 513
        static let deletedRows = 514
        static let sequenceNumber = 515
        static let minSequenceNumber = 516
        static let content = 517
        static let containsNaN = 518
        static let keyMetadata = 519
        static let firstRowID = 520
    }

    static func list(version: Int) -> AvroSchema {
        let summary = AvroRecord(
            "r508",
            [
                AvroField("contains_null", .boolean, fieldID: List.containsNull),
                AvroField("contains_nan", .optional(.boolean), fieldID: List.containsNaN),
                AvroField("lower_bound", .optional(.bytes), fieldID: List.lower),
                AvroField("upper_bound", .optional(.bytes), fieldID: List.upper),
            ])
        var fields = [
            AvroField("manifest_path", .string, fieldID: List.path),
            AvroField("manifest_length", .long, fieldID: List.byteCount),
            AvroField("partition_spec_id", .int, fieldID: List.specID),
            AvroField("content", .int, fieldID: List.content),
            AvroField("sequence_number", .long, fieldID: List.sequenceNumber),
            AvroField("min_sequence_number", .long, fieldID: List.minSequenceNumber),
            AvroField("added_snapshot_id", .long, fieldID: List.addedSnapshotID),
            AvroField("added_files_count", .int, fieldID: List.addedFiles),
            AvroField("existing_files_count", .int, fieldID: List.existingFiles),
            AvroField("deleted_files_count", .int, fieldID: List.deletedFiles),
            AvroField("added_rows_count", .long, fieldID: List.addedRows),
            AvroField("existing_rows_count", .long, fieldID: List.existingRows),
            AvroField("deleted_rows_count", .long, fieldID: List.deletedRows),
            AvroField("partitions", .optional(.array(.record(summary), elementID: 508)), fieldID: List.partitions),
            AvroField("key_metadata", .optional(.bytes), fieldID: List.keyMetadata),
        ]
        if version >= 3 { fields.append(AvroField("first_row_id", .optional(.long), fieldID: List.firstRowID)) }
        return .record(AvroRecord("manifest_file", fields))
    }
}
