package import MillColumnar

/// A value as the reference interpreter sees it: two values are equal when they also look the same, so that a view that gives
/// 1.0 where it was given 1.00 is found out. SQL's equality is that of `key`.
package enum ReferenceValue: Hashable, Sendable {
    case null
    case boolean(Bool)
    case integer(Int64)
    /// Bit pattern of the float, of one NaN for all.
    case float(UInt64)
    case decimal(ReferenceDecimal)
    /// NaN and the infinities of numeric, in their order.
    case specialDecimal(Int32)
    case bytes([UInt8])
    case interval(Interval)

    package init(_ scalar: Scalar) {
        switch scalar {
        case .null: self = .null
        case .boolean(let value): self = .boolean(value)
        case .int(let value): self = .integer(value)
        case .float(let value): self.init(value)
        case .decimal(let value): self.init(value)
        case .string(let value): self = .bytes(Array(value.utf8))
        case .bytes(let value): self = .bytes(value)
        case .interval(let value): self = .interval(value)
        }
    }

    package init(_ value: Double) { self = .float(value.isNaN ? Double.nan.bitPattern : value.bitPattern) }

    package init(_ value: Decimal) {
        switch value.kind {
        case .negativeInfinity: self = .specialDecimal(-1)
        case .positiveInfinity: self = .specialDecimal(1)
        case .nan: self = .specialDecimal(2)
        case .finite: self = .decimal(ReferenceDecimal(value))
        }
    }

    package var isNull: Bool { if case .null = self { true } else { false } }
    package var isTrue: Bool { if case .boolean(true) = self { true } else { false } }

    /// What all values that are "not distinct" from this one have in common: 1.0 and 1.00 are one value, so are 0.0 and -0.0, and
    /// intervals of one length.
    package var key: ReferenceValue {
        switch self {
        case .null, .boolean, .integer, .specialDecimal, .bytes: self
        case .float(let bits): Double(bitPattern: bits) == 0 ? .float(0) : self
        case .decimal(let value): .decimal(value.withoutTrailingZeros)
        case .interval(let value): .bytes(Array("\(Self.length(value))".utf8))
        }
    }

    /// Microseconds, a month being 30 days.
    private static func length(_ value: Interval) -> Int128 {
        Int128(value.months) * 2_592_000_000_000 + Int128(value.days) * 86_400_000_000 + Int128(value.micros)
    }

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
        case (.decimal(let left), .decimal(let right)): return left.isLess(than: right)
        case (.bytes(let left), .bytes(let right)): return left.lexicographicallyPrecedes(right)
        case (.interval(let left), .interval(let right)): return length(left) < length(right)
        default: preconditionFailure("values of one column are of one type")
        }
    }

    /// Order of equal values by how they look: fewer digits after the point first, -0.0 before 0.0, fewer months, then fewer days.
    package static func looksLess(_ a: ReferenceValue, _ b: ReferenceValue) -> Bool {
        switch (a, b) {
        case (.decimal(let left), .decimal(let right)): left.scale < right.scale
        case (.float(let left), .float(let right)): Double(bitPattern: left).sign == .minus && Double(bitPattern: right).sign == .plus
        case (.interval(let left), .interval(let right)): (left.months, left.days, left.micros) < (right.months, right.days, right.micros)
        default: false
        }
    }

    /// By value, equal values by how they look.
    package static func precedes(_ a: ReferenceValue, _ b: ReferenceValue) -> Bool { a.key == b.key ? looksLess(a, b) : isLess(a, b) }
}

package typealias ReferenceRow = [ReferenceValue]

extension ReferenceRow {
    /// The row's values as SQL compares them.
    package var key: ReferenceRow { map(\.key) }
}

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
