import MillColumnar

/// Seeded random columns that hold the values where order and equality go wrong: extremes, zeros of both signs, NaN, the same
/// number at several scales, strings around the inline limit, with zero bytes and with common prefixes.
struct RandomRows: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }

    /// A column of `count` values; a seventh of them missing if `nulls`.
    mutating func column(_ type: SQLType, count: Int, nulls: Bool = false, few: Bool = false) -> Column {
        let column = Column(type, capacity: count)
        for _ in 0..<count {
            if nulls && Int.random(in: 0..<7, using: &self) == 0 { column.appendNull() } else { column.append(scalar(type, few: few)) }
        }
        return column
    }

    /// A batch of columns; weights between -3 and 3 if `weights`.
    mutating func batch(_ types: [SQLType], count: Int, nulls: Bool = true, few: Bool = false, weights: Bool = false) -> DeltaBatch {
        let columns = types.map { column($0, count: count, nulls: nulls, few: few) }
        let drawn = weights ? Weights((0..<count).map { _ in Int64.random(in: -3...3, using: &self) }) : nil
        return DeltaBatch(columns: columns, count: count, weights: drawn)
    }

    /// A value; one of a handful if `few`, so that rows repeat.
    mutating func scalar(_ type: SQLType, few: Bool) -> Scalar {
        switch type.physical {
        case .bool8: .boolean(.random(using: &self))
        case .int16: .int(integer(Int16.self, few))
        case .int32: .int(integer(Int32.self, few))
        case .int64: .int(integer(Int64.self, few))
        case .float32:
            .float(Double(Float(float(few, extremes: [Double(Float.greatestFiniteMagnitude), Double(Float.leastNonzeroMagnitude)]))))
        case .float64: .float(float(few, extremes: [.greatestFiniteMagnitude, .leastNonzeroMagnitude]))
        case .decimal: .decimal(decimal(few))
        case .interval: .interval(interval())
        case .string: type == .bytea ? .bytes(bytes(few)) : .string(String(decoding: bytes(few).map { $0 & 0x7F }, as: UTF8.self))
        }
    }

    private mutating func integer<T: FixedWidthInteger>(_: T.Type, _ few: Bool) -> Int64 {
        switch Int.random(in: 0..<(few ? 1 : 3), using: &self) {
        case 0: Int64.random(in: -2...2, using: &self)
        case 1: Int64([T.min, T.max, T.min + 1, T.max - 1].randomElement(using: &self)!)
        default: Int64(truncatingIfNeeded: T(truncatingIfNeeded: next()))
        }
    }

    private mutating func float(_ few: Bool, extremes: [Double]) -> Double {
        let special = [0.0, -0.0, .nan, -.nan, .infinity, -.infinity, 1, -1] + extremes + extremes.map { -$0 }
        if few || Bool.random(using: &self) { return special.randomElement(using: &self)! }
        return Double.random(in: -1e6...1e6, using: &self)
    }

    private mutating func decimal(_ few: Bool) -> Decimal {
        let kind = Int.random(in: 0..<12, using: &self)
        if kind == 0 { return Decimal([.nan, .positiveInfinity, .negativeInfinity].randomElement(using: &self)!) }
        let nines = Int128("99999999999999999999999999999999999999")!
        if !few && kind == 1 {
            return Decimal(unscaled: [nines, -nines, 1, -1].randomElement(using: &self)!, scale: [0, 1, 19, 38].randomElement(using: &self)!)
        }
        var unscaled = Int128(Int.random(in: few ? -3...3 : -1200...1200, using: &self))
        if !few && kind == 2 { unscaled = unscaled * 100_000_000_000_000_000_000 + Int128(next() >> 1) }
        let zeros = Int32.random(in: 0...3, using: &self)
        return Decimal(unscaled: unscaled * Decimal.powerOfTen(zeros), scale: zeros + (few ? 0 : Int32.random(in: 0...4, using: &self)))
    }

    private mutating func interval() -> Interval {
        let months = Int32.random(in: -1...1, using: &self)
        let days = [0, 30, -30, Int32.max, Int32.min].randomElement(using: &self)!
        let micros = [0, 86_400_000_000, -86_400_000_000, Int64.max, Int64.min].randomElement(using: &self)!
        return Interval(months: Bool.random(using: &self) ? months : months &* Int32.max, days: days, micros: micros)
    }

    private mutating func bytes(_ few: Bool) -> [UInt8] {
        if few { return [[], [0], Array("abcdefghijkl".utf8), Array("abcdefghijklm".utf8)].randomElement(using: &self)! }
        let length = [0, 1, 2, 7, 8, 9, 11, 12, 13, 16, 17, 24, 40].randomElement(using: &self)!
        let alphabet: [UInt8] = [0, 1, 2, 0x61, 0x62, 0x7F, 0xFE, 0xFF]
        let shared = Bool.random(using: &self)
        return (0..<length).map { shared && $0 + 1 < length ? 0x61 : alphabet.randomElement(using: &self)! }
    }
}
