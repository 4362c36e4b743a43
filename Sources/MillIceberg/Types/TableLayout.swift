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
        for part in Self.parts(text) {
            let (transform, column) = try Self.transform(part)
            guard let source = schema.field(named: column) else {
                throw .badRequest("partition_by names column \"\(column)\", which there is not")
            }
            guard transform.resultType(of: source.type) != nil else {
                throw .badRequest("partition_by has \"\(part)\", but column \"\(column)\" is \(source.type)")
            }
            let name = Self.suffix(transform).map { column + "_" + $0 } ?? column
            guard !fields.contains(where: { $0.name == name }) else { throw .badRequest("partition_by has \"\(part)\" twice") }
            fields.append(PartitionField(sourceID: source.id, fieldID: 1000 + fields.count, name: name, transform))
        }
        self.init(fields)
    }

    /// What lies between the commas that are in no brackets.
    private static func parts(_ text: String) -> [String] {
        var (parts, depth) = ([""], 0)
        for character in text {
            if character == "(" { depth += 1 }
            if character == ")" { depth -= 1 }
            if character == ",", depth == 0 { parts.append("") } else { parts[parts.count - 1].append(character) }
        }
        return parts.map(trimmed).filter { !$0.isEmpty }
    }

    private static func trimmed(_ text: some StringProtocol) -> String {
        String(text.drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed())
    }

    private static func transform(_ part: String) throws(IcebergError) -> (Transform, column: String) {
        guard let open = part.firstIndex(of: "("), part.hasSuffix(")") else { return (.identity, part) }
        let name = trimmed(part[..<open]).lowercased()
        let arguments = part[part.index(after: open)...].dropLast().split(separator: ",", omittingEmptySubsequences: false).map(trimmed)
        let number = arguments.count == 2 ? arguments.compactMap { Int($0) }.first : nil
        let transform: Transform? =
            switch (name, arguments.count) {
            case ("identity", 1): .identity
            case ("year", 1), ("years", 1): .year
            case ("month", 1), ("months", 1): .month
            case ("day", 1), ("days", 1): .day
            case ("hour", 1), ("hours", 1): .hour
            case ("bucket", 2): number.flatMap { (1...Int(Int32.max)).contains($0) ? .bucket($0) : nil }
            case ("truncate", 2): number.flatMap { (1...Int(Int32.max)).contains($0) ? .truncate($0) : nil }
            default: nil
            }
        guard let transform, let column = arguments.first(where: { arguments.count == 1 || Int($0) == nil }) else {
            throw .badRequest(
                "partition_by has \"\(part)\", which is neither a column nor year, month, day, hour, bucket(n, c) or truncate(w, c)")
        }
        return (transform, column)
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
