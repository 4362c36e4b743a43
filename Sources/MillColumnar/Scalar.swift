/// One value outside a column: literals, parameters, options. Never on an event's path.
///
/// The type is carried beside it: dates, times and timestamps are `.int` with the column's unit, jsonb is `.string`.
package enum Scalar: Sendable, Hashable, Codable {
    case null
    case boolean(Bool)
    case int(Int64)
    case float(Double)
    case decimal(Decimal)
    case string(String)
    case bytes([UInt8])
    case interval(Interval)

    package var isNull: Bool {
        if case .null = self { true } else { false }
    }
}

extension Decimal: Hashable {
    /// Equal as numbers: 1.0 equals 1.00, NaN equals NaN.
    package static func == (a: Decimal, b: Decimal) -> Bool {
        let left = a.normalized
        let right = b.normalized
        return left.low == right.low && left.high == right.high && left.scale == right.scale && left.kind == right.kind
    }

    package func hash(into hasher: inout Hasher) {
        let value = normalized
        hasher.combine(value.low)
        hasher.combine(value.high)
        hasher.combine(value.scale)
        hasher.combine(value.kind)
    }
}
