import MillColumnar

/// A partition's values as bytes, by which partitions are told apart: floats have one NaN here and decimals one form.
struct PartitionKey: Hashable, Sendable {
    private let values: [[UInt8]?]

    init(_ values: [Scalar], _ types: [IcebergType]) {
        self.values = zip(values, types).map { value, type in
            if case .float(let number) = value, number.isNaN { return [] }
            return SingleValue.encode(value, type)
        }
    }
}

/// Says to which partition each row of a batch belongs.
struct Partitioner {
    let spec: PartitionSpec
    /// Of the partition values, by the spec's fields.
    let types: [IcebergType]
    /// For each of the spec's fields: the place of its source among the file's columns, and the source's type.
    private let sources: [(place: Int?, type: IcebergType)]

    struct Part {
        var key: PartitionKey
        var values: [Scalar]
        /// Ascending.
        var rows: [UInt32]
        /// Whether these are all rows of the batch.
        var isWhole: Bool
    }

    init(_ table: TableMetadata, _ inputs: [DataFileWriter.Input], _ layout: FileLayout) throws(IcebergError) {
        spec = table.defaultPartitionSpec
        types = try table.partitionTypes(of: spec)
        var sources: [(place: Int?, type: IcebergType)] = []
        for field in spec.fields {
            let place = layout.fields.firstIndex { $0.id == field.sourceID }
            guard let source = table.currentSchema.field(id: field.sourceID) else {
                guard field.transform == .void else {
                    throw .unsupported("partition field \"\(field.name)\" of a column that is not in the schema")
                }
                sources.append((nil, .int))
                continue
            }
            // Of a column that is not written all is NULL, and so are its parts.
            if place == nil, field.transform != .void,
                let column = layout.fields.first(where: { IcebergSchema([$0]).field(id: field.sourceID) != nil })
            {
                throw .unsupported("partition field \"\(field.name)\" of a part of column \"\(column.name)\"")
            }
            sources.append((place, source.type))
        }
        self.sources = sources
    }

    /// - Parameter columns: as the file has them.
    func split(_ columns: [Column], count: Int) throws(IcebergError) -> [Part] {
        guard !spec.fields.isEmpty else {
            return [Part(key: PartitionKey([], []), values: [], rows: Array(0..<UInt32(count)), isWhole: true)]
        }
        var values: [Column] = []
        for (index, field) in spec.fields.enumerated() {
            let (place, type) = sources[index]
            guard let place else {
                values.append(.constant(.null, types[index].sqlType ?? .int32, count: count))
                continue
            }
            guard let column = field.transform.applied(to: columns[place], of: type, count: count) else {
                throw .unsupported("partitioning by \(field.transform) of \(type)")
            }
            values.append(column)
        }
        return parts(values, count)
    }

    private func parts(_ values: [Column], _ count: Int) -> [Part] {
        let hashes = [UInt64](unsafeUninitializedCapacity: count) { buffer, initialized in
            RowHash.hash(values, count: count, into: buffer.baseAddress.unsafelyUnwrapped)
            initialized = count
        }
        var byHash: [UInt64: [Int]] = [:]
        var groups: [[UInt32]] = []
        for row in 0..<count {
            let known = byHash[hashes[row]]?.first { group in
                let first = Int(groups[group][0])
                return values.allSatisfy { $0.equals(row, $0, first) }
            }
            if let known {
                groups[known].append(UInt32(row))
            } else {
                byHash[hashes[row], default: []].append(groups.count)
                groups.append([UInt32(row)])
            }
        }
        return groups.map { rows in
            let scalars = values.map { $0.scalar(Int(rows[0])) }
            return Part(key: PartitionKey(scalars, types), values: scalars, rows: rows, isWhole: rows.count == count)
        }
    }
}
