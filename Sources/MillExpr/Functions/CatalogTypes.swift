package import MillColumnar

/// A type as PostgreSQL's `pg_type` numbers and names it.
package struct CatalogType: Hashable, Sendable {
    package let oid: Int32
    /// `typname`: `int4`, `_int4`.
    package let name: String
    /// What `format_type` shows: `integer`, `integer[]`.
    package let displayName: String
    /// Bytes of a fixed-width value, -1 when the width varies, -2 for C strings.
    package let length: Int16
    /// `typcategory`.
    package let category: String
    /// The type of arrays of it; 0 without one.
    package let arrayOID: Int32
    /// For an array type its elements' type, else 0.
    package let elementOID: Int32

    package var isPassedByValue: Bool { (1...8).contains(length) }
}

/// The types that clients may meet, with PostgreSQL's fixed numbers: what `pg_type`, `format_type`, `to_regtype` and
/// `::regtype` know. The list is wider than the engine's own types, because catalog columns have some of their own.
package enum CatalogTypes {
    /// In the order of their numbers.
    package static let all: [CatalogType] = (base + arrays).sorted { $0.oid < $1.oid }

    package static func type(_ oid: Int32) -> CatalogType? { byOID[oid] }

    /// The number of an engine type; text for a literal that has none.
    package static func oid(of type: SQLType) -> Int32 {
        switch type {
        case .boolean: 16
        case .bytea: 17
        case .int64: 20
        case .int16: 21
        case .int32: 23
        case .unknown: 25
        case .float32: 700
        case .float64: 701
        case .varchar: 1043
        case .date: 1082
        case .time: 1083
        case .timestamp: 1114
        case .timestamptz: 1184
        case .interval: 1186
        case .numeric: 1700
        case .jsonb: 3802
        }
    }

    /// `atttypmod`: what `numeric(10,2)` adds to `numeric`; -1 for nothing.
    package static func modifier(of type: SQLType) -> Int32 {
        guard case .numeric(let precision?, let scale) = type else { return -1 }
        return Int32(truncatingIfNeeded: precision << 16 | (scale ?? 0)) &+ 4
    }

    /// The type that a text names, by any of its names, with `[]` behind it for an array and a modifier that is not looked at.
    package static func type(named text: String) -> CatalogType? {
        var name = text.lowercased().split(separator: " ").joined(separator: " ")
        if name.hasPrefix("pg_catalog.") { name.removeFirst("pg_catalog.".count) }
        let isArray = name.hasSuffix("[]")
        if isArray { name = name.dropLast(2).split(separator: " ").joined(separator: " ") }
        if let open = name.firstIndex(of: "("), let close = name.firstIndex(of: ")"), open < close {
            name = (name[..<open] + name[name.index(after: close)...]).split(separator: " ").joined(separator: " ")
        }
        let found = byName[name] ?? TypeNames.type(named: name).flatMap { byOID[oid(of: $0)] }
        return isArray ? found.flatMap { byOID[$0.arrayOID] } : found
    }

    /// `format_type`: the name of a type with its modifier.
    package static func format(_ oid: Int32, modifier: Int32?) -> String {
        guard oid != 0 else { return "-" }
        guard let type = byOID[oid] else { return "???" }
        guard let modifier, modifier >= 4 else { return type.displayName }
        let packed = modifier &- 4
        switch oid {
        case 1700: return "numeric(\(packed >> 16 & 0xFFFF),\(packed & 0xFFFF))"
        case 1042, 1043: return "\(type.displayName)(\(packed))"
        default: return type.displayName
        }
    }

    private static let byOID = Dictionary(uniqueKeysWithValues: all.map { ($0.oid, $0) })
    private static let byName: [String: CatalogType] = {
        var names: [String: CatalogType] = [:]
        for type in all {
            names[type.name] = type
            names[type.displayName] = names[type.displayName] ?? type
        }
        return names
    }()

    private static let base: [CatalogType] = """
        16 bool 1 B 1000 boolean
        17 bytea -1 U 1001 bytea
        18 char 1 Z 1002 "char"
        19 name 64 S 1003 name
        20 int8 8 N 1016 bigint
        21 int2 2 N 1005 smallint
        22 int2vector -1 A 0 int2vector
        23 int4 4 N 1007 integer
        24 regproc 4 N 1008 regproc
        25 text -1 S 1009 text
        26 oid 4 N 1028 oid
        28 xid 4 U 1011 xid
        30 oidvector -1 A 0 oidvector
        114 json -1 U 199 json
        194 pg_node_tree -1 Z 0 pg_node_tree
        700 float4 4 N 1021 real
        701 float8 8 N 1022 double precision
        705 unknown -2 X 0 unknown
        1033 aclitem 12 U 1034 aclitem
        1042 bpchar -1 S 1014 character
        1043 varchar -1 S 1015 character varying
        1082 date 4 D 1182 date
        1083 time 8 D 1183 time without time zone
        1114 timestamp 8 D 1115 timestamp without time zone
        1184 timestamptz 8 D 1185 timestamp with time zone
        1186 interval 16 T 1187 interval
        1700 numeric -1 N 1231 numeric
        2205 regclass 4 N 2210 regclass
        2206 regtype 4 N 2211 regtype
        2249 record -1 P 2287 record
        2276 any 4 P 0 "any"
        2278 void 4 P 0 void
        2950 uuid 16 U 2951 uuid
        3802 jsonb -1 U 3807 jsonb
        4089 regnamespace 4 N 4090 regnamespace
        4096 regrole 4 N 4097 regrole
        """.split(separator: "\n").map { line in
            let words = line.split(separator: " ", maxSplits: 5)
            return CatalogType(
                oid: Int32(words[0]) ?? 0, name: String(words[1]), displayName: String(words[5]), length: Int16(words[2]) ?? -1,
                category: String(words[3]), arrayOID: Int32(words[4]) ?? 0, elementOID: 0)
        }

    private static let arrays: [CatalogType] = base.filter { $0.arrayOID != 0 }.map { element in
        CatalogType(
            oid: element.arrayOID, name: "_" + element.name, displayName: element.displayName + "[]", length: -1, category: "A",
            arrayOID: 0,
            elementOID: element.oid)
    }
}
