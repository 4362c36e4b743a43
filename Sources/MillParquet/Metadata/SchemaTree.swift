import MillBase

/// A file's schema as the tree that its list of elements means.
package struct SchemaNode: Hashable, Sendable {
    package let name: String
    package let fieldID: Int32?
    package let logical: LogicalType?
    package let repetition: Repetition
    package let kind: Kind

    package indirect enum Kind: Hashable, Sendable {
        case leaf(SchemaLeaf)
        case group([SchemaNode])
    }

    /// The leaves below, in the order of the file's column chunks.
    var leaves: [SchemaLeaf] {
        switch kind {
        case .leaf(let leaf): [leaf]
        case .group(let children): children.flatMap(\.leaves)
        }
    }
}

/// A column of values.
package struct SchemaLeaf: Hashable, Sendable {
    /// Its place among the chunks of a row group.
    let index: Int
    let path: [String]
    let type: StoredType
    /// Bytes of a value of fixed length.
    let length: Int
    let logical: LogicalType?
    /// How many of the nodes down to it may be missing or repeated: a value is there when its definition level is this.
    let definitionMax: Int
    /// How many of them are repeated.
    let repetitionMax: Int

    var name: String { path.joined(separator: ".") }
}

/// Builds the tree; every number in it is of unknown origin.
struct SchemaTreeBuilder {
    private let elements: [SchemaElement]
    private var next = 0
    private var leafCount = 0

    private static let depthMax = 64

    /// The nodes right below the root.
    static func build(_ elements: [SchemaElement]) throws(Malformed) -> [SchemaNode] {
        guard let root = elements.first else { throw .badSchema("its schema is empty") }
        var builder = SchemaTreeBuilder(elements: elements)
        builder.next = 1
        let nodes = try builder.children(root.childCount ?? 0, [], 0, 0, depth: 1)
        guard builder.next == elements.count else { throw .badSchema("its schema has nodes that belong to none") }
        return nodes
    }

    private init(elements: [SchemaElement]) { self.elements = elements }

    private mutating func children(_ count: Int, _ path: [String], _ definition: Int, _ repetition: Int, depth: Int) throws(Malformed)
        -> [SchemaNode]
    {
        guard depth <= Self.depthMax else { throw .nestedTooDeep }
        guard count >= 0, count <= elements.count - next else { throw .badLength(count) }
        var nodes: [SchemaNode] = []
        for _ in 0..<count { nodes.append(try node(path, definition, repetition, depth: depth)) }
        return nodes
    }

    private mutating func node(_ path: [String], _ definition: Int, _ repetition: Int, depth: Int) throws(Malformed) -> SchemaNode {
        guard next < elements.count else { throw .badSchema("its schema ends too early") }
        let element = elements[next]
        next += 1
        let repeats = element.repetition ?? .required
        let (definition, repetition) = (definition + (repeats == .required ? 0 : 1), repetition + (repeats == .repeated ? 1 : 0))
        let logical = element.logical ?? element.converted.flatMap { LogicalType($0, precision: element.precision, scale: element.scale) }
        let path = path + [element.name]
        let kind: SchemaNode.Kind
        if let count = element.childCount, element.type == nil {
            kind = .group(try children(count, path, definition, repetition, depth: depth + 1))
        } else {
            guard let type = element.type else { throw .badSchema("column \"\(element.name)\" has no type") }
            let length = element.typeLength ?? 0
            guard type != .fixedBytes || (1...Limits.valueBytesMax).contains(length) else { throw .badLength(length) }
            kind = .leaf(
                SchemaLeaf(
                    index: leafCount, path: path, type: type, length: type == .int96 ? Int96.byteCount : length, logical: logical,
                    definitionMax: definition, repetitionMax: repetition))
            leafCount += 1
        }
        return SchemaNode(name: element.name, fieldID: element.fieldID, logical: logical, repetition: repeats, kind: kind)
    }
}
