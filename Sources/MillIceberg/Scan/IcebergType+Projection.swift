import MillColumnar
import MillParquet

extension IcebergType {
    /// How a file's nested column is read: structs have the members that the type has, by their identifiers.
    /// - Throws: `unsupported` for a default that cannot be read.
    func projection() throws(IcebergError) -> NestedProjection {
        switch self {
        case .structure(let fields):
            var members: [NestedProjection.Member] = []
            for field in fields {
                guard let id = Int32(exactly: field.id) else { throw .unsupported("a field with the identifier \(field.id)") }
                members.append(.init(id, field.name, try field.type.projection(), missing: try field.missingAsJSON()))
            }
            return .members(members)
        case .list(let element): return .elements(try element.type.projection())
        case .map(_, let value): return .values(try value.type.projection())
        default: return .asStored
        }
    }
}

extension NestedField {
    /// What a struct has whose file lacks this member, written as values of files are.
    fileprivate func missingAsJSON() throws(IcebergError) -> String {
        guard let initialDefault, !initialDefault.isNull else { return "null" }
        guard let sqlType = type.sqlType, let scalar = initialDefault.scalar(type),
            let text = Column.constant(scalar, sqlType, count: 1).text(0)
        else { throw .unsupported("the default of column \"\(name)\"") }
        switch scalar {
        case .boolean(let value): return value ? "true" : "false"
        case .int where type == .int || type == .long, .float, .decimal: return text
        default: return JSONValue.string(text).text
        }
    }
}
