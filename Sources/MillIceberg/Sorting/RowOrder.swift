import MillColumnar

/// By what the rows of a table's data files are sorted: the table's default sort order, over the columns that files have.
///
/// Rows become keys whose bytes compare as the order says. Transforms are applied to whole columns, as they are for partitions.
///
/// Source: Iceberg specification, sorting. Floats go by all their bits: -NaN, -infinity, ..., -0, 0, ..., infinity, NaN.
struct RowOrder: Sendable {
    /// What manifests say of files that are sorted by it.
    let orderID: Int

    private struct Term: Sendable {
        /// Of the column among the file's.
        var place: Int
        var type: IcebergType
        var transform: Transform
    }

    private let terms: [Term]
    private let encoder: KeyEncoder

    /// Whether a table has an order, and one that its files can be written in.
    enum Found {
        case unsorted
        case order(RowOrder)
        /// Rows are not sorted by this: why.
        case impossible(String)
    }

    /// - Parameter fields: the table's columns that files have, in the files' order.
    static func find(_ table: TableMetadata, _ fields: [NestedField]) -> Found {
        let order = table.defaultSortOrder
        guard order.orderID != 0 else { return .unsorted }
        var (terms, keys): ([Term], [KeyOrder]) = ([], [])
        for field in order.fields {
            guard let source = table.currentSchema.fields.first(where: { $0.id == field.sourceID }) else {
                return .impossible("it has a member of a column, or one that the table has no more")
            }
            guard let result = field.transform.resultType(of: source.type)?.sqlType else {
                return .impossible("it has \(field.transform) of column \"\(source.name)\"")
            }
            // All rows have NULL there, or the same: they are in order.
            guard field.transform != .void, let place = fields.firstIndex(where: { $0.id == source.id }) else { continue }
            terms.append(Term(place: place, type: source.type, transform: field.transform))
            keys.append(KeyOrder(comparable(result), descending: !field.isAscending, nullsFirst: field.nullsFirst))
        }
        guard !terms.isEmpty else { return .unsorted }
        return .order(RowOrder(orderID: order.orderID, terms: terms, encoder: KeyEncoder(order: keys)))
    }

    private static func comparable(_ type: SQLType) -> SQLType {
        switch type {
        case .float32: .int32
        case .float64: .int64
        default: type
        }
    }

    /// What the long texts of a batch take in its rows' keys.
    func textByteCount(_ columns: [Column]) -> Int {
        terms.reduce(0) { sum, term in
            term.transform == .identity ? sum + columns[term.place].heaps.reduce(0) { $0 + $1.byteCount } : sum
        }
    }

    /// Appends the keys of a batch's rows; columns are the file's.
    func appendKeys(_ columns: [Column], count: Int, to keys: inout EncodedKeys) throws(IcebergError) {
        var values: [Column] = []
        for term in terms {
            guard let value = term.transform.applied(to: columns[term.place], of: term.type, count: count) else {
                throw .unsupported("sorting by \(term.transform) of \(term.type)")
            }
            values.append(term.type == .uuid && term.transform == .identity ? value.canonicalUUIDs(count) : value.orderedBits(count))
        }
        encoder.append(values, count: count, to: &keys)
    }
}

extension Column {
    /// Floats as integers in the order of their bits; other columns as they are.
    fileprivate func orderedBits(_ count: Int) -> Column {
        switch type {
        case .float32: integers(.int32, count) { (bits: Int32) in bits < 0 ? bits ^ .max : bits }
        case .float64: integers(.int64, count) { (bits: Int64) in bits < 0 ? bits ^ .max : bits }
        default: self
        }
    }

    private func integers<T: FixedWidthInteger & BitwiseCopyable>(_ type: SQLType, _ count: Int, _ convert: (T) -> T) -> Column {
        let result = Column(type, uninitialized: count)
        let (from, to) = (UnsafePointer(values(T.self)), result.values(T.self))
        for row in 0..<count { to[row] = convert(from[row]) }
        result.copyNulls(of: self, count: count)
        return result
    }
}
