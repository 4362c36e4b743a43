import MillBase
package import MillColumnar

extension IcebergSchema {
    /// The schema of a table made for columns of SQL, numbered from 1.
    /// - Parameter required: names of the columns that take no NULL: the key's.
    package init(columns: Schema, required: Set<String> = []) {
        self.init(
            columns.enumerated().map { place, column in
                NestedField(place + 1, column.name, IcebergType(column.type), isRequired: required.contains(column.name))
            })
    }
}

extension PartitionSpec {
    /// Reads what a user writes: `day(at), bucket(16, id), region`. Names are matched exactly; an empty text is no partitioning.
    ///
    /// Fields are named as other engines name them: `at_day`, `id_bucket`, `region`.
    /// - Throws: `badRequest` naming what is not a column, not a transform, or not one for the column's type.
    package init(parsing text: String, _ schema: IcebergSchema) throws(IcebergError) {
        var fields: [PartitionField] = []
        for part in TransformedColumn.parts(text) {
            let (source, transform) = try TransformedColumn.parse(part, schema, option: "partition_by")
            let name = Self.suffix(transform).map { source.name + "_" + $0 } ?? source.name
            guard !fields.contains(where: { $0.name == name }) else { throw .badRequest("partition_by has \"\(part)\" twice") }
            fields.append(PartitionField(sourceID: source.id, fieldID: 1000 + fields.count, name: name, transform))
        }
        self.init(fields)
    }

    private static func suffix(_ transform: Transform) -> String? {
        switch transform {
        case .identity, .void, .unknown: nil
        case .bucket: "bucket"
        case .truncate: "trunc"
        case .year: "year"
        case .month: "month"
        case .day: "day"
        case .hour: "hour"
        }
    }
}

extension SortOrder {
    /// Reads what a user writes: `region, day(at) DESC, bucket(16, id) NULLS FIRST`. Names are matched exactly; an empty text is no order.
    /// Without NULLS, NULL counts as above all values, as in ORDER BY.
    /// - Throws: `badRequest` naming what is not a column, not a transform, or not one for the column's type.
    package init(parsing text: String, _ schema: IcebergSchema) throws(IcebergError) {
        var fields: [SortField] = []
        for part in TransformedColumn.parts(text) {
            var rest = part
            let nulls = Self.takeLast(["nulls first", "nulls last"], of: &rest)
            let direction = Self.takeLast(["asc", "desc"], of: &rest)
            let (source, transform) = try TransformedColumn.parse(rest, schema, option: "order_key")
            let isAscending = direction != "desc"
            let field = SortField(
                sourceID: source.id, transform, isAscending: isAscending, nullsFirst: nulls.map { $0 == "nulls first" } ?? !isAscending)
            guard !fields.contains(where: { $0.sourceID == source.id && $0.transform == transform }) else {
                throw .badRequest("order_key has \"\(rest)\" twice")
            }
            fields.append(field)
        }
        self.init(orderID: fields.isEmpty ? 0 : 1, fields)
    }

    /// Takes words off the end, in any case and with any blanks before them.
    private static func takeLast(_ phrases: [String], of text: inout String) -> String? {
        let words = text.split(whereSeparator: \.isWhitespace)
        for phrase in phrases {
            let wanted = phrase.split(separator: " ")
            guard words.count > wanted.count, zip(words.suffix(wanted.count), wanted).allSatisfy({ $0.lowercased() == $1 }),
                let end = words.dropLast(wanted.count).last?.endIndex
            else { continue }
            text = String(text[..<end])
            return phrase
        }
        return nil
    }
}
