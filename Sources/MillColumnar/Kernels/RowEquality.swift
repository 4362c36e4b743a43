/// When two rows count as one.
///
/// SQL's equality does not see how a value was written: numeric 1.0 equals 1.00, -0.0 equals 0.0, the interval '1 month' equals
/// '30 days'. Groups and join keys are compared so. A multiset of rows must not be: what a retraction takes back is the row in the
/// form in which it was given, and the others of its value stay. Equal values have equal hashes in either case.
package enum RowEquality: Sendable {
    /// "Is not distinct from".
    case values
    /// Nothing downstream can tell them apart. All NaNs are one, in floats and in numeric.
    case representation
}

extension Decimal {
    /// Whether both are the same digits at the same scale. Field by field: the last bytes of a value are padding.
    @inlinable package func isIdentical(to other: Decimal) -> Bool {
        low == other.low && high == other.high && scale == other.scale && kind == other.kind
    }

    /// `order`, equal values by scale.
    package static func totalOrder(_ a: Decimal, _ b: Decimal) -> Int {
        let order = order(a, b)
        return order != 0 || a.kind != .finite ? order : Int(a.scale) - Int(b.scale)
    }
}

extension BinaryFloatingPoint {
    /// Whether both are the same number with the same sign, or NaN.
    @inlinable package func isIdentical(to other: Self) -> Bool { self == other ? sign == other.sign : isNaN && other.isNaN }

    /// NaN above all numbers, -0.0 before 0.0.
    @inlinable package static func totalOrder(_ a: Self, _ b: Self) -> Int {
        if a.isNaN || b.isNaN { return (a.isNaN ? 1 : 0) - (b.isNaN ? 1 : 0) }
        if a != b { return a < b ? -1 : 1 }
        return (b.sign == .minus ? 1 : 0) - (a.sign == .minus ? 1 : 0)
    }
}

extension Interval {
    /// By length, equal lengths by months, days and microseconds.
    package static func totalOrder(_ a: Interval, _ b: Interval) -> Int {
        let (left, right) = (a.comparable, b.comparable)
        if left != right { return left < right ? -1 : 1 }
        if a == b { return 0 }
        return (a.months, a.days, a.micros) < (b.months, b.days, b.micros) ? -1 : 1
    }
}

extension Column {
    /// Whether both are equal in the given sense, or both missing.
    package func equals(_ row: Int, _ other: Column, _ otherRow: Int, by equality: RowEquality) -> Bool {
        switch equality {
        case .values: equals(row, other, otherRow)
        case .representation: isIdentical(row, other, otherRow)
        }
    }

    private func isIdentical(_ row: Int, _ other: Column, _ otherRow: Int) -> Bool {
        let missing = isNull(row)
        if missing || other.isNull(otherRow) { return missing == other.isNull(otherRow) }
        switch type.physical {
        case .float32: return values(Float.self)[row].isIdentical(to: other.values(Float.self)[otherRow])
        case .float64: return values(Double.self)[row].isIdentical(to: other.values(Double.self)[otherRow])
        case .decimal: return values(Decimal.self)[row].isIdentical(to: other.values(Decimal.self)[otherRow])
        case .interval: return values(Interval.self)[row] == other.values(Interval.self)[otherRow]
        case .bool8, .int16, .int32, .int64, .string: return equals(row, other, otherRow)
        }
    }

    /// Appends to a key what tells values of one key apart, ordered as `totalOrder` does: with it, keys of rows that are not the
    /// same in representation differ. Nothing for most types, and for a missing value.
    package func appendRepresentation(row: Int, to key: inout KeyBuffer) {
        if let value = value(row) { type.physical.appendRepresentation(of: value, to: &key) }
    }
}

extension PhysicalType {
    /// The same for a value that lies in memory.
    package func appendRepresentation(of value: UnsafeRawPointer, to key: inout KeyBuffer) {
        switch self {
        case .float32: key.append(value.load(as: Float.self).representationByte)
        case .float64: key.append(value.load(as: Double.self).representationByte)
        case .decimal: key.append(UInt8(truncatingIfNeeded: value.load(as: Decimal.self).scale))
        case .interval:
            // Months, days and the length together give the microseconds.
            let interval = value.load(as: Interval.self)
            for part in [interval.months, interval.days] {
                withUnsafeBytes(of: (UInt32(bitPattern: part) ^ 0x8000_0000).bigEndian) { key.append($0) }
            }
        case .bool8, .int16, .int32, .int64, .string: break
        }
    }
}

extension BinaryFloatingPoint {
    /// Only zeros of either sign are equal and not identical.
    fileprivate var representationByte: UInt8 { self == 0 && sign == .minus ? 0 : 1 }
}
