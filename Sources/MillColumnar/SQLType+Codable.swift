/// A type is stored by its name, `numeric(10,2)`: names outlive the order of cases.
extension SQLType: Codable {
    private static let plain: [SQLType] = [
        .boolean, .int16, .int32, .int64, .float32, .float64, .numeric, .varchar, .bytea, .date, .time, .timestamp, .timestamptz, .interval,
        .jsonb, .unknown,
    ]
    private static let byName = Dictionary(uniqueKeysWithValues: plain.map { ($0.name, $0) })

    /// The type of which `name` is the name; nil when there is none.
    package init?(name: String) {
        if let type = Self.byName[name] {
            self = type
            return
        }
        guard name.hasPrefix("numeric("), name.hasSuffix(")") else { return nil }
        let digits = name.dropFirst("numeric(".count).dropLast().split(separator: ",", omittingEmptySubsequences: false).map { Int($0) }
        guard digits.count == 2, let precision = digits[0], let scale = digits[1], (1...38).contains(precision),
            (0...precision).contains(scale)
        else {
            return nil
        }
        self = .numeric(precision: precision, scale: scale)
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let name = try container.decode(String.self)
        guard let type = SQLType(name: name) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "there is no type \"\(name)\"")
        }
        self = type
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(name)
    }
}
