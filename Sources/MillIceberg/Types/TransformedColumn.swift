/// A column with a transform, as a user writes it: `region`, `day(at)`, `bucket(16, id)`.
enum TransformedColumn {
    /// What lies between the commas that are in no brackets.
    static func parts(_ text: String) -> [String] {
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

    /// - Parameter option: of CREATE SINK, for what is wrong.
    static func parse(_ part: String, _ schema: IcebergSchema, option: String) throws(IcebergError) -> (NestedField, Transform) {
        let (transform, column) = try transform(part, option)
        guard let source = schema.field(named: column) else {
            throw .badRequest("\(option) names column \"\(column)\", which there is not")
        }
        guard transform.resultType(of: source.type) != nil else {
            throw .badRequest("\(option) has \"\(part)\", but column \"\(column)\" is \(source.type)")
        }
        return (source, transform)
    }

    private static func transform(_ part: String, _ option: String) throws(IcebergError) -> (Transform, column: String) {
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
                "\(option) has \"\(part)\", which is neither a column nor year, month, day, hour, bucket(n, c) or truncate(w, c)")
        }
        return (transform, column)
    }
}
