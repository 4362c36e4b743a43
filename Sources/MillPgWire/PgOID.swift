/// A PostgreSQL type oid, as `pg_type` fixes them for the built-in types.
package struct PgOID: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }
    package init(_ rawValue: UInt32) { self.rawValue = rawValue }

    package var description: String { String(rawValue) }

    /// Not given: the server infers the type.
    package static let unspecified = PgOID(0)
    package static let bool = PgOID(16)
    package static let bytea = PgOID(17)
    /// `"char"`, one byte, as catalog columns such as `relkind` are.
    package static let char = PgOID(18)
    package static let name = PgOID(19)
    package static let int8 = PgOID(20)
    package static let int2 = PgOID(21)
    package static let int2vector = PgOID(22)
    package static let int4 = PgOID(23)
    package static let regproc = PgOID(24)
    package static let text = PgOID(25)
    package static let oid = PgOID(26)
    package static let oidvector = PgOID(30)
    package static let json = PgOID(114)
    package static let float4 = PgOID(700)
    package static let float8 = PgOID(701)
    /// The type of a bare string literal.
    package static let unknown = PgOID(705)
    package static let bpchar = PgOID(1042)
    package static let varchar = PgOID(1043)
    package static let date = PgOID(1082)
    package static let time = PgOID(1083)
    package static let timestamp = PgOID(1114)
    package static let timestamptz = PgOID(1184)
    package static let interval = PgOID(1186)
    package static let numeric = PgOID(1700)
    package static let regclass = PgOID(2205)
    package static let regtype = PgOID(2206)
    package static let void = PgOID(2278)
    package static let uuid = PgOID(2950)
    package static let jsonb = PgOID(3802)
    package static let regnamespace = PgOID(4089)

    /// The type of an array's elements; nil for what is no array type.
    package var elementType: PgOID? { Self.elementTypes[self] }

    private static let elementTypes: [PgOID: PgOID] = [
        PgOID(1000): bool, PgOID(1001): bytea, PgOID(1002): char, PgOID(1003): name, PgOID(1005): int2, PgOID(1007): int4, PgOID(1009): text,
        PgOID(1014): bpchar, PgOID(1015): varchar, PgOID(1016): int8, PgOID(1021): float4, PgOID(1022): float8, PgOID(1028): oid,
        PgOID(1115): timestamp, PgOID(1182): date, PgOID(1183): time, PgOID(1185): timestamptz, PgOID(1187): interval, PgOID(1231): numeric,
        PgOID(2951): uuid, PgOID(3807): jsonb, PgOID(199): json,
    ]

    /// `pg_type.typlen`: bytes of a fixed-width type, -1 when the width varies, -2 for C strings.
    package var typeSize: Int16 {
        switch self {
        case .bool, .char: 1
        case .int2: 2
        case .int4, .oid, .float4, .date, .regproc, .regclass, .regtype, .regnamespace, .void: 4
        case .int8, .float8, .time, .timestamp, .timestamptz: 8
        case .interval, .uuid: 16
        case .name: 64
        case .unknown: -2
        default: -1
        }
    }
}
