/// Order and equality of single values: for sorting results, ordered state and tests. PostgreSQL's order: NaN above all
/// numbers, false below true, strings by bytes (the C collation), nulls where the caller puts them.
extension Column {
    /// Negative, zero or positive. Both values must be present and of one physical type.
    package func compare(_ row: Int, to other: Column, _ otherRow: Int) -> Int {
        switch type.physical {
        case .bool8: Self.order(values(UInt8.self)[row], other.values(UInt8.self)[otherRow])
        case .int16: Self.order(values(Int16.self)[row], other.values(Int16.self)[otherRow])
        case .int32: Self.order(values(Int32.self)[row], other.values(Int32.self)[otherRow])
        case .int64: Self.order(values(Int64.self)[row], other.values(Int64.self)[otherRow])
        case .float32: Self.orderFloats(Double(values(Float.self)[row]), Double(other.values(Float.self)[otherRow]))
        case .float64: Self.orderFloats(values(Double.self)[row], other.values(Double.self)[otherRow])
        case .decimal: Decimal.order(values(Decimal.self)[row], other.values(Decimal.self)[otherRow])
        case .string:
            type == .jsonb
                ? JSONOrder.compare(values(StringView.self)[row], other.values(StringView.self)[otherRow])
                : StringView.compare(values(StringView.self)[row], other.values(StringView.self)[otherRow])
        case .interval: Self.order(values(Interval.self)[row].comparable, other.values(Interval.self)[otherRow].comparable)
        }
    }

    /// Whether both are present and equal, or both missing ("is not distinct from").
    package func equals(_ row: Int, _ other: Column, _ otherRow: Int) -> Bool {
        let missing = isNull(row)
        if missing || other.isNull(otherRow) { return missing == other.isNull(otherRow) }
        if type.physical == .string { return values(StringView.self)[row] == other.values(StringView.self)[otherRow] }
        return compare(row, to: other, otherRow) == 0
    }

    @inline(__always) private static func order<T: Comparable>(_ a: T, _ b: T) -> Int { a < b ? -1 : a > b ? 1 : 0 }

    private static func orderFloats(_ a: Double, _ b: Double) -> Int {
        if a.isNaN || b.isNaN { return (a.isNaN ? 1 : 0) - (b.isNaN ? 1 : 0) }
        return order(a, b)
    }
}

/// jsonb has an order in PostgreSQL that few rely on; its canonical text orders equal values together, which is what
/// grouping, DISTINCT and joins need.
package enum JSONOrder {
    package static func compare(_ a: StringView, _ b: StringView) -> Int { StringView.compare(a, b) }
}

extension Decimal {
    /// Negative, zero or positive; NaN equals NaN and is above infinity.
    package static func order(_ a: Decimal, _ b: Decimal) -> Int {
        if a.kind != .finite || b.kind != .finite { return a.kind.rank - b.kind.rank }
        if a.scale == b.scale { return a.unscaled < b.unscaled ? -1 : a.unscaled > b.unscaled ? 1 : 0 }
        return orderScaled(a, b)
    }

    /// Different scales: compare whole parts, then what is left after the point on a common scale.
    private static func orderScaled(_ a: Decimal, _ b: Decimal) -> Int {
        let (wholeA, restA) = a.unscaled.quotientAndRemainder(dividingBy: powerOfTen(a.scale))
        let (wholeB, restB) = b.unscaled.quotientAndRemainder(dividingBy: powerOfTen(b.scale))
        if wholeA != wholeB { return wholeA < wholeB ? -1 : 1 }
        // The rests are below one, so on scale 38 they stay below 10^38.
        let left = restA * powerOfTen(38 - a.scale)
        let right = restB * powerOfTen(38 - b.scale)
        return left < right ? -1 : left > right ? 1 : 0
    }

    /// 10^exponent for 0 to 38.
    package static func powerOfTen(_ exponent: Int32) -> Int128 {
        precondition(exponent >= 0 && exponent <= 38, "a power of ten must fit 128 bits")
        return powersOfTen[Int(exponent)]
    }

    private static let powersOfTen: [Int128] = (0...38).map { count in (0..<count).reduce(Int128(1)) { power, _ in power * 10 } }
}

extension Decimal.Kind {
    fileprivate var rank: Int {
        switch self {
        case .negativeInfinity: -1
        case .finite: 0
        case .positiveInfinity: 1
        case .nan: 2
        }
    }
}
