package import MillColumnar
package import MillPgWire

extension PgOID {
    /// The PostgreSQL type that a value of an engine type is shown as.
    package init(_ type: SQLType) {
        self =
            switch type {
            case .boolean: .bool
            case .int16: .int2
            case .int32: .int4
            case .int64: .int8
            case .float32: .float4
            case .float64: .float8
            case .numeric: .numeric
            case .varchar: .varchar
            case .bytea: .bytea
            case .date: .date
            case .time: .time
            case .timestamp: .timestamp
            case .timestamptz: .timestamptz
            case .interval: .interval
            case .jsonb: .jsonb
            case .unknown: .text
            }
    }

    /// The engine type of a parameter of this type; nil for 0, unknown and types that the engine lacks.
    package var sqlType: SQLType? {
        switch self {
        case .bool: .boolean
        case .int2: .int16
        case .int4: .int32
        case .int8, .oid, .regproc, .regclass, .regtype, .regnamespace: .int64
        case .float4: .float32
        case .float8: .float64
        case .numeric: .numeric
        case .text, .varchar, .bpchar, .name, .char, .uuid: .varchar
        case .bytea: .bytea
        case .date: .date
        case .time: .time
        case .timestamp: .timestamp
        case .timestamptz: .timestamptz
        case .interval: .interval
        case .json, .jsonb: .jsonb
        // There is no array type: a parameter of one is the array's text.
        default: elementType == nil ? nil : .varchar
        }
    }
}

extension PgColumn {
    /// A result column of an engine type, with the modifier of a constrained numeric.
    package init(_ field: Field) {
        var modifier: Int32 = -1
        if case .numeric(let precision?, let scale) = field.type {
            modifier = Int32(truncatingIfNeeded: (precision << 16 | (scale ?? 0)) + 4)
        }
        self.init(field.name, PgOID(field.type), typeModifier: modifier)
    }
}
