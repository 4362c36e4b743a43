package import MillColumnar

/// What the values of a column of a file to be written are, below the column itself.
package indirect enum ParquetShape: Hashable, Sendable {
    case value(SQLType, ParquetValueForm = .plain)
    /// A group: JSON objects with these members.
    case group([ParquetMember])
    /// JSON arrays.
    case list(ParquetMember)
    /// JSON objects whose members are entries; keys are texts there, whatever their type.
    case map(key: ParquetMember, value: ParquetMember)
}

/// A part of a nested column.
package struct ParquetMember: Hashable, Sendable {
    package var name: String
    package var isRequired: Bool
    package var fieldID: Int32?
    package var shape: ParquetShape

    package init(_ name: String, _ shape: ParquetShape, isRequired: Bool = false, fieldID: Int32? = nil) {
        self.name = name
        self.shape = shape
        self.isRequired = isRequired
        self.fieldID = fieldID
    }
}

/// How a value is stored where its SQL type does not say it.
package enum ParquetValueForm: Hashable, Sendable {
    case plain
    /// Texts, as sixteen bytes.
    case uuid
    /// Bytes of this length.
    case fixed(Int)
}

/// A leaf of a file to be written: where it is, and from which levels on a value is there.
struct LeafPlace: Hashable {
    /// Names from the column on.
    var path: [String]
    var definitionMax: Int
    var repetitionMax: Int

    var isNested: Bool { path.count > 1 }
}

/// A node of a nested column with its levels, made once for a file.
final class NestedNode {
    enum Kind {
        case value(SQLType)
        case group([(name: [UInt8], node: NestedNode)])
        case list(NestedNode)
        case map(key: NestedNode, value: NestedNode)
    }

    let name: String
    let kind: Kind
    let isRequired: Bool
    /// Of entries that begin another element of a list or map.
    let repetition: Int
    /// Its leaves among the column's.
    let leaves: Range<Int>

    private init(_ member: ParquetMember, _ kind: Kind, repetition: Int, leaves: Range<Int>) {
        (name, isRequired) = (member.name, member.isRequired)
        (self.kind, self.repetition, self.leaves) = (kind, repetition, leaves)
    }

    /// What making a node adds to the file: its leaves, and the elements of the schema, depth first.
    struct Layout {
        var leaves: [(column: ParquetColumn, place: LeafPlace)] = []
        var elements: [SchemaElement] = []
    }

    /// - Parameters:
    ///   - path: names above it.
    ///   - definition: levels above it.
    static func make(
        _ member: ParquetMember, _ options: ParquetWriterOptions, path: [String] = [], definition: Int = 0, repetition: Int = 0,
        into layout: inout Layout
    ) -> NestedNode {
        let path = path + [member.name]
        let definition = definition + (member.isRequired ? 0 : 1)
        let first = layout.leaves.count
        func element(childCount: Int, _ logical: LogicalType?) -> SchemaElement {
            var element = SchemaElement(
                repetition: member.isRequired ? .required : .optional, name: member.name, childCount: childCount)
            (element.converted, element.logical, element.fieldID) = (logical?.converted, logical, member.fieldID)
            return element
        }
        let kind: Kind
        switch member.shape {
        case .value(let type, let form):
            let column = ParquetColumn(member.name, type, form: form, isRequired: member.isRequired, fieldID: member.fieldID)
            layout.leaves.append((column, LeafPlace(path: path, definitionMax: definition, repetitionMax: repetition)))
            layout.elements.append(ColumnStorage(column, options).element(column))
            kind = .value(type)
        case .group(let members):
            layout.elements.append(element(childCount: members.count, nil))
            kind = .group(
                members.map {
                    (Array($0.name.utf8), make($0, options, path: path, definition: definition, repetition: repetition, into: &layout))
                })
        case .list(let member):
            layout.elements.append(element(childCount: 1, .list))
            layout.elements.append(SchemaElement(repetition: .repeated, name: "list", childCount: 1))
            kind = .list(
                make(member, options, path: path + ["list"], definition: definition + 1, repetition: repetition + 1, into: &layout))
        case .map(let key, let value):
            layout.elements.append(element(childCount: 1, .map))
            layout.elements.append(SchemaElement(repetition: .repeated, name: "key_value", childCount: 2))
            let path = path + ["key_value"]
            kind = .map(
                key: make(key, options, path: path, definition: definition + 1, repetition: repetition + 1, into: &layout),
                value: make(value, options, path: path, definition: definition + 1, repetition: repetition + 1, into: &layout))
        }
        return NestedNode(member, kind, repetition: repetition + 1, leaves: first..<layout.leaves.count)
    }
}
