/// The type of a column or expression.
///
/// Values have PostgreSQL's meaning and `physical` layout; see `Column`.
package enum SQLType: Hashable, Sendable {
    case boolean
    case int16
    case int32
    case int64
    case float32
    case float64
    /// Up to 38 digits. `nil` precision: any scale per value, as PostgreSQL's unconstrained numeric.
    case numeric(precision: Int?, scale: Int?)
    case varchar
    case bytea
    /// Days since 1970-01-01; `Int32.max` and `Int32.min` are plus and minus infinity.
    case date
    /// Microseconds since midnight.
    case time
    /// Microseconds since 1970-01-01 00:00; `Int64.max` and `Int64.min` are plus and minus infinity.
    case timestamp
    /// The same in UTC.
    case timestamptz
    case interval
    /// Kept as its canonical text: keys sorted as PostgreSQL's jsonb, the last of equal keys, `", "` and `": "` between.
    case jsonb
    /// The type of a bare NULL or string literal until its context gives it one; never a column's type.
    case unknown

    package static let numeric = SQLType.numeric(precision: nil, scale: nil)

    /// How values lie in memory.
    package var physical: PhysicalType {
        switch self {
        case .boolean: .bool8
        case .int16: .int16
        case .int32, .date: .int32
        case .int64, .time, .timestamp, .timestamptz: .int64
        case .float32: .float32
        case .float64: .float64
        case .numeric: .decimal
        case .varchar, .bytea, .jsonb, .unknown: .string
        case .interval: .interval
        }
    }

    /// The name as RisingWave and PostgreSQL print it.
    package var name: String {
        switch self {
        case .boolean: "boolean"
        case .int16: "smallint"
        case .int32: "integer"
        case .int64: "bigint"
        case .float32: "real"
        case .float64: "double precision"
        case .numeric(let precision, let scale):
            if let precision { "numeric(\(precision),\(scale ?? 0))" } else { "numeric" }
        case .varchar: "character varying"
        case .bytea: "bytea"
        case .date: "date"
        case .time: "time without time zone"
        case .timestamp: "timestamp without time zone"
        case .timestamptz: "timestamp with time zone"
        case .interval: "interval"
        case .jsonb: "jsonb"
        case .unknown: "unknown"
        }
    }

    package var isInteger: Bool {
        switch self {
        case .int16, .int32, .int64: true
        default: false
        }
    }

    package var isFloat: Bool { self == .float32 || self == .float64 }

    package var isNumeric: Bool {
        if case .numeric = self { true } else { false }
    }

    /// Whether arithmetic is defined on it.
    package var isNumber: Bool { isInteger || isFloat || isNumeric }
}

/// How the values of a type lie in a column: fixed width, native byte order.
package enum PhysicalType: UInt8, Hashable, Sendable {
    /// One byte, 0 or 1.
    case bool8
    case int16
    case int32
    case int64
    case float32
    case float64
    /// `Decimal`, 24 bytes.
    case decimal
    /// `StringView`, 16 bytes.
    case string
    /// `Interval`, 16 bytes.
    case interval

    /// Bytes from one value to the next.
    package var stride: Int {
        switch self {
        case .bool8: 1
        case .int16: 2
        case .int32, .float32: 4
        case .int64, .float64: 8
        case .decimal: 24
        case .string, .interval: 16
        }
    }
}
