package import MillColumnar

extension Column {
    /// Numerics of the first `count` rows with at most `scale` digits after the point, rounded half away from zero; the column itself where
    /// none has more. NaN and infinities stay what they are.
    package func rounded(toScale scale: Int, count: Int) -> Column {
        let from = UnsafePointer(values(Decimal.self))
        let limit = Int32(clamping: scale)
        guard (0..<count).contains(where: { !isNull($0) && from[$0].isFinite && from[$0].scale > limit }) else { return self }
        let result = Column(type, uninitialized: count)
        let to = result.values(Decimal.self)
        for row in 0..<count { to[row] = isNull(row) ? Decimal(unscaled: 0, scale: 0) : from[row].rounded(toScale: limit) }
        result.copyNulls(of: self, count: count)
        return result
    }
}

extension Decimal {
    fileprivate func rounded(toScale limit: Int32) -> Decimal {
        guard isFinite, scale > limit else { return self }
        // No value has so many digits that one of them is left.
        guard scale - limit <= 38 else { return Decimal(unscaled: 0, scale: limit) }
        let divisor = Self.powerOfTen(scale - limit)
        let (quotient, remainder) = unscaled.quotientAndRemainder(dividingBy: divisor)
        let isUp = remainder.magnitude >= divisor.magnitude - remainder.magnitude
        return Decimal(unscaled: isUp ? quotient + unscaled.signum() : quotient, scale: limit)
    }
}
