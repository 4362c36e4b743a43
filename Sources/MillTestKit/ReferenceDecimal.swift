package import MillColumnar

/// A finite numeric as schoolbooks write it: a sign and decimal digits, `scale` of them after the point.
package struct ReferenceDecimal: Hashable, Sendable {
    package let isNegative: Bool
    /// The digits from the first that is not zero; empty for zero.
    package let digits: [UInt8]
    package let scale: Int

    package init(_ value: Decimal) {
        self.init(isNegative: value.unscaled < 0, digits: "\(value.unscaled.magnitude)".utf8.map { $0 - 48 }, scale: Int(value.scale))
    }

    private init(isNegative: Bool, digits: [UInt8], scale: Int) {
        self.digits = Array(digits.drop { $0 == 0 })
        self.isNegative = isNegative && !self.digits.isEmpty
        self.scale = scale
    }

    var withoutTrailingZeros: ReferenceDecimal {
        var digits = digits
        var scale = scale
        while scale > 0, (digits.last ?? 0) == 0 {
            _ = digits.popLast()
            scale -= 1
        }
        return ReferenceDecimal(isNegative: isNegative, digits: digits, scale: scale)
    }

    private var negated: ReferenceDecimal { ReferenceDecimal(isNegative: !isNegative, digits: digits, scale: scale) }

    func isLess(than other: ReferenceDecimal) -> Bool { Self.sum([self, other.negated]).isNegative }

    /// The exact sum at the largest scale of all: columns are added up from the right, then carried.
    static func sum(_ values: [ReferenceDecimal]) -> ReferenceDecimal {
        let scale = values.map(\.scale).max() ?? 0
        // Places from the right: 38 digits moved by 38 places, and room for carries.
        var places = [Int](repeating: 0, count: 120)
        for value in values {
            for (index, digit) in value.digits.reversed().enumerated() {
                places[index + scale - value.scale] += value.isNegative ? -Int(digit) : Int(digit)
            }
        }
        let isNegative = carry(&places) < 0
        if isNegative {
            places = places.map { -$0 }
            places[places.count - 1] += 10
            _ = carry(&places)
        }
        return ReferenceDecimal(isNegative: isNegative, digits: places.reversed().map { UInt8($0) }, scale: scale)
    }

    /// Brings every place into 0...9; returns what is left over at the left end.
    private static func carry(_ places: inout [Int]) -> Int {
        var carried = 0
        for index in places.indices {
            let total = places[index] + carried
            places[index] = ((total % 10) + 10) % 10
            carried = (total - places[index]) / 10
        }
        return carried
    }

    /// In at most 38 digits, with as few as possible rounded off behind the point; nil when the whole part has more.
    var decimal: Decimal? {
        var drop = max(digits.count - 38, 0)
        while drop <= scale {
            var value = digits.dropLast(drop).reduce(Int128(0)) { $0 * 10 + Int128($1) }
            if drop > 0, digits[digits.count - drop] >= 5 { value += 1 }
            if value < Decimal.powerOfTen(38) { return Decimal(unscaled: isNegative ? -value : value, scale: Int32(scale - drop)) }
            drop += 1
        }
        return nil
    }
}
