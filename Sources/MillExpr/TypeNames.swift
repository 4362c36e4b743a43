package import MillColumnar

/// The names under which a statement may ask for a type: SQL's, PostgreSQL's short ones, RisingWave's and Flink's.
package enum TypeNames {
    /// The type that `name` with its modifiers stands for, or nil when there is none or the modifiers make no sense.
    ///
    /// `name` is in lower case, words separated by one space: `double precision`, `timestamp with time zone`. Precisions of
    /// times are accepted and not enforced; lengths of character types are the binder's, which cuts and checks by them.
    /// Object identifiers (`oid`, `regclass`) are integers.
    package static func type(named name: String, modifiers: [Int] = []) -> SQLType? {
        switch name {
        case "numeric", "decimal", "dec": return numeric(modifiers)
        case "float": return float(modifiers)
        case "varchar", "character varying", "char varying", "char", "character", "bpchar", "time", "time without time zone", "timestamp",
            "timestamp without time zone", "timestamptz", "timestamp with time zone", "timestamp_ltz", "timestamp with local time zone", "interval",
            "varbinary", "binary":
            return modifiers.count <= 1 && modifiers.allSatisfy { $0 >= 0 } ? plain[name] : nil
        default: return modifiers.isEmpty ? plain[name] : nil
        }
    }

    private static func numeric(_ modifiers: [Int]) -> SQLType? {
        switch modifiers.count {
        case 0: return .numeric
        case 1, 2:
            let scale = modifiers.count == 2 ? modifiers[1] : 0
            guard (1...38).contains(modifiers[0]), (0...modifiers[0]).contains(scale) else { return nil }
            return .numeric(precision: modifiers[0], scale: scale)
        default: return nil
        }
    }

    /// `float(24)` and less is single precision, `float` alone is double.
    private static func float(_ modifiers: [Int]) -> SQLType? {
        guard let bits = modifiers.first else { return .float64 }
        guard modifiers.count == 1, (1...53).contains(bits) else { return nil }
        return bits <= 24 ? .float32 : .float64
    }

    private static let plain: [String: SQLType] = [
        "boolean": .boolean, "bool": .boolean,
        "smallint": .int16, "int2": .int16, "tinyint": .int16,
        "integer": .int32, "int": .int32, "int4": .int32, "oid": .int32, "regclass": .int32, "regtype": .int32, "regnamespace": .int32,
        "regproc": .int32, "xid": .int32, "cid": .int32,
        "bigint": .int64, "int8": .int64,
        "real": .float32, "float4": .float32,
        "double precision": .float64, "float8": .float64, "double": .float64,
        "varchar": .varchar, "character varying": .varchar, "char varying": .varchar, "char": .varchar, "character": .varchar, "bpchar": .varchar,
        "text": .varchar, "string": .varchar, "name": .varchar, "\"char\"": .varchar,
        "bytea": .bytea, "bytes": .bytea, "varbinary": .bytea, "binary": .bytea,
        "date": .date,
        "time": .time, "time without time zone": .time,
        "timestamp": .timestamp, "timestamp without time zone": .timestamp,
        "timestamptz": .timestamptz, "timestamp with time zone": .timestamptz, "timestamp_ltz": .timestamptz,
        "timestamp with local time zone": .timestamptz,
        "interval": .interval,
        "json": .jsonb, "jsonb": .jsonb,
    ]
}
