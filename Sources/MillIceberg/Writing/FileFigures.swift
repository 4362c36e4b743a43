import MillColumnar
import MillParquet

/// What manifests say of a Parquet file that was just written, from its footer.
enum FileFigures {
    /// - Parameters:
    ///   - columns: identifiers of the file's leaves, in its order, and the types of those that have bounds.
    ///   - nanCounts: by identifiers, of the columns of floats.
    static func fill(_ file: inout DataFile, _ footer: FileMetadata, columns: [(id: Int, boundsType: IcebergType?)], nanCounts: [Int: Int64]) {
        for (index, column) in columns.enumerated() {
            let summary = footer.summary(ofColumn: index)
            file.columnByteCounts[column.id] = summary.compressedByteCount
            file.valueCounts[column.id] = summary.valueCount
            file.nullCounts[column.id] = summary.nullCount
            guard let bounds = summary.bounds, let type = column.boundsType else { continue }
            var (lower, upper): (Scalar?, Scalar?)
            for bound in bounds {
                guard let min = value(bound.min, type), let max = value(bound.max, type) else { continue }
                if lower.map({ ScalarOrder.compare(min, $0) < 0 }) ?? true { lower = min }
                if upper.map({ ScalarOrder.compare(max, $0) > 0 }) ?? true { upper = max }
            }
            file.lowerBounds[column.id] = lower.flatMap { SingleValue.encode($0, type) }
            file.upperBounds[column.id] = upper.flatMap { SingleValue.encode($0, type) }
        }
        file.nanCounts = nanCounts
        file.splitOffsets = footer.rowGroupOffsets
    }

    /// Parquet's plain encoding is Iceberg's for everything but decimals that are stored as numbers.
    private static func value(_ bytes: [UInt8], _ type: IcebergType) -> Scalar? {
        guard case .decimal(let precision, let scale) = type, precision <= 18 else { return SingleValue.decode(bytes, type) }
        guard case .int(let unscaled)? = SingleValue.decode(bytes, .long) else { return nil }
        return .decimal(Decimal(unscaled: Int128(unscaled), scale: Int32(scale)))
    }
}
