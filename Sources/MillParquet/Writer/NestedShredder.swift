import MillBase
package import MillColumnar

/// Takes nested values apart into the leaves of their column, each with the levels that put them together again.
///
/// Values are jsonb, as they are read (`NestedReader`): what is JSON's own is taken so, all else as a text that SQL reads. A member that the
/// column has no place for is refused, not passed over.
/// Source: "Dremel: Interactive Analysis of Web-Scale Datasets", record shredding; LogicalTypes.md, "Nested Types".
final class NestedShredder {
    /// One leaf's part of a batch.
    struct Leaf {
        /// Those that are there.
        fileprivate(set) var values: Column
        var definitions: [UInt32] = []
        var repetitions: [UInt32] = []

        /// The row that one of `values` is part of.
        func row(ofValue index: Int, _ place: LeafPlace) -> Int {
            var (row, left) = (-1, index)
            for (definition, repetition) in zip(definitions, repetitions) {
                if repetition == 0 { row += 1 }
                guard definition == place.definitionMax else { continue }
                if left == 0 { break }
                left -= 1
            }
            return row
        }
    }

    let root: NestedNode
    private let types: [SQLType]
    private(set) var leaves: [Leaf] = []
    private var text: [UInt8] = []
    /// Of the objects that are being taken apart, outermost first: which members have come.
    private var isPut: [Bool] = []

    /// What a value has no place for.
    private struct Refused: Error {
        var reason: UnfitValue
    }

    init(_ root: NestedNode, _ types: [SQLType]) { (self.root, self.types) = (root, types) }

    /// Fills `leaves` anew from the first `count` values.
    /// - Throws: `valueDoesNotFit`, with the row.
    func fill(_ source: Column, count: Int) throws(ParquetError) {
        leaves = types.map { Leaf(values: Column($0, capacity: max(count, 16))) }
        isPut.removeAll(keepingCapacity: true)
        let views = UnsafePointer(source.values(StringView.self))
        for row in 0..<count {
            do throws(Refused) {
                guard !source.isNull(row) else {
                    try putMissing(root, repetition: 0, definition: 0)
                    continue
                }
                let result = views[row].withBytes { bytes -> Result<Void, Refused> in
                    var walk = JSONWalk(bytes)
                    do throws(Refused) { return .success(try put(root, &walk, repetition: 0, definition: 0)) } catch { return .failure(error) }
                }
                try result.get()
            } catch { throw .valueDoesNotFit(column: root.name, row: row, error.reason) }
        }
    }

    private func putMissing(_ node: NestedNode, repetition: Int, definition: Int) throws(Refused) {
        guard !node.isRequired else { throw Refused(reason: .missingMember(node.name)) }
        putNothing(node.leaves, repetition, definition)
    }

    private func putNothing(_ range: Range<Int>, _ repetition: Int, _ definition: Int) {
        for leaf in range {
            leaves[leaf].repetitions.append(UInt32(repetition))
            leaves[leaf].definitions.append(UInt32(definition))
        }
    }

    private func put(_ node: NestedNode, _ walk: inout JSONWalk, repetition: Int, definition: Int) throws(Refused) {
        let kind = walk.kind()
        if kind == .null {
            walk.bare(into: &text)
            return try putMissing(node, repetition: repetition, definition: definition)
        }
        let level = definition + (node.isRequired ? 0 : 1)
        switch (node.kind, kind) {
        case (.value, .text):
            walk.text(into: &text)
            try putText(node, repetition, level)
        case (.value, .bare):
            walk.bare(into: &text)
            try putText(node, repetition, level)
        case (.group(let members), .object): try put(members, of: node, &walk, repetition, level)
        case (.list(let element), .array):
            guard walk.enter() else { return putNothing(node.leaves, repetition, level) }
            var repetition = repetition
            repeat {
                try put(element, &walk, repetition: repetition, definition: level + 1)
                repetition = node.repetition
            } while walk.next()
        case (.map(let key, let value), .object):
            guard walk.enter() else { return putNothing(node.leaves, repetition, level) }
            var repetition = repetition
            repeat {
                walk.name(into: &text)
                try putText(key, repetition, level + 1 + (key.isRequired ? 0 : 1))
                try put(value, &walk, repetition: repetition, definition: level + 1)
                repetition = node.repetition
            } while walk.next()
        default: throw Refused(reason: .notOfType(node.name))
        }
    }

    private func put(
        _ members: [(name: [UInt8], node: NestedNode)], of node: NestedNode, _ walk: inout JSONWalk, _ repetition: Int, _ level: Int
    ) throws(Refused) {
        // JSON has members in an order of its own; leaves need not be filled in theirs.
        let start = isPut.count
        isPut.append(contentsOf: repeatElement(false, count: members.count))
        var more = walk.enter()
        while more {
            walk.name(into: &text)
            guard let place = members.firstIndex(where: { $0.name == text }), !isPut[start + place] else {
                throw Refused(reason: .unknownMember(String(decoding: text, as: UTF8.self)))
            }
            isPut[start + place] = true
            try put(members[place].node, &walk, repetition: repetition, definition: level)
            more = walk.next()
        }
        for (place, member) in members.enumerated() where !isPut[start + place] {
            try putMissing(member.node, repetition: repetition, definition: level)
        }
        isPut.removeLast(members.count)
    }

    /// The value that `text` says.
    private func putText(_ node: NestedNode, _ repetition: Int, _ level: Int) throws(Refused) {
        let leaf = node.leaves.lowerBound
        let values = leaves[leaf].values
        if values.count == values.capacity { leaves[leaf].values = values.grown(to: values.capacity * 2, filled: values.count) }
        let result = text.withUnsafeBufferPointer { text -> SQLError? in
            do throws(SQLError) {
                try TextInput.parse(text, as: types[leaf], into: leaves[leaf].values)
                return nil
            } catch { return error }
        }
        guard result == nil else { throw Refused(reason: .notOfType(node.name)) }
        leaves[leaf].repetitions.append(UInt32(repetition))
        leaves[leaf].definitions.append(UInt32(level))
    }
}
