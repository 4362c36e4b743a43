import MillColumnar
import MillParquet

extension ParquetMember {
    /// A part of a table's column in its files, down to its leaves.
    /// - Throws: `unsupported` for a type that is not written.
    init(_ field: NestedField) throws(IcebergError) {
        self.init(field.name, try ParquetShape(field), isRequired: field.isRequired, fieldID: Int32(clamping: field.id))
    }
}

extension ParquetShape {
    init(_ field: NestedField) throws(IcebergError) {
        switch field.type {
        case .structure(let fields):
            guard !fields.isEmpty else { throw .unsupported("writing column \"\(field.name)\", a struct without fields") }
            var members: [ParquetMember] = []
            for field in fields { members.append(try ParquetMember(field)) }
            self = .group(members)
        case .list(let element): self = .list(try ParquetMember(Self.named("element", element)))
        case .map(let key, let value): self = .map(key: try ParquetMember(Self.named("key", key)), value: try ParquetMember(Self.named("value", value)))
        default:
            guard let type = field.type.sqlType, let conversion = ColumnConversion(from: type, to: field.type) else {
                throw .unsupported("writing \"\(field.name)\" of type \(field.type)")
            }
            self = .value(conversion.stored, conversion.form)
        }
    }

    private static func named(_ name: String, _ field: NestedField) -> NestedField {
        var field = field
        field.name = name
        return field
    }
}

extension IcebergType {
    var isNested: Bool {
        switch self {
        case .structure, .list, .map: true
        default: false
        }
    }

    /// The leaves of a column in the order of its chunks in a file, with what bounds are of: nil within lists and maps, whose values are of
    /// no one row.
    func leaves(_ id: Int) -> [(id: Int, boundsType: IcebergType?)] {
        switch self {
        case .structure(let fields): fields.flatMap { $0.type.leaves($0.id) }
        case .list(let element): element.type.leaves(element.id).map { ($0.id, nil) }
        case .map(let key, let value): (key.type.leaves(key.id) + value.type.leaves(value.id)).map { ($0.id, nil) }
        default: [(id, self)]
        }
    }
}
