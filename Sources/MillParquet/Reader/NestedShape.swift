import MillColumnar

/// What a nested column is as JSON: objects for groups, arrays for what repeats, objects by key for maps.
///
/// Lists come in three spellings: a group LIST around a repeated group with one element (of today), around a repeated element (of old), and
/// a repeated field alone. Source: LogicalTypes.md, "Nested Types" and its rules for older files.
struct NestedShape {
    indirect enum Kind {
        case value
        case object([NestedShape])
        case array(NestedShape)
        /// A group that only says whether the list or map in it is there.
        case wrapper(NestedShape)
        /// Key and value; the value may be missing in the schema.
        case map(key: NestedShape, value: NestedShape?)
    }

    let name: String
    let kind: Kind
    /// The definition level from which on it is not NULL; for an array, from which on it has an element.
    let definition: Int
    /// For an array or a map, the level of entries that go on with it.
    let repetition: Int
    /// Its leaves among those of the column.
    let leaves: Range<Int>

    /// The shape of a column, with its leaves numbered from 0.
    init(column node: SchemaNode) throws(UnreadableType) {
        var leafCount = 0
        try self.init(node, 0, 0, &leafCount)
    }

    private init(_ node: SchemaNode, _ definition: Int, _ repetition: Int, _ leafCount: inout Int) throws(UnreadableType) {
        guard node.repetition == .repeated else {
            try self.init(single: node, definition + (node.repetition == .optional ? 1 : 0), repetition, &leafCount)
            return
        }
        let first = leafCount
        let element = try NestedShape(single: node, definition + 1, repetition + 1, &leafCount)
        self.init(name: node.name, kind: .array(element), definition: definition + 1, repetition: repetition + 1, leaves: first..<leafCount)
    }

    private init(name: String, kind: Kind, definition: Int, repetition: Int, leaves: Range<Int>) {
        (self.name, self.kind, self.definition, self.repetition, self.leaves) = (name, kind, definition, repetition, leaves)
    }

    /// One value of a node, whether the node repeats or not; `definition` and `repetition` are the node's own levels.
    private init(single node: SchemaNode, _ definition: Int, _ repetition: Int, _ leafCount: inout Int) throws(UnreadableType) {
        let first = leafCount
        let kind: Kind
        switch node.kind {
        case .leaf(let leaf):
            _ = try ColumnMeaning(leaf)
            leafCount += 1
            kind = .value
        case .group(let children):
            guard !children.isEmpty else { throw UnreadableType("a group in it has no columns") }
            switch node.logical {
            case .list where children.count == 1 && children[0].repetition == .repeated:
                kind = .wrapper(try Self.list(children[0], of: node.name, definition, repetition, &leafCount))
            case .map where children.count == 1 && children[0].repetition == .repeated:
                guard case .group(let pair) = children[0].kind, (1...2).contains(pair.count) else {
                    throw UnreadableType("a map in it has no keys")
                }
                let key = try NestedShape(pair[0], definition + 1, repetition + 1, &leafCount)
                guard case .value = key.kind else { throw UnreadableType("a map in it has nested keys") }
                let value = pair.count == 2 ? try NestedShape(pair[1], definition + 1, repetition + 1, &leafCount) : nil
                let entries = NestedShape(
                    name: "", kind: .map(key: key, value: value), definition: definition + 1, repetition: repetition + 1,
                    leaves: first..<leafCount)
                kind = .wrapper(entries)
            default:
                var members: [NestedShape] = []
                for child in children { members.append(try NestedShape(child, definition, repetition, &leafCount)) }
                kind = .object(members)
            }
        }
        self.init(name: node.name, kind: kind, definition: definition, repetition: repetition, leaves: first..<leafCount)
    }

    private static func list(
        _ repeated: SchemaNode, of name: String, _ definition: Int, _ repetition: Int, _ leafCount: inout Int
    ) throws(UnreadableType) -> NestedShape {
        guard case .group(let members) = repeated.kind, members.count == 1, repeated.name != "array", repeated.name != name + "_tuple"
        else {
            return try NestedShape(repeated, definition, repetition, &leafCount)
        }
        let first = leafCount
        let element = try NestedShape(members[0], definition + 1, repetition + 1, &leafCount)
        return NestedShape(
            name: name, kind: .array(element), definition: definition + 1, repetition: repetition + 1, leaves: first..<leafCount)
    }
}
