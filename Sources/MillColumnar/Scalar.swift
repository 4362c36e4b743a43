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

extension Scalar {
    /// Equal is what nobody can tell apart (`RowEquality.representation`): plans take one of two equal parts for both. 1.0 and 1.00 are shown
    /// differently, -0 and 0 too; `String` has other spellings of the same characters equal.
    package static func == (a: Scalar, b: Scalar) -> Bool {
        switch (a, b) {
        case (.null, .null): true
        case (.boolean(let a), .boolean(let b)): a == b
        case (.int(let a), .int(let b)): a == b
        case (.float(let a), .float(let b)): a.isIdentical(to: b)
        case (.decimal(let a), .decimal(let b)): a.isIdentical(to: b)
        case (.string(let a), .string(let b)): a.utf8.elementsEqual(b.utf8)
        case (.bytes(let a), .bytes(let b)): a == b
        case (.interval(let a), .interval(let b)): a == b
        default: false
        }
    }

    package func hash(into hasher: inout Hasher) {
        // The case first, and the end of a text: lists of values must not be alike where their values are not.
        switch self {
        case .null: hasher.combine(0 as UInt8)
        case .boolean(let value):
            hasher.combine(1 as UInt8)
            hasher.combine(value)
        case .int(let value):
            hasher.combine(2 as UInt8)
            hasher.combine(value)
        case .float(let value):
            hasher.combine(3 as UInt8)
            hasher.combine(value.isNaN ? .nan : value)
        case .decimal(let value):
            hasher.combine(4 as UInt8)
            hasher.combine(value)
        case .string(var text):
            hasher.combine(5 as UInt8)
            text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
            hasher.combine(0xFF as UInt8)
        case .bytes(let bytes):
            hasher.combine(6 as UInt8)
            hasher.combine(bytes)
        case .interval(let value):
            hasher.combine(7 as UInt8)
            hasher.combine(value)
        }
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
