extension FileMetadata {
    func write(to out: OutputBytes) {
        var writer = CompactWriter(out)
        writer.element {
            $0.field(1, version)
            $0.field(2, list: schema, of: .structure) { writer, element in writer.element { element.write(to: &$0) } }
            $0.field(3, rowCount)
            $0.field(4, list: rowGroups, of: .structure) { writer, group in writer.element { group.write(to: &$0) } }
            if !keyValues.isEmpty {
                $0.field(5, list: keyValues, of: .structure) { writer, pair in
                    writer.element {
                        $0.field(1, pair.key)
                        if let value = pair.value { $0.field(2, value) }
                    }
                }
            }
            if let createdBy { $0.field(6, createdBy) }
            $0.field(7, list: orders, of: .structure) { writer, isTypeOrder in
                writer.element { if isTypeOrder { $0.field(1) { _ in } } }
            }
        }
    }
}

extension SchemaElement {
    fileprivate func write(to writer: inout CompactWriter) {
        if let type { writer.field(1, type.rawValue) }
        if let typeLength { writer.field(2, Int32(typeLength)) }
        if let repetition { writer.field(3, repetition.rawValue) }
        writer.field(4, name)
        if let childCount { writer.field(5, Int32(childCount)) }
        if let converted { writer.field(6, converted.rawValue) }
        if let scale { writer.field(7, Int32(scale)) }
        if let precision { writer.field(8, Int32(precision)) }
        if let fieldID { writer.field(9, fieldID) }
        if let logical { writer.field(10) { logical.write(to: &$0) } }
    }
}

extension RowGroupMetadata {
    fileprivate func write(to writer: inout CompactWriter) {
        writer.field(1, list: columns, of: .structure) { writer, column in writer.element { column.write(to: &$0) } }
        writer.field(2, byteCount)
        writer.field(3, rowCount)
        if let fileOffset { writer.field(5, fileOffset) }
        if let compressedByteCount { writer.field(6, compressedByteCount) }
        if let ordinal { writer.field(7, ordinal) }
    }
}

extension ColumnChunkMetadata {
    fileprivate func write(to writer: inout CompactWriter) {
        // The place of a copy of this structure behind the chunk, which nobody writes any more.
        writer.field(2, Int64(0))
        writer.field(3) { writeValues(to: &$0) }
        if let offsetIndex {
            writer.field(4, offsetIndex.offset)
            writer.field(5, offsetIndex.length)
        }
        if let columnIndex {
            writer.field(6, columnIndex.offset)
            writer.field(7, columnIndex.length)
        }
    }

    private func writeValues(to writer: inout CompactWriter) {
        writer.field(1, type.rawValue)
        writer.field(2, list: encodings, of: .int32) { $0.out.appendZigzag(Int64($1)) }
        writer.field(3, list: path, of: .binary) { $0.append(Array($1.utf8)) }
        writer.field(4, codec)
        writer.field(5, valueCount)
        writer.field(6, uncompressedByteCount)
        writer.field(7, compressedByteCount)
        writer.field(9, dataPageOffset)
        if let dictionaryPageOffset { writer.field(11, dictionaryPageOffset) }
        if let statistics { writer.field(12) { statistics.write(to: &$0) } }
        if !pageCounts.isEmpty {
            writer.field(13, list: pageCounts, of: .structure) { writer, entry in
                writer.element {
                    $0.field(1, entry.page)
                    $0.field(2, entry.encoding)
                    $0.field(3, entry.count)
                }
            }
        }
    }
}

extension ColumnStatistics {
    fileprivate func write(to writer: inout CompactWriter) {
        if let signedMax { writer.field(1, signedMax) }
        if let signedMin { writer.field(2, signedMin) }
        if let nullCount { writer.field(3, nullCount) }
        if let max { writer.field(5, max) }
        if let min { writer.field(6, min) }
        if let isMaxExact { writer.field(7, isMaxExact) }
        if let isMinExact { writer.field(8, isMinExact) }
    }
}
