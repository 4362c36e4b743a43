package import MillColumnar

/// A value as the reference interpreter sees it: equal values have equal cases, so rows can be keys of dictionaries.
///
/// 1.0 and 1.00 are one value, so are 0.0 and -0.0, all NaNs, and intervals of one length: what "is not distinct from" means.
package enum ReferenceValue: Hashable, Sendable {
    case null
    case boolean(Bool)
    case integer(Int64)
    /// Bit pattern of the float, of one NaN and of positive zero.
    case float(UInt64)
    /// Units of 10^-scale, no trailing zero after the point.
    case decimal(Int128, scale: Int32)
    /// NaN and the infinities of numeric, in their order.
    case specialDecimal(Int32)
    case bytes([UInt8])
    case interval(Int128)

    package init(_ scalar: Scalar) {
        switch scalar {
        case .null: self = .null
        case .boolean(let value): self = .boolean(value)
        case .int(let value): self = .integer(value)
        case .float(let value): self.init(value)
        case .decimal(let value): self.init(value)
        case .string(let value): self = .bytes(Array(value.utf8))
        case .bytes(let value): self = .bytes(value)
        case .interval(let value):
            self = .interval(Int128(value.months) * 2_592_000_000_000 + Int128(value.days) * 86_400_000_000 + Int128(value.micros))
        }
    }

    package init(_ value: Double) { self = .float(value.isNaN ? Double.nan.bitPattern : value == 0 ? 0 : value.bitPattern) }

    package init(_ value: Decimal) {
        switch value.kind {
        case .negativeInfinity: self = .specialDecimal(-1)
        case .positiveInfinity: self = .specialDecimal(1)
        case .nan: self = .specialDecimal(2)
        case .finite:
            var digits = value.unscaled
            var scale = value.scale
            while scale > 0, digits % 10 == 0 {
                digits /= 10
                scale -= 1
            }
            self = .decimal(digits, scale: scale)
        }
    }

    package var isNull: Bool { self == .null }
    package var isTrue: Bool { self == .boolean(true) }

    /// Both present and of one kind. NaN is above every number.
    package static func isLess(_ a: ReferenceValue, _ b: ReferenceValue) -> Bool {
        switch (a, b) {
        case (.boolean(let left), .boolean(let right)): return !left && right
        case (.integer(let left), .integer(let right)): return left < right
        case (.float(let left), .float(let right)):
            let (left, right) = (Double(bitPattern: left), Double(bitPattern: right))
            return right.isNaN ? !left.isNaN : left < right
        case (.specialDecimal(let left), .specialDecimal(let right)): return left < right
        case (.specialDecimal(let left), .decimal): return left < 0
        case (.decimal, .specialDecimal(let right)): return right > 0
        case (.decimal(let left, let leftScale), .decimal(let right, let rightScale)):
            // Test values are small enough for one common scale.
            let scale = max(leftScale, rightScale)
            return left * power(scale - leftScale) < right * power(scale - rightScale)
        case (.bytes(let left), .bytes(let right)): return left.lexicographicallyPrecedes(right)
        case (.interval(let left), .interval(let right)): return left < right
        default: preconditionFailure("values of one column are of one type")
        }
    }

    static func power(_ exponent: Int32) -> Int128 { (0..<exponent).reduce(Int128(1)) { result, _ in result * 10 } }
}

package typealias ReferenceRow = [ReferenceValue]

/// How often each row is there.
package typealias ReferenceCounts = [ReferenceRow: Int64]

extension DeltaBatch {
    /// The rows with the sums of their weights; sums of 0 are left out.
    package static func counts(_ batches: [DeltaBatch]) -> ReferenceCounts {
        var counts: ReferenceCounts = [:]
        for batch in batches {
            for row in 0..<batch.count {
                let values = batch.columns.map { ReferenceValue($0.scalar(row)) }
                let sum = counts[values, default: 0] + batch.weight(row)
                counts[values] = sum == 0 ? nil : sum
            }
        }
        return counts
    }
}
