import MillColumnar

/// What a nested column is as JSON: objects for groups, arrays for what repeats, objects by key for maps.
///
/// Lists come in three spellings: a group LIST around a repeated group with one element (of today), around a repeated element (of old), and
/// a repeated field alone. Source: LogicalTypes.md, "Nested Types" and its rules for older files.
struct NestedShape {
    indirect enum Kind {
        case value
        /// Members in the file's order, and what the file lacks of them.
        case object([Member], missing: [NestedProjection.Member])
        case array(NestedShape)
        /// A group that only says whether the list or map in it is there.
        case wrapper(NestedShape)
        /// Key and value; the value may be missing in the schema.
        case map(key: NestedShape, value: NestedShape?)
    }

    struct Member {
        /// Nil for one that the table has no more: it is read and left out.
        let name: String?
        let shape: NestedShape
    }

    let kind: Kind
    /// The definition level from which on it is not NULL; for an array, from which on it has an element.
    let definition: Int
    /// For an array or a map, the level of entries that go on with it.
    let repetition: Int
    /// Its leaves among those of the column.
    let leaves: Range<Int>

    /// The shape of a column, with its leaves numbered from 0.
    init(column node: SchemaNode, as projection: NestedProjection = .asStored) throws(UnreadableType) {
        var leafCount = 0
        try self.init(node, projection, 0, 0, &leafCount)
    }

    private init(_ node: SchemaNode, _ projection: NestedProjection, _ definition: Int, _ repetition: Int, _ leafCount: inout Int)
        throws(UnreadableType)
    {
        guard node.repetition == .repeated else {
            try self.init(single: node, projection, definition + (node.repetition == .optional ? 1 : 0), repetition, &leafCount)
            return
        }
        let first = leafCount
        let element = try NestedShape(single: node, projection.ofElements, definition + 1, repetition + 1, &leafCount)
        self.init(kind: .array(element), definition: definition + 1, repetition: repetition + 1, leaves: first..<leafCount)
    }

    private init(kind: Kind, definition: Int, repetition: Int, leaves: Range<Int>) {
        (self.kind, self.definition, self.repetition, self.leaves) = (kind, definition, repetition, leaves)
    }

    /// One value of a node, whether the node repeats or not; `definition` and `repetition` are the node's own levels.
    private init(single node: SchemaNode, _ projection: NestedProjection, _ definition: Int, _ repetition: Int, _ leafCount: inout Int)
        throws(UnreadableType)
    {
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
                kind = .wrapper(try Self.list(children[0], projection.ofElements, of: node.name, definition, repetition, &leafCount))
            case .map where children.count == 1 && children[0].repetition == .repeated:
                guard case .group(let pair) = children[0].kind, (1...2).contains(pair.count) else {
                    throw UnreadableType("a map in it has no keys")
                }
                let key = try NestedShape(pair[0], .asStored, definition + 1, repetition + 1, &leafCount)
                guard case .value = key.kind else { throw UnreadableType("a map in it has nested keys") }
                let value =
                    pair.count == 2 ? try NestedShape(pair[1], projection.ofValues, definition + 1, repetition + 1, &leafCount) : nil
                let entries = NestedShape(
                    kind: .map(key: key, value: value), definition: definition + 1, repetition: repetition + 1, leaves: first..<leafCount)
                kind = .wrapper(entries)
            default: kind = try Self.object(children, projection, definition, repetition, &leafCount)
            }
        }
        self.init(kind: kind, definition: definition, repetition: repetition, leaves: first..<leafCount)
    }

    private static func object(
        _ children: [SchemaNode], _ projection: NestedProjection, _ definition: Int, _ repetition: Int, _ leafCount: inout Int
    ) throws(UnreadableType) -> Kind {
        let wanted = projection.members(of: children)
        var members: [Member] = []
        for child in children {
            let member = wanted?.first { $0.fieldID == child.fieldID }
            let shape = try NestedShape(child, member?.projection ?? .asStored, definition, repetition, &leafCount)
            members.append(Member(name: wanted == nil ? child.name : member?.name, shape: shape))
        }
        let known = Set(children.compactMap(\.fieldID))
        return .object(members, missing: wanted?.filter { !known.contains($0.fieldID) } ?? [])
    }

    private static func list(
        _ repeated: SchemaNode, _ projection: NestedProjection, of name: String, _ definition: Int, _ repetition: Int,
        _ leafCount: inout Int
    ) throws(UnreadableType) -> NestedShape {
        guard case .group(let members) = repeated.kind, members.count == 1, repeated.name != "array", repeated.name != name + "_tuple"
        else {
            return try NestedShape(repeated, .elements(projection), definition, repetition, &leafCount)
        }
        let first = leafCount
        let element = try NestedShape(members[0], projection, definition + 1, repetition + 1, &leafCount)
        return NestedShape(kind: .array(element), definition: definition + 1, repetition: repetition + 1, leaves: first..<leafCount)
    }
}
