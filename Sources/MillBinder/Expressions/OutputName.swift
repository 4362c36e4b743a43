import MillSQL

/// The name of an output column without an alias, by PostgreSQL's rule: a column keeps its name, a call has its function's,
/// a cast that of its operand or else of its type, anything else is `?column?`.
enum OutputName {
    static func of(_ expression: Expression) -> String { name(expression).text ?? "?column?" }

    /// `isStrong`: better than the type's name where a cast stands around it.
    private static func name(_ expression: Expression) -> (text: String?, isStrong: Bool) {
        switch expression.kind {
        case .column(let name): return (name.last.name, true)
        case .call(let call): return (call.name.last.name, true)
        case .field(_, let name): return (name.name, true)
        case .cast(let operand, let type), .tryCast(let operand, let type):
            let inner = name(operand)
            return inner.isStrong ? inner : (typeName(type), false)
        case .typedLiteral(let type, _): return (typeName(type), false)
        case .interval: return ("interval", false)
        case .literal(.boolean): return ("bool", false)
        case .caseWhen(let node):
            if let otherwise = node.otherwise, case let inner = name(otherwise), inner.isStrong { return inner }
            return ("case", false)
        case .atTimeZone: return ("timezone", true)
        case .exists: return ("exists", true)
        case .collate(let operand, _): return name(operand)
        case .subquery(let query): return (subqueryName(query.body), true)
        case .array, .arrayQuery: return ("array", true)
        case .row: return ("row", true)
        default: return (nil, false)
        }
    }

    private static func subqueryName(_ body: QueryBody) -> String? {
        guard case .select(let select) = body, case .expression(let expression, let alias)? = select.items.first else { return nil }
        return alias?.name ?? name(expression).text
    }

    /// PostgreSQL's internal name of a type, which it gives to columns.
    private static func typeName(_ type: TypeName) -> String {
        switch type.kind {
        case .interval: return "interval"
        case .array(let element): return typeName(element)
        case .structure: return "row"
        case .map: return "map"
        case .named(let name, _):
            switch name.last.name {
            case "int", "integer": return "int4"
            case "smallint": return "int2"
            case "bigint": return "int8"
            case "real": return "float4"
            case "double precision", "double", "float": return "float8"
            case "boolean": return "bool"
            case "decimal", "dec": return "numeric"
            case "string", "character varying": return "varchar"
            case "char", "character": return "bpchar"
            case let other: return other
            }
        }
    }
}
