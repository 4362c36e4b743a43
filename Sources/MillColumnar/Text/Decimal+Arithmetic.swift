package import MillBase

/// Exact decimal arithmetic with PostgreSQL's rules for the scale of a result, within 38 digits.
///
/// PostgreSQL's numeric has no bound worth the name; ours has 38 digits. Where an exact result needs more, digits are
/// rounded off behind the point as long as the whole part fits; a whole part that does not fit is 22003. NaN and the
/// infinities follow PostgreSQL 14.
extension Decimal {
    /// Unscaled values are below this in magnitude.
    package static let unscaledLimit: Int128 = powerOfTen(38)

    package static let zero = Decimal(unscaled: 0, scale: 0)

    static let overflow = SQLError(.numericValueOutOfRange, "value overflows numeric format")
    package static let divisionByZero = SQLError(.divisionByZero, "division by zero")

    package init(_ value: Int64) { self.init(unscaled: Int128(value), scale: 0) }

    package var isNaN: Bool { kind == .nan }

    /// -1, 0 or 1; NaN gives 0.
    var signum: Int {
        switch kind {
        case .finite: unscaled.signum() == 0 ? 0 : unscaled < 0 ? -1 : 1
        case .positiveInfinity: 1
        case .negativeInfinity: -1
        case .nan: 0
        }
    }

    package static func infinity(negative: Bool) -> Decimal { Decimal(negative ? .negativeInfinity : .positiveInfinity) }

    package var negated: Decimal {
        switch kind {
        case .finite: Decimal(unscaled: -unscaled, scale: scale)
        case .positiveInfinity: Decimal(.negativeInfinity)
        case .negativeInfinity: Decimal(.positiveInfinity)
        case .nan: self
        }
    }

    package var magnitude: Decimal { signum < 0 ? negated : self }

    /// The greater scale of the two.
    package static func adding(_ a: Decimal, _ b: Decimal) throws(SQLError) -> Decimal {
        if a.kind != .finite || b.kind != .finite {
            if a.isNaN || b.isNaN { return Decimal(.nan) }
            if a.kind != .finite { return b.kind == .finite || b.kind == a.kind ? a : Decimal(.nan) }
            return b
        }
        if a.scale == b.scale {
            // Twice 10^38 is more than 128 bits hold.
            let (sum, overflow) = a.unscaled.addingReportingOverflow(b.unscaled)
            if !overflow, sum.magnitude < unscaledLimit.magnitude { return Decimal(unscaled: sum, scale: a.scale) }
        }
        return try addingScaled(a, b)
    }

    /// Different scales, or no room: the larger scale that leaves room for both.
    private static func addingScaled(_ a: Decimal, _ b: Decimal) throws(SQLError) -> Decimal {
        var scale = max(a.scale, b.scale)
        while scale >= 0 {
            if let left = a.unscaled(at: scale), let right = b.unscaled(at: scale) {
                let (sum, overflow) = left.addingReportingOverflow(right)
                if !overflow, sum.magnitude < unscaledLimit.magnitude { return Decimal(unscaled: sum, scale: scale) }
            }
            scale -= 1
        }
        throw overflow
    }

    /// The count of units of 10^-scale, rounded half away from zero; nil when it does not fit.
    private func unscaled(at scale: Int32) -> Int128? {
        if scale == self.scale { return unscaled }
        if scale < self.scale { return Self.divideRounding(unscaled, by: Self.powerOfTen(self.scale - scale)) }
        let (product, overflow) = unscaled.multipliedReportingOverflow(by: Self.powerOfTen(scale - self.scale))
        return overflow || product.magnitude >= Self.unscaledLimit.magnitude ? nil : product
    }

    package static func subtracting(_ a: Decimal, _ b: Decimal) throws(SQLError) -> Decimal { try adding(a, b.negated) }

    /// The sum of the scales.
    package static func multiplying(_ a: Decimal, _ b: Decimal) throws(SQLError) -> Decimal {
        if a.kind != .finite || b.kind != .finite {
            let sign = a.signum * b.signum
            return a.isNaN || b.isNaN || sign == 0 ? Decimal(.nan) : infinity(negative: sign < 0)
        }
        let left = a.unscaled
        let right = b.unscaled
        let scale = a.scale + b.scale
        if scale <= 38 {
            let (product, overflow) = left.multipliedReportingOverflow(by: right)
            if !overflow, product.magnitude < unscaledLimit.magnitude { return Decimal(unscaled: product, scale: scale) }
        }
        // 256 bits, of which as many digits are taken off as do not fit.
        let wide = left.magnitude.multipliedFullWidth(by: right.magnitude)
        var drop = max(scale - 38, 0)
        while drop <= min(scale, 38) {
            let divisor = powerOfTen(drop).magnitude
            if wide.high < divisor {
                let (quotient, remainder) = divisor.dividingFullWidth(wide)
                let rounded = quotient &+ (remainder >= divisor - divisor / 2 && drop > 0 ? 1 : 0)
                if rounded < unscaledLimit.magnitude {
                    let value = Int128(rounded)
                    return Decimal(unscaled: (left < 0) != (right < 0) ? -value : value, scale: scale - drop)
                }
            }
            drop += 1
        }
        throw overflow
    }

    /// PostgreSQL's scale: at least 16 significant digits, never less than either operand's scale.
    package static func dividing(_ a: Decimal, _ b: Decimal) throws(SQLError) -> Decimal {
        if a.kind != .finite || b.kind != .finite {
            if a.isNaN || b.isNaN { return Decimal(.nan) }
            if a.kind != .finite {
                if b.kind != .finite { return Decimal(.nan) }
                if b.signum == 0 { throw divisionByZero }
                return infinity(negative: a.signum * b.signum < 0)
            }
            return zero
        }
        if b.unscaled == 0 { throw divisionByZero }
        var scale = min(quotientScale(a, b), 38)
        let negative = (a.unscaled < 0) != (b.unscaled < 0)
        while scale >= 0 {
            if let quotient = quotient(a.unscaled.magnitude, b.unscaled.magnitude, digits: Int(scale + b.scale - a.scale)) {
                return Decimal(unscaled: negative ? -Int128(quotient) : Int128(quotient), scale: scale)
            }
            scale -= 1
        }
        throw overflow
    }

    /// `a` times ten to `digits`, divided by `b` and rounded; nil when it has more than 38 digits. Long division in steps.
    private static func quotient(_ a: UInt128, _ b: UInt128, digits: Int) -> UInt128? {
        var b = b
        var digits = digits
        if digits < 0 {
            let (product, overflow) = b.multipliedReportingOverflow(by: powerOfTen(Int32(min(-digits, 38))).magnitude)
            // A divisor that large leaves nothing of any 38-digit number.
            if overflow { return 0 }
            b = product
            digits = 0
        }
        var (quotient, remainder) = a.quotientAndRemainder(dividingBy: b)
        while digits > 0 {
            let step = min(digits, 19)
            let power = powerOfTen(Int32(step)).magnitude
            let part = b.dividingFullWidth(remainder.multipliedFullWidth(by: power))
            let (shifted, isTooLarge) = quotient.multipliedReportingOverflow(by: power)
            let (sum, overflow) = shifted.addingReportingOverflow(part.quotient)
            if isTooLarge || overflow { return nil }
            quotient = sum
            remainder = part.remainder
            if quotient >= unscaledLimit.magnitude { return nil }
            digits -= step
        }
        if remainder >= b - b / 2 { quotient += 1 }
        return quotient < unscaledLimit.magnitude ? quotient : nil
    }

    /// select_div_scale of PostgreSQL's numeric.c, which thinks in digits of 10,000.
    private static func quotientScale(_ a: Decimal, _ b: Decimal) -> Int32 {
        let (weightA, firstA) = a.leadingGroup
        let (weightB, firstB) = b.leadingGroup
        var weight = weightA - weightB
        if firstA <= firstB { weight -= 1 }
        return max(16 - weight * 4, a.scale, b.scale, 0)
    }

    /// The power of 10,000 of the first group of four digits that is not zero, and that group.
    private var leadingGroup: (weight: Int32, first: Int32) {
        var rest = unscaled.magnitude
        if rest == 0 { return (0, 0) }
        var digits: Int32 = 0
        var probe = rest
        while probe != 0 {
            probe /= 10
            digits += 1
        }
        // Digits before the point; groups are aligned to the point.
        let before = digits - scale
        let weight = (before + 3).flooredQuotient(4) - 1
        let inGroup = before - weight * 4
        if digits > inGroup { rest /= Self.powerOfTen(digits - inGroup).magnitude } else { rest *= Self.powerOfTen(inGroup - digits).magnitude }
        return (weight, Int32(truncatingIfNeeded: rest))
    }

    /// The remainder of division truncated to a whole number, with the sign of `a`.
    package static func remainder(_ a: Decimal, _ b: Decimal) throws(SQLError) -> Decimal {
        if a.kind != .finite || b.kind != .finite {
            if a.isNaN || b.isNaN { return Decimal(.nan) }
            if a.kind != .finite {
                if b.signum == 0 { throw divisionByZero }
                return Decimal(.nan)
            }
            return a
        }
        if b.unscaled == 0 { throw divisionByZero }
        let scale = max(a.scale, b.scale)
        guard let left = a.unscaled(at: scale), let right = b.unscaled(at: scale) else { throw overflow }
        return Decimal(unscaled: left % right, scale: scale)
    }

    // MARK: Rounding

    /// `value` divided by a positive `divisor`, rounded half away from zero.
    package static func divideRounding(_ value: Int128, by divisor: Int128) -> Int128 {
        let (quotient, remainder) = value.quotientAndRemainder(dividingBy: divisor)
        guard remainder.magnitude >= divisor.magnitude - divisor.magnitude / 2, divisor > 1 else { return quotient }
        return value < 0 ? quotient - 1 : quotient + 1
    }

    package enum Rounding: Sendable {
        case halfAwayFromZero, towardZero, up, down
    }

    /// With `digits` digits after the point; negative digits round before it and leave scale 0.
    package func rounded(to digits: Int, _ rule: Rounding = .halfAwayFromZero) throws(SQLError) -> Decimal {
        guard kind == .finite else { return self }
        if digits >= Int(scale) {
            let wanted = Int32(min(digits, 38))
            // More zeros as far as they fit.
            var target = wanted
            while target > scale {
                if let value = unscaled(at: target) { return Decimal(unscaled: value, scale: target) }
                target -= 1
            }
            return self
        }
        let drop = Int(scale) - digits
        if drop > 38 { return Decimal(unscaled: 0, scale: Int32(max(digits, 0))) }
        let divisor = Self.powerOfTen(Int32(drop))
        var (quotient, remainder) = unscaled.quotientAndRemainder(dividingBy: divisor)
        switch rule {
        case .halfAwayFromZero: quotient = Self.divideRounding(unscaled, by: divisor)
        case .towardZero: break
        case .up: if remainder > 0 { quotient += 1 }
        case .down: if remainder < 0 { quotient -= 1 }
        }
        if digits >= 0 { return Decimal(unscaled: quotient, scale: Int32(digits)) }
        let (whole, overflowed) = quotient.multipliedReportingOverflow(by: Self.powerOfTen(Int32(-digits)))
        guard !overflowed, whole.magnitude < Self.unscaledLimit.magnitude else { throw Self.overflow }
        return Decimal(unscaled: whole, scale: 0)
    }

    /// The value as a column of numeric(precision, scale) stores it.
    /// - Throws: 22003 when the whole part has more digits than the type.
    package func constrained(precision: Int, scale: Int) throws(SQLError) -> Decimal {
        if isNaN { return self }
        let rounded = try rounded(to: scale)
        // A value whose zeros did not fit at the wanted scale is above the limit at any precision.
        guard kind == .finite, rounded.scale == scale, rounded.unscaled.magnitude < Self.powerOfTen(Int32(precision)).magnitude else {
            let digits = precision - scale
            throw SQLError(
                .numericValueOutOfRange, "numeric field overflow",
                detail: kind != .finite
                    ? "A field with precision \(precision), scale \(scale) cannot hold an infinite value."
                    : "A field with precision \(precision), scale \(scale) must round to an absolute value less than \(digits == 0 ? "1" : "10^\(digits)").")
        }
        return rounded
    }

    // MARK: Conversions

    /// The nearest double.
    package var double: Double {
        switch kind {
        case .nan: return .nan
        case .positiveInfinity: return .infinity
        case .negativeInfinity: return -.infinity
        case .finite: break
        }
        let value = unscaled
        // Both exact: one division rounds once. The rest goes through text, which rounds once too.
        if value.magnitude < 1 << 53, scale <= 22 { return Double(value) / Self.exactPowers[Int(scale)] }
        var text: [UInt8] = []
        TextOutput.append(self, to: &text)
        return Double(String(decoding: text, as: UTF8.self)) ?? .nan
    }

    private static let exactPowers: [Double] = (0...22).map { Double(powerOfTen(Int32($0))) }

    /// As PostgreSQL's cast: 15 significant digits of a double, 6 of a real.
    package init(_ value: Double, significantDigits: Int) throws(SQLError) {
        if value.isNaN { self = Decimal(.nan); return }
        if value.isInfinite { self = .infinity(negative: value < 0); return }
        var magnitude = value.magnitude
        if magnitude == 0 { self = .zero; return }
        // The digits come from the shortest text, rounded by hand: scaling a double would round twice.
        var builder = DecimalBuilder()
        var exponent = 0
        var sawPoint = false
        var significant = 0
        var text = magnitude.description.utf8.makeIterator()
        magnitude = 0
        while let byte = text.next() {
            if byte == UInt8(ascii: ".") { sawPoint = true; continue }
            if byte == UInt8(ascii: "e") {
                var minus = false
                while let digit = text.next() {
                    if digit == UInt8(ascii: "-") { minus = true } else if digit != UInt8(ascii: "+") { exponent = exponent * 10 + Int(digit - 48) }
                }
                if minus { exponent = -exponent }
                break
            }
            if byte != 48 || significant > 0 { significant += 1 }
            builder.append(digit: byte - 48, afterPoint: sawPoint)
        }
        guard let exact = builder.finish(exponent: exponent, negative: value < 0) else { throw Self.overflow }
        var before = 0
        var probe = exact.unscaled.magnitude
        while probe != 0 { probe /= 10; before += 1 }
        let whole = before - Int(exact.scale)
        self = try exact.rounded(to: min(Int(exact.scale), significantDigits - whole)).normalized
    }

    /// The nearest whole number, half away from zero; nil when it is outside 64 bits or not finite.
    package var roundedInteger: Int64? {
        guard kind == .finite else { return nil }
        return Int64(exactly: scale == 0 ? unscaled : Self.divideRounding(unscaled, by: Self.powerOfTen(scale)))
    }
}
