package import MillColumnar

/// What rows a scan wants, as far as bounds can tell: rows that do not match may come all the same, rows that match never stay out.
package struct ScanCondition: Hashable, Sendable {
    package var fieldID: Int
    package var kind: Kind

    package enum Kind: Hashable, Sendable {
        /// At least the first and at most the second; nil is no bound. Values are of the column's type in SQL.
        case between(Scalar?, Scalar?)
        case isNull
        case isNotNull
    }

    package init(_ fieldID: Int, _ kind: Kind) { (self.fieldID, self.kind) = (fieldID, kind) }
}

/// Says by what manifests keep which files and manifests have no row that is wanted.
///
/// SQL has NaN above all numbers and bounds leave it out, so floats are never passed over for being too small where there may be NaN.
struct ScanPruning {
    private let conditions: [(condition: ScanCondition, type: IcebergType)]
    private let metadata: TableMetadata
    private var partitions: [Int: [PartitionTest]] = [:]

    /// A condition on a column as one on a partition field made of it.
    private struct PartitionTest {
        var place: Int
        var type: IcebergType
        var kind: ScanCondition.Kind
    }

    init(_ conditions: [ScanCondition], _ schema: IcebergSchema, _ metadata: TableMetadata) throws(IcebergError) {
        self.metadata = metadata
        self.conditions = conditions.compactMap { condition in schema.field(id: condition.fieldID).map { (condition, $0.type) } }
        for spec in metadata.partitionSpecs {
            let types = try metadata.partitionTypes(of: spec)
            partitions[spec.specID] = spec.fields.enumerated().flatMap { place, field in
                self.conditions.compactMap { condition, type in
                    guard field.sourceID == condition.fieldID, let kind = Self.projected(condition.kind, field.transform, type) else {
                        return nil
                    }
                    return PartitionTest(place: place, type: types[place], kind: kind)
                }
            }
        }
    }

    /// Rows within two bounds have partition values within the bounds' own, where the transform keeps the order; a bucket is that of one
    /// value.
    private static func projected(_ kind: ScanCondition.Kind, _ transform: Transform, _ type: IcebergType) -> ScanCondition.Kind? {
        switch transform {
        case .void, .unknown: return nil
        default: break
        }
        guard case .between(let lower, let upper) = kind else { return kind }
        if case .bucket = transform, lower == nil || lower != upper { return nil }
        func value(_ scalar: Scalar?) -> Scalar? {
            guard let scalar, let sqlType = type.sqlType else { return nil }
            let column = Column.constant(scalar, sqlType, count: 1)
            return transform.applied(to: column, of: type, count: 1)?.scalar(0)
        }
        let (low, high) = (value(lower), value(upper))
        guard low != nil || high != nil else { return nil }
        return .between(low, high)
    }

    func mayMatch(_ manifest: ManifestFile) -> Bool {
        guard let tests = partitions[manifest.specID] else { return true }
        return tests.allSatisfy { test in
            guard manifest.partitions.indices.contains(test.place) else { return true }
            let summary = manifest.partitions[test.place]
            switch test.kind {
            case .isNull: return summary.containsNull
            case .isNotNull: return summary.lower != nil || summary.containsNaN != false
            case .between(let lower, let upper):
                guard let least = summary.lower.flatMap({ SingleValue.decode($0, test.type) }),
                    let greatest = summary.upper.flatMap({ SingleValue.decode($0, test.type) })
                else { return true }
                return Self.overlaps(least, greatest, lower, upper, mayHaveNaN: summary.containsNaN ?? true)
            }
        }
    }

    func mayMatch(_ file: DataFile) -> Bool {
        let inPartition = (partitions[file.specID] ?? []).allSatisfy { test in
            guard file.partition.indices.contains(test.place) else { return true }
            let value = file.partition[test.place]
            switch test.kind {
            case .isNull: return value.isNull
            case .isNotNull: return !value.isNull
            case .between(let lower, let upper): return !value.isNull && Self.overlaps(value, value, lower, upper, mayHaveNaN: true)
            }
        }
        return inPartition && conditions.allSatisfy { mayMatch(file, $0.condition, $0.type) }
    }

    private func mayMatch(_ file: DataFile, _ condition: ScanCondition, _ type: IcebergType) -> Bool {
        let id = condition.fieldID
        let nulls = file.nullCounts[id]
        let values = file.valueCounts[id]
        switch condition.kind {
        case .isNull: return nulls != 0
        case .isNotNull: return nulls == nil || values == nil || nulls != values
        case .between(let lower, let upper):
            if let nulls, let values, nulls == values { return false }
            guard let least = file.lowerBounds[id].flatMap({ SingleValue.decode($0, type) }),
                let greatest = file.upperBounds[id].flatMap({ SingleValue.decode($0, type) })
            else { return true }
            return Self.overlaps(least, greatest, lower, upper, mayHaveNaN: file.nanCounts[id] != 0)
        }
    }

    private static func overlaps(_ least: Scalar, _ greatest: Scalar, _ lower: Scalar?, _ upper: Scalar?, mayHaveNaN: Bool) -> Bool {
        if let upper, !isNaN(upper), ScalarOrder.compare(least, upper) > 0 {
            // A partition of NaN alone is above every bound, and -NaN of other writers is one too.
            return isNaN(least)
        }
        if case .float = greatest, mayHaveNaN { return true }
        if let lower, ScalarOrder.compare(greatest, lower) < 0 { return false }
        return true
    }

    private static func isNaN(_ value: Scalar) -> Bool {
        if case .float(let number) = value { number.isNaN } else { false }
    }
}
