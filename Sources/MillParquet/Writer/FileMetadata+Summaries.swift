/// What a footer says of a column over all row groups: for tables that keep such figures of their files.
package struct ParquetColumnSummary: Sendable {
    package var compressedByteCount: Int64 = 0
    package var valueCount: Int64 = 0
    package var nullCount: Int64 = 0
    /// The bounds of each row group that has values, in plain encoding; nil where one has values and no bounds.
    package var bounds: [ParquetBounds]? = []
}

package struct ParquetBounds: Hashable, Sendable {
    package var min: [UInt8]
    package var max: [UInt8]
}

extension FileMetadata {
    /// Of a leaf, by its place among the file's.
    package func summary(ofColumn index: Int) -> ParquetColumnSummary {
        var result = ParquetColumnSummary()
        for group in rowGroups where group.columns.indices.contains(index) {
            let chunk = group.columns[index]
            result.compressedByteCount += chunk.compressedByteCount
            result.valueCount += chunk.valueCount
            let nulls = chunk.statistics?.nullCount ?? 0
            result.nullCount += nulls
            if let min = chunk.statistics?.min, let max = chunk.statistics?.max {
                result.bounds?.append(ParquetBounds(min: min, max: max))
            } else if nulls < chunk.valueCount {
                result.bounds = nil
            }
        }
        return result
    }

    /// Where row groups begin in the file.
    package var rowGroupOffsets: [Int64] {
        rowGroups.compactMap { $0.columns.first.map { $0.dictionaryPageOffset ?? $0.dataPageOffset } }
    }
}
