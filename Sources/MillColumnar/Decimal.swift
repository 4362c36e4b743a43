/// A numeric value: a 128-bit count of units of 10^-scale, or NaN or an infinity, in 24 bytes.
///
/// Two words instead of `Int128` keep the alignment at 8, so that a row in state needs no padding.
package struct Decimal: Sendable, Codable, BitwiseCopyable {
    package var low: UInt64
    package var high: Int64
    /// Digits after the point, 0 to 38.
    package var scale: Int32
    package var kind: Kind

    package enum Kind: Int32, Sendable, Codable, BitwiseCopyable {
        case finite = 0
        case positiveInfinity = 1
        case negativeInfinity = 2
        case nan = 3
    }

    @inlinable package init(unscaled: Int128, scale: Int32) {
        low = UInt64(truncatingIfNeeded: unscaled)
        high = Int64(truncatingIfNeeded: unscaled >> 64)
        self.scale = scale
        kind = .finite
    }

    package init(_ kind: Kind) {
        low = 0
        high = 0
        scale = 0
        self.kind = kind
    }

    @inlinable package var unscaled: Int128 { Int128(high) << 64 | Int128(low) }
    package var isFinite: Bool { kind == .finite }

    /// The same value with no trailing zeros after the point: equal values have equal fields.
    package var normalized: Decimal {
        guard kind == .finite else { return Decimal(kind) }
        guard scale > 0 else { return self }
        var value = unscaled
        if value == 0 { return Decimal(unscaled: 0, scale: 0) }
        var scale = scale
        while scale > 0 {
            let (quotient, remainder) = value.quotientAndRemainder(dividingBy: 10)
            guard remainder == 0 else { break }
            value = quotient
            scale -= 1
        }
        return Decimal(unscaled: value, scale: scale)
    }
}
