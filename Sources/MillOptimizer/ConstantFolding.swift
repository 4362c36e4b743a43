import MillBase
import MillColumnar
import MillExpr
enum ConstantFolding {
    static func value(of expression: BoundExpression) throws(SQLError) -> Scalar {
        switch expression {
        case .literal(let v, _): return v
        case .cast(let e, let t, _):
            let v = try value(of: e)
            if case .string(let s) = v {
                switch t {
                case .int16, .int32, .int64: if let i = Int64(s) { return .int(i) }
                case .boolean: return .boolean(s == "true" || s == "t")
                case .interval:
                    let parts = s.lowercased().split(separator: " ")
                    if parts.count == 2, let n = Int64(parts[0]) {
                        if parts[1].hasPrefix("mon") { return .interval(Interval(months: Int32(n))) }
                        if parts[1].hasPrefix("day") { return .interval(Interval(days: Int32(n))) }
                        let u: Int64 = parts[1].hasPrefix("min") ? 60 : parts[1].hasPrefix("hour") ? 3600 : 1
                        return .interval(Interval(micros: n * u * 1_000_000))
                    }
                default: return v
                }
                throw SQLError(.invalidTextRepresentation, "invalid input syntax for type \(t.name): \"\(s)\"")
            }
            return v
        default: throw SQLError(.featureNotSupported, "constant folding")
        }
    }
}
