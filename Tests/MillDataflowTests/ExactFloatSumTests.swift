import MillTestKit
import Testing

@testable import MillDataflow

/// A sum with one place per bit, added up the slowest way: what `ExactFloatSum` must agree with.
private struct BitSum {
    /// Place 0 is worth 2^-1074.
    var bits = [Int](repeating: 0, count: 2300)

    mutating func add(_ value: Double, _ weight: Int) {
        guard value != 0 else { return }
        let isSubnormal = value.exponentBitPattern == 0
        let mantissa = value.significandBitPattern | (isSubnormal ? 0 : 1 << 52)
        let start = isSubnormal ? 0 : Int(value.exponentBitPattern) - 1
        for bit in 0..<53 where mantissa >> UInt64(bit) & 1 == 1 { bits[start + bit] += value < 0 ? -weight : weight }
    }

    var rounded: Double {
        var digits = bits
        func carry() {
            for place in 0..<digits.count - 1 {
                let rest = digits[place] & 1
                digits[place + 1] += (digits[place] - rest) / 2
                digits[place] = rest
            }
        }
        carry()
        let isNegative = digits[digits.count - 1] < 0
        if isNegative {
            digits = bits.map { -$0 }
            carry()
        }
        guard let top = digits.lastIndex(of: 1) else { return 0 }
        let lowest = max(top - 52, 0)
        var mantissa: UInt64 = 0
        for place in (lowest...top).reversed() { mantissa = mantissa * 2 + UInt64(digits[place]) }
        if lowest > 0, digits[lowest - 1] == 1, mantissa & 1 == 1 || digits[..<(lowest - 1)].contains(1) { mantissa += 1 }
        if top > 2097 || (top == 2097 && mantissa == 1 << 53) { return isNegative ? -.infinity : .infinity }
        // A mantissa of 53 bits carries its top bit into the exponent.
        let scaled = Double(bitPattern: mantissa + UInt64(lowest) << 52)
        return isNegative ? -scaled : scaled
    }
}

@Suite struct ExactFloatSumTests {
    private static func sum(_ values: [(Double, Int64)]) -> ExactFloatSum {
        values.reduce(into: ExactFloatSum()) { $0.add($1.0, weight: $1.1) }
    }

    @Test func asManyRowsAsABigintCountsMayBeNoNumber() {
        for value in [Double.nan, .infinity, -.infinity] {
            var sum = Self.sum([(value, .max), (value, .max), (1, 1)])
            sum.add(sum)
            for weight in [Int64.max, .max, .max, .max] { sum.add(value, weight: -weight) }
            #expect(sum.rounded == 2)
        }
    }

    private static func randomDouble(_ random: inout SeededGenerator) -> Double {
        switch random.number(0...5) {
        case 0: return random.pick([0, -0.0, .leastNonzeroMagnitude, -.leastNormalMagnitude, .greatestFiniteMagnitude, 1, -1, 0.1, 1e300])
        case 1: return Double(random.number(-1000...1000))
        case 2: return Double.random(in: -1...1, using: &random)
        case 3: return Double(bitPattern: random.next() & 0x801F_FFFF_FFFF_FFFF)
        default:
            let value = Double(bitPattern: random.next())
            return value.isFinite ? value : 0.5
        }
    }

    @Test func agreesWithASumOfBits() {
        for seed in LawSettings(runs: 1000).seeds {
            var random = SeededGenerator(seed: seed)
            var exact = ExactFloatSum()
            var bits = BitSum()
            for _ in 0..<random.number(1...12) {
                var value = Self.randomDouble(&random)
                // Near one another, so that sums cancel and tie.
                if random.oneIn(2) { value = Double(sign: .plus, exponent: random.number(-60...60), significand: Double(random.number(-3...3))) }
                let weight = random.pick([1, 1, 1, -1, 2, -3, 255, 256, -70_000])
                exact.add(value, weight: Int64(weight))
                bits.add(value, weight)
            }
            #expect(exact.rounded == bits.rounded, "MILLRACE_SEED=\(seed)")
        }
    }

    @Test func anyOrderAndAnyRetractionGiveTheSameSum() {
        for seed in LawSettings(runs: 300).seeds {
            var random = SeededGenerator(seed: seed)
            let kept = (0..<random.number(0...20)).map { _ in (Self.randomDouble(&random), Int64(1)) }
            let passing = (0..<random.number(0...20)).map { _ in (random.pick([Self.randomDouble(&random), .nan, .infinity, -.infinity]), Int64(1)) }
            let all = (kept + passing + passing.map { ($0.0, -$0.1) }).shuffled(using: &random)
            #expect(Self.sum(all).rounded.bitPattern == Self.sum(kept).rounded.bitPattern, "MILLRACE_SEED=\(seed)")
        }
    }

    @Test func overflowsToInfinityAndBack() {
        var sum = Self.sum([(.greatestFiniteMagnitude, 1), (.greatestFiniteMagnitude, 1)])
        #expect(sum.rounded == .infinity)
        sum.add(.greatestFiniteMagnitude, weight: -1)
        #expect(sum.rounded == .greatestFiniteMagnitude)
        sum.add(.greatestFiniteMagnitude, weight: .min)
        #expect(sum.rounded == -.infinity)
        sum.add(.greatestFiniteMagnitude, weight: .max)
        #expect(sum.rounded == 0)
    }

    @Test func infinitiesAndNaNAreCounted() {
        #expect(Self.sum([(.infinity, 1), (1, 1)]).rounded == .infinity)
        #expect(Self.sum([(.infinity, 1), (-.infinity, 1)]).rounded.isNaN)
        #expect(Self.sum([(.infinity, 1), (-.infinity, 1), (-.infinity, -1), (.infinity, -1), (2, 1)]).rounded == 2)
        #expect(Self.sum([(.nan, 2), (3, 1)]).rounded.isNaN)
        #expect(Self.sum([(.nan, 2), (.nan, -2), (3, 1)]).rounded == 3)
    }

    @Test func smallTermsBreakTies() {
        let ulp = Double(1).ulp
        #expect(Self.sum([(1, 1), (ulp / 2, 1)]).rounded == 1)
        #expect(Self.sum([(1, 1), (ulp / 2, 1), (.leastNonzeroMagnitude, 1)]).rounded == 1 + ulp)
        #expect(Self.sum([(1, 1), (ulp / 2, 1), (.leastNonzeroMagnitude, -1)]).rounded == 1)
        #expect(Self.sum([(1 + ulp, 1), (ulp / 2, 1)]).rounded == 1 + 2 * ulp)
        #expect(Self.sum([(.leastNonzeroMagnitude, 3)]).rounded == 3 * .leastNonzeroMagnitude)
        #expect(Self.sum([(.leastNormalMagnitude, 1), (.leastNonzeroMagnitude, -1)]).rounded == Double.leastNormalMagnitude.nextDown)
    }

    @Test func manyAdditionsAreCarried() {
        var sum = ExactFloatSum()
        for _ in 0..<3_000_000 { sum.add(0.1, weight: 1) }
        var bits = BitSum()
        bits.add(0.1, 3_000_000)
        #expect(sum.rounded == bits.rounded)
    }
}
