import MillColumnar

/// A two's complement integer of 320 bits, for sums of numerics: 38 digits, moved by up to 38 places, times a 64-bit weight, is
/// below 2^316. Arithmetic is modulo 2^320, so a sum that leaves the range on its way is right when it comes back.
struct WideInteger {
    static let limbCount = 5
    /// The least significant first.
    private var limbs: InlineArray<5, UInt64>

    init(_ value: Int128) {
        let rest = UInt64(bitPattern: value < 0 ? -1 : 0)
        limbs = [UInt64(truncatingIfNeeded: value), UInt64(truncatingIfNeeded: value >> 64), rest, rest, rest]
    }

    init(loadingFrom source: UnsafePointer<UInt64>) { limbs = [source[0], source[1], source[2], source[3], source[4]] }

    func store(to target: UnsafeMutablePointer<UInt64>) { for index in 0..<Self.limbCount { target[index] = limbs[index] } }

    /// Adds value * weight to the integer at `target`: what almost every row of a sum does.
    @inline(__always)
    static func add(_ value: Decimal, times weight: Int64, to target: UnsafeMutablePointer<UInt64>) {
        let magnitude = value.unscaled.magnitude
        let factor = weight.magnitude
        let low = UInt64(truncatingIfNeeded: magnitude).multipliedFullWidth(by: factor)
        let high = UInt64(truncatingIfNeeded: magnitude >> 64).multipliedFullWidth(by: factor)
        let (middle, carry) = low.high.addingReportingOverflow(high.low)
        let top = high.high &+ (carry ? 1 : 0)
        // Subtracting is adding the complement and one, up to the last limb.
        let mask: UInt64 = (value.high < 0) != (weight < 0) ? .max : 0
        var carried = mask & 1
        addLimb(low.low ^ mask, to: &target[0], &carried)
        addLimb(middle ^ mask, to: &target[1], &carried)
        addLimb(top ^ mask, to: &target[2], &carried)
        addLimb(mask, to: &target[3], &carried)
        addLimb(mask, to: &target[4], &carried)
    }

    @inline(__always)
    private static func addLimb(_ limb: UInt64, to target: inout UInt64, _ carry: inout UInt64) {
        let (partial, first) = target.addingReportingOverflow(limb)
        let (sum, second) = partial.addingReportingOverflow(carry)
        target = sum
        carry = first || second ? 1 : 0
    }

    var isNegative: Bool { limbs[Self.limbCount - 1] >> 63 != 0 }

    mutating func add(_ other: WideInteger) {
        var carry: UInt64 = 0
        for index in 0..<Self.limbCount { Self.addLimb(other.limbs[index], to: &limbs[index], &carry) }
    }

    mutating func negate() {
        var carry: UInt64 = 1
        for index in 0..<Self.limbCount {
            var limb = ~limbs[index]
            Self.addLimb(0, to: &limb, &carry)
            limbs[index] = limb
        }
    }

    mutating func multiply(by factor: UInt64) {
        var carry: UInt64 = 0
        for index in 0..<Self.limbCount {
            let product = limbs[index].multipliedFullWidth(by: factor)
            let (low, overflow) = product.low.addingReportingOverflow(carry)
            limbs[index] = low
            carry = product.high &+ (overflow ? 1 : 0)
        }
    }

    mutating func multiply(byWeight weight: Int64) {
        multiply(by: weight.magnitude)
        if weight < 0 { negate() }
    }

    /// - Parameter exponent: 0 to 38.
    mutating func multiply(byPowerOfTen exponent: Int32) {
        let first = min(exponent, 19)
        multiply(by: Self.powersOfTen[Int(first)])
        if exponent > first { multiply(by: Self.powersOfTen[Int(exponent - first)]) }
    }

    /// Divides an integer that is not negative; returns the remainder.
    @discardableResult
    mutating func divide(by divisor: UInt64) -> UInt64 {
        var remainder: UInt64 = 0
        for index in (0..<Self.limbCount).reversed() {
            (limbs[index], remainder) = divisor.dividingFullWidth((remainder, limbs[index]))
        }
        return remainder
    }

    /// The integer when it has at most 38 digits and is not negative.
    private var digits38: Int128? {
        guard limbs[2] == 0, limbs[3] == 0, limbs[4] == 0 else { return nil }
        let value = UInt128(limbs[1]) << 64 | UInt128(limbs[0])
        return value < Decimal.unscaledLimit.magnitude ? Int128(value) : nil
    }

    /// This many units of 10^-unit as a numeric of `scale` digits after the point, or fewer where 38 digits do not hold more: then
    /// rounded half away from zero. nil: the part before the point has more than 38 digits.
    ///
    /// - Parameter scale: at most `unit`; what lies behind it is zero.
    func decimal(unit: Int32, scale: Int32) -> Decimal? {
        var rest = self
        let isNegative = isNegative
        if isNegative { rest.negate() }
        var drop = unit - scale
        while drop > 0 {
            let step = min(drop, 19)
            rest.divide(by: Self.powersOfTen[Int(step)])
            drop -= step
        }
        var scale = scale
        var lastDigit: UInt64 = 0
        while true {
            if var value = rest.digits38 {
                if lastDigit >= 5 { value += 1 }
                if value < Decimal.unscaledLimit { return Decimal(unscaled: isNegative ? -value : value, scale: scale) }
            }
            guard scale > 0 else { return nil }
            lastDigit = rest.divide(by: 10)
            scale -= 1
        }
    }

    /// 10^0 to 10^19.
    private static let powersOfTen: [UInt64] = (0...19).map { count in (0..<count).reduce(UInt64(1)) { power, _ in power * 10 } }
}
