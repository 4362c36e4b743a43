package import MillColumnar

extension IcebergType {
    /// What a column of a SQL type becomes in a table made for it. smallint and integer are int, numeric without digits is decimal(28,10).
    package init(_ type: SQLType) {
        switch type {
        case .boolean: self = .boolean
        case .int16, .int32: self = .int
        case .int64: self = .long
        case .float32: self = .float
        case .float64: self = .double
        case .numeric(let precision, let scale):
            self = precision.map { .decimal(precision: $0, scale: scale ?? 0) } ?? .decimal(precision: 28, scale: 10)
        case .varchar, .jsonb, .interval, .unknown: self = .string
        case .bytea: self = .binary
        case .date: self = .date
        case .time: self = .time
        case .timestamp: self = .timestamp
        case .timestamptz: self = .timestamptz
        }
    }

    /// What a column of the table is in SQL; nested ones are jsonb. Nil for what cannot be read.
    package var sqlType: SQLType? {
        switch self {
        case .boolean: .boolean
        case .int: .int32
        case .long: .int64
        case .float: .float32
        case .double: .float64
        case .decimal(let precision, let scale): .numeric(precision: precision, scale: scale)
        case .string, .uuid: .varchar
        case .fixed, .binary: .bytea
        case .date: .date
        case .time: .time
        case .timestamp, .timestampNanos: .timestamp
        case .timestamptz, .timestamptzNanos: .timestamptz
        case .structure, .list, .map: .jsonb
        case .variant, .unsupported: nil
        }
    }
}
