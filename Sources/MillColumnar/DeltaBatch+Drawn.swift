import MillBase

/// Batches written as text, for tests: one line says what a test means better than ten lines of builders.
///
///     id:int name:text; +1 1 ada; -1 2 'bob smith'; +1 3 null
///
/// First the columns as name:type, then a row per part: its weight and its values. Types are int, bigint, smallint, bool,
/// double, real, numeric, numeric(p,s), text, ts, tstz, date, interval, time, bytea and jsonb. Values: `null` in any type;
/// dates, times and timestamps as integers in the column's unit, an interval as months/days/micros; in quotes these four as
/// SQL text too ('2026-01-01 10:00'); bytea as `\x0aff`; strings bare, or in quotes (doubled inside) when they are empty, hold
/// a space, a quote or a semicolon, or read as null. Printing gives the integer forms: a difference of a unit stays visible.
extension DeltaBatch {
    /// The batch that `text` draws. A text that is not well-formed is a mistake in the test and stops it.
    package static func drawn(_ text: String) -> DeltaBatch {
        let parts = DrawnText.parts(text)
        let header = parts.first ?? []
        let types = header.map { field -> SQLType in
            let colon = field.text.lastIndex(of: ":")
            let name = colon.map { String(field.text[field.text.index(after: $0)...]) } ?? ""
            guard let type = DrawnText.type(name) else { preconditionFailure("a drawn column is name:type, not \(field.text)") }
            return type
        }
        let rows = parts.dropFirst().filter { !$0.isEmpty }
        let columns = types.map { Column($0, capacity: rows.count) }
        var weights: [Int64] = []
        for row in rows {
            precondition(row.count == types.count + 1, "a drawn row is a weight and \(types.count) values: \(row.map(\.text))")
            guard let weight = Int64(row[0].text) else { preconditionFailure("a drawn row starts with its weight, not \(row[0].text)") }
            weights.append(weight)
            for (column, word) in zip(columns, row.dropFirst()) { column.append(DrawnText.scalar(word, column.type)) }
        }
        let plain = weights.allSatisfy { $0 == 1 }
        return DeltaBatch(columns: columns, count: rows.count, weights: plain ? nil : Weights(weights))
    }

    /// The text that draws this batch, with columns named a, b, c ... unless `names` are given.
    package func drawn(names: [String]? = nil) -> String {
        let header = columns.indices.map { index in
            (names?[index] ?? DrawnText.columnName(index)) + ":" + DrawnText.name(columns[index].type)
        }
        let rows = (0..<count).map { row in
            let weight = weight(row)
            let values = columns.map { DrawnText.print($0.scalar(row), $0.type) }
            return ([weight > 0 ? "+\(weight)" : "\(weight)"] + values).joined(separator: " ")
        }
        return ([header.joined(separator: " ")] + rows).joined(separator: "; ")
    }

    /// The text that draws this batch, with columns named a, b, c ...
    package var drawn: String { drawn() }
}

private enum DrawnText {
    struct Word {
        var text: String
        var isQuoted: Bool
    }

    /// Words by part: blanks part words, semicolons outside quotes part rows.
    static func parts(_ text: String) -> [[Word]] {
        var parts: [[Word]] = [[]]
        var word = ""
        var isOpen = false
        var isQuoted = false
        var rest = text[...]
        func take() {
            if isOpen { parts[parts.count - 1].append(Word(text: word, isQuoted: isQuoted)) }
            word = ""
            isOpen = false
            isQuoted = false
        }
        while let character = rest.popFirst() {
            if character == "'" {
                isOpen = true
                isQuoted = true
                while let inner = rest.popFirst() {
                    if inner == "'" {
                        guard rest.first == "'" else { break }
                        rest.removeFirst()
                    }
                    word.append(inner)
                }
            } else if character == ";" {
                take()
                parts.append([])
            } else if character.isWhitespace {
                take()
            } else {
                isOpen = true
                word.append(character)
            }
        }
        take()
        return parts
    }

    private static let types: [(name: String, type: SQLType)] = [
        ("int", .int32), ("bigint", .int64), ("smallint", .int16), ("bool", .boolean), ("double", .float64), ("real", .float32),
        ("numeric", .numeric), ("text", .varchar), ("ts", .timestamp), ("tstz", .timestamptz), ("date", .date), ("interval", .interval),
        ("time", .time), ("bytea", .bytea), ("jsonb", .jsonb),
    ]

    static func type(_ name: String) -> SQLType? {
        if name.hasPrefix("numeric("), name.hasSuffix(")") {
            let limits = name.dropFirst(8).dropLast().split(separator: ",").map { Int($0) }
            guard limits.count == 2, let precision = limits[0], let scale = limits[1] else { return nil }
            return .numeric(precision: precision, scale: scale)
        }
        return types.first { $0.name == name }?.type
    }

    static func name(_ type: SQLType) -> String {
        if case .numeric(let precision?, let scale) = type { return "numeric(\(precision),\(scale ?? 0))" }
        return types.first { $0.type == type }?.name ?? type.name
    }

    static func columnName(_ index: Int) -> String {
        index < 26 ? String(UnicodeScalar(UInt8(97 + index))) : "c\(index)"
    }

    static func scalar(_ word: Word, _ type: SQLType) -> Scalar {
        if !word.isQuoted && word.text == "null" { return .null }
        if word.isQuoted, isTemporal(type) {
            do throws(SQLError) {
                return try TextInput.scalar(word.text, as: type)
            } catch {
                preconditionFailure("\(word.text) is not a drawn value: \(error)")
            }
        }
        let value: Scalar? =
            switch type.physical {
            case .bool8: ["t": true, "true": true, "f": false, "false": false][word.text].map(Scalar.boolean)
            case .int16: Int16(word.text).map { .int(Int64($0)) }
            case .int32: Int32(word.text).map { .int(Int64($0)) }
            case .int64: Int64(word.text).map { .int($0) }
            case .float32: Float(word.text).map { .float(Double($0)) }
            case .float64: Double(word.text).map { .float($0) }
            case .decimal: decimal(word.text).map { .decimal($0) }
            case .interval: interval(word.text).map { .interval($0) }
            case .string: type == .bytea ? bytes(word.text).map { .bytes($0) } : .string(word.text)
            }
        guard let value else { preconditionFailure("\(word.text) is not a drawn value of type \(name(type))") }
        return value
    }

    private static func isTemporal(_ type: SQLType) -> Bool {
        switch type {
        case .date, .time, .timestamp, .timestamptz, .interval: true
        default: false
        }
    }

    static func print(_ scalar: Scalar, _ type: SQLType) -> String {
        switch scalar {
        case .null: "null"
        case .boolean(let value): value ? "true" : "false"
        case .int(let value): "\(value)"
        case .float(let value): type == .float32 ? "\(Float(value))" : "\(value)"
        case .decimal(let value): print(value)
        case .interval(let value): "\(value.months)/\(value.days)/\(value.micros)"
        case .string(let value): quoted(value)
        case .bytes(let value): "\\x" + value.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        }
    }

    private static func quoted(_ text: String) -> String {
        let isPlain = !text.isEmpty && text != "null" && !text.contains { $0.isWhitespace || $0 == "'" || $0 == ";" }
        return isPlain ? text : "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "''") + "'"
    }

    private static func print(_ value: Decimal) -> String {
        switch value.kind {
        case .nan: return "nan"
        case .positiveInfinity: return "inf"
        case .negativeInfinity: return "-inf"
        case .finite: break
        }
        var digits = String(value.unscaled.magnitude)
        let scale = Int(value.scale)
        if scale > 0 {
            if digits.count <= scale { digits = String(repeating: "0", count: scale - digits.count + 1) + digits }
            digits.insert(".", at: digits.index(digits.endIndex, offsetBy: -scale))
        }
        return (value.unscaled < 0 ? "-" : "") + digits
    }

    private static func decimal(_ text: String) -> Decimal? {
        switch text {
        case "nan": return Decimal(.nan)
        case "inf": return Decimal(.positiveInfinity)
        case "-inf": return Decimal(.negativeInfinity)
        default: break
        }
        let halves = text.split(separator: ".", omittingEmptySubsequences: false)
        guard halves.count <= 2, let unscaled = Int128(halves.joined()) else { return nil }
        return Decimal(unscaled: unscaled, scale: Int32(halves.count == 2 ? halves[1].count : 0))
    }

    private static func interval(_ text: String) -> Interval? {
        let parts = text.split(separator: "/")
        guard parts.count == 3, let months = Int32(parts[0]), let days = Int32(parts[1]), let micros = Int64(parts[2]) else { return nil }
        return Interval(months: months, days: days, micros: micros)
    }

    private static func bytes(_ text: String) -> [UInt8]? {
        guard text.hasPrefix("\\x"), text.count % 2 == 0 else { return nil }
        let digits = text.dropFirst(2).compactMap { $0.hexDigitValue }
        guard digits.count == text.count - 2 else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] * 16 + digits[$0 + 1]) }
    }
}
