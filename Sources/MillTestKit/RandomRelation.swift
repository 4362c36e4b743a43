package import MillColumnar

/// Random rows of a schema, drawn from few values per column so that duplicates, equal keys and retractions that meet are common.
package struct RandomRelation: Sendable {
    package let schema: Schema
    private var domains: [[Scalar]]
    /// A value is missing once in this many; 0: never.
    private var nullOneIn: [Int]
    /// The rows that are there.
    package private(set) var rows: [[Scalar]] = []
    package let appendOnly: Bool

    /// - Parameter values: what to draw from in some of the columns, in place of the values of their types.
    package init(_ schema: Schema, appendOnly: Bool = false, values: [Int: [Scalar]] = [:], using random: inout SeededGenerator) {
        self.schema = schema
        self.appendOnly = appendOnly
        domains = schema.enumerated().map { index, field in
            if let given = values[index] { return given.shuffled(using: &random) }
            let all = RandomValues.all(field.type)
            let size = random.pick([1, 2, 3, 6, 12])
            return (0..<size).map { _ in random.pick(all) }
        }
        nullOneIn = schema.map { _ in random.pick([0, 0, 3, 10]) }
    }

    private func draw(_ random: inout SeededGenerator) -> [Scalar] {
        domains.indices.map { index in
            if nullOneIn[index] > 0, random.oneIn(nullOneIn[index]) { return .null }
            let domain = domains[index]
            // Skewed: the first values come most often.
            return domain[min(random.number(0...domain.count - 1), random.number(0...domain.count - 1))]
        }
    }

    /// About `count` changes of one epoch, already part of `rows`, in random order: inserts, deletes of rows that are there, and
    /// rows that come and go within the epoch. Sometimes a change has a weight of several.
    package mutating func change(_ count: Int, using random: inout SeededGenerator) -> [(row: [Scalar], weight: Int64)] {
        var changes: [(row: [Scalar], weight: Int64)] = []
        for _ in 0..<count {
            if !appendOnly, !rows.isEmpty, random.number(0...9) < 4 {
                let index = random.number(0...rows.count - 1)
                changes.append((rows[index], -1))
                rows[index] = rows[rows.count - 1]
                rows.removeLast()
            } else {
                let row = draw(&random)
                let weight = random.oneIn(8) ? random.number(2...3) : 1
                changes.append((row, Int64(weight)))
                for _ in 0..<weight { rows.append(row) }
            }
        }
        return changes.shuffled(using: &random)
    }

    /// Cuts changes into batches of random sizes.
    package static func batches(
        _ changes: [(row: [Scalar], weight: Int64)], _ schema: Schema, using random: inout SeededGenerator
    ) -> [DeltaBatch] {
        var batches: [DeltaBatch] = []
        let rowsMax = random.pick([1, 3, 16, 64, 4096])
        var start = 0
        while start < changes.count {
            let end = min(changes.count, start + random.number(1...rowsMax))
            batches.append(batch(changes[start..<end], schema))
            start = end
        }
        return batches
    }

    package static func batch(_ changes: ArraySlice<(row: [Scalar], weight: Int64)>, _ schema: Schema) -> DeltaBatch {
        let columns = schema.enumerated().map { index, field in
            let column = Column(field.type, capacity: changes.count)
            for change in changes { column.append(change.row[index]) }
            return column
        }
        let plain = changes.allSatisfy { $0.weight == 1 }
        return DeltaBatch(columns: columns, count: changes.count, weights: plain ? nil : Weights(changes.map(\.weight)))
    }

    package var reference: [ReferenceRow] { rows.map { row in row.map { ReferenceValue($0) } } }
}

/// Values of every type with its edges among them.
package enum RandomValues {
    package static let types: [SQLType] = [
        .boolean, .int16, .int32, .int64, .float32, .float64, .numeric, .varchar, .bytea, .date, .time, .timestamp, .timestamptz, .interval, .jsonb,
    ]

    package static func all(_ type: SQLType) -> [Scalar] {
        switch type {
        case .boolean: [.boolean(true), .boolean(false)]
        case .int16: [.int(0), .int(-1), .int(7), .int(Int64(Int16.max)), .int(Int64(Int16.min)), .int(300)]
        case .int32: [.int(0), .int(-1), .int(7), .int(Int64(Int32.max)), .int(Int64(Int32.min)), .int(70_000)]
        case .int64: [.int(0), .int(-1), .int(7), .int(.max), .int(.min), .int(5_000_000_000), .int(8), .int(9)]
        case .float32: [.float(0), .float(-0.0), .float(1.5), .float(-2.25), .float(.nan), .float(.infinity), .float(Double(Float(0.1)))]
        case .float64:
            [
                .float(0), .float(-0.0), .float(0.1), .float(-0.2), .float(1e300), .float(-1e300), .float(.leastNonzeroMagnitude), .float(.leastNormalMagnitude / 3), .float(.nan),
                .float(.infinity), .float(-.infinity), .float(3), .float(1 / 3),
            ]
        case .numeric:
            [
                decimal(10, 1), decimal(100, 2), decimal(1, 0), decimal(-1, 10), decimal(123_456_789_012_345_678, 4), decimal(0, 5), decimal(0, 0),
                .decimal(Decimal(.nan)), .decimal(Decimal(.positiveInfinity)), .decimal(Decimal(.negativeInfinity)), decimal(-25, 1),
                decimal(mostDigits, 0), decimal(mostDigits, 38), decimal(-mostDigits, 19), decimal(-mostDigits, 0),
            ]
        case .varchar: (texts + ["\u{0}", "a\u{0}"]).map { .string($0) }
        case .jsonb: ["{}", "{\"a\": 1, \"b\": [1, 2, 3, null]}", "null", "\"text that is longer than twelve bytes\"", "1.0"].map { .string($0) }
        case .bytea: texts.map { .bytes(Array($0.utf8)) } + [.bytes([0xFF, 0, 0xFE]), .bytes([0]), .bytes([0, 0])]
        case .date: [.int(0), .int(-1), .int(19_000), .int(Int64(Int32.max)), .int(Int64(Int32.min)), .int(-700_000)]
        case .time: [.int(0), .int(86_399_999_999), .int(43_200_000_000)]
        case .timestamp, .timestamptz: [.int(0), .int(-1), .int(1_700_000_000_000_000), .int(.max), .int(.min), .int(-62_135_596_800_000_000), .int(7)]
        case .interval: [interval(1, 0, 0), interval(0, 30, 0), interval(0, 0, 2_592_000_000_000), interval(0, 0, 0), interval(-1, 5, 7), interval(0, 0, 1)]
        case .unknown: []
        }
    }

    private static let texts = [
        "", "a", "twelve bytes", "thirteen bytes", "thirteen bytet", "žluťoučký kůň", "🦀🦀🦀🦀", String(repeating: "long ", count: 200),
        String(repeating: "long ", count: 199) + "lonG ",
    ]

    /// 38 nines.
    private static let mostDigits = Decimal.powerOfTen(38) - 1

    private static func decimal(_ digits: Int128, _ scale: Int32) -> Scalar { .decimal(Decimal(unscaled: digits, scale: scale)) }
    private static func interval(_ months: Int32, _ days: Int32, _ micros: Int64) -> Scalar {
        .interval(Interval(months: months, days: days, micros: micros))
    }
}
