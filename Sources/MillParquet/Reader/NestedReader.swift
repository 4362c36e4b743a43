import MillColumnar

/// Puts the leaves of a nested column together again, row by row, as canonical JSON.
///
/// Every leaf has an entry wherever one of the others has: the first leaf of a node decides whether the node is there and how often it
/// repeats. Numbers and booleans are JSON's own, NaN, infinities and all else are texts as SQL prints them.
///
/// Threading: one thread at a time. Source: "Dremel: Interactive Analysis of Web-Scale Datasets", record assembly.
final class NestedReader: RowReader {
    private let shape: NestedShape
    private let leaves: [LeafCursor]
    private var text: [UInt8] = []
    /// Rows of the row group not yet read.
    private var left: Int

    /// Of one row: a few bytes of levels can announce any number of elements.
    private static let textBytesMax = 1 << 28
    /// Of the rows of one batch together.
    private static let batchBytesMax = 1 << 30

    init(_ shape: NestedShape, _ leaves: [LeafCursor], rowCount: Int) {
        (self.shape, self.leaves, left) = (shape, leaves, rowCount)
    }

    func read(_ count: Int) throws(ParquetError) -> Column {
        let column = Column(.jsonb, capacity: count)
        var canonical: [UInt8] = []
        var byteCount = 0
        for _ in 0..<count {
            try checkStart()
            text.removeAll(keepingCapacity: true)
            canonical.removeAll(keepingCapacity: true)
            if try isMissing(shape) {
                try pass(shape)
                column.appendNull()
                continue
            }
            try append(shape)
            let isJSON = text.withUnsafeBufferPointer { bytes in
                do {
                    try JSONCanonicalizer.canonicalize(bytes, to: &canonical)
                    return true
                } catch { return false }
            }
            // What is put together here is JSON; that leaves one thing that jsonb refuses.
            guard isJSON else { throw leaves[0].unsupported("a text in it has a zero byte, which jsonb cannot hold") }
            byteCount += canonical.count
            guard byteCount <= Self.batchBytesMax else {
                throw leaves[0].unsupported("\(count) rows of it take more than \(Self.batchBytesMax) bytes as JSON")
            }
            canonical.withUnsafeBufferPointer { column.append(bytes: $0) }
        }
        try pass(rows: count)
        return column
    }

    func skip(_ count: Int) throws(ParquetError) {
        for leaf in leaves {
            for _ in 0..<count {
                try leaf.advance()
                while try leaf.repetition() > 0 { try leaf.advance() }
            }
        }
        try pass(rows: count)
    }

    /// Counts rows as read. Values behind the last row would be lost without a word.
    private func pass(rows count: Int) throws(ParquetError) {
        left -= count
        guard left == 0 else { return }
        for leaf in leaves where !leaf.isAtEnd { throw leaf.malformed(.badPage("it has values of more rows than there are")) }
    }

    /// Leaves that disagree about where rows begin would give rows that never were.
    private func checkStart() throws(ParquetError) {
        for leaf in leaves where try leaf.repetition() != 0 {
            throw leaf.malformed(.badPage("its levels do not fit those of its neighbours"))
        }
    }

    private func isMissing(_ shape: NestedShape) throws(ParquetError) -> Bool {
        // An array that is there may be empty; what repeats without a group around it is never NULL.
        if case .array = shape.kind { return false }
        return try leaves[shape.leaves.lowerBound].definition() < shape.definition
    }

    /// Passes over the entries by which every leaf says that a node is not there.
    private func pass(_ shape: NestedShape) throws(ParquetError) {
        for index in shape.leaves { try leaves[index].advance() }
    }

    private func append(_ shape: NestedShape) throws(ParquetError) {
        let first = leaves[shape.leaves.lowerBound]
        guard text.count < Self.textBytesMax else {
            throw first.malformed(.badPage("a row of it takes more than \(Self.textBytesMax) bytes as JSON"))
        }
        if try isMissing(shape) {
            // An empty map is there, and has no entry.
            if case .map = shape.kind { put("{}") } else { put("null") }
            return try pass(shape)
        }
        switch shape.kind {
        case .value:
            appendValue(first)
            try first.advance()
        case .wrapper(let inner): try append(inner)
        case .object(let members, let missing): try appendObject(members, missing)
        case .array(let element):
            put("[")
            try appendRepeated(shape) { () throws(ParquetError) in try append(element) }
            put("]")
        case .map(let key, let value):
            put("{")
            try appendRepeated(shape) { () throws(ParquetError) in
                let cursor = leaves[key.leaves.lowerBound]
                var name: [UInt8] = []
                if try cursor.definition() == cursor.leaf.definitionMax { cursor.values.appendText(row: cursor.valueIndex, to: &name) }
                try cursor.advance()
                appendString(name)
                put(":")
                if let value { try append(value) } else { put("null") }
            }
            put("}")
        }
    }

    private func appendObject(_ members: [NestedShape.Member], _ missing: [NestedProjection.Member]) throws(ParquetError) {
        put("{")
        let start = text.count
        for member in members {
            let before = text.count
            if text.count > start { put(",") }
            appendString(Array((member.name ?? "").utf8))
            put(":")
            try append(member.shape)
            // One that the table has no more is read all the same: its leaves have entries as all others.
            if member.name == nil { text.removeLast(text.count - before) }
        }
        for member in missing {
            if text.count > start { put(",") }
            appendString(Array(member.name.utf8))
            put(":")
            text.append(contentsOf: member.missing.utf8)
        }
        put("}")
    }

    private func appendRepeated(_ shape: NestedShape, _ one: () throws(ParquetError) -> Void) throws(ParquetError) {
        let first = leaves[shape.leaves.lowerBound]
        if try first.definition() < shape.definition { return try pass(shape) }
        try one()
        while try first.repetition() == shape.repetition {
            put(",")
            try one()
        }
    }

    private func appendValue(_ cursor: LeafCursor) {
        let (values, row) = (cursor.values, cursor.valueIndex)
        var value: [UInt8] = []
        switch values.type {
        case .boolean: put(values.values(UInt8.self)[row] != 0 ? "true" : "false")
        case .int16, .int32, .int64, .jsonb: values.appendText(row: row, to: &text)
        case .float32 where values.values(Float.self)[row].isFinite, .float64 where values.values(Double.self)[row].isFinite, .numeric:
            values.appendText(row: row, to: &text)
        default:
            values.appendText(row: row, to: &value)
            appendString(value)
        }
    }

    private func put(_ literal: StaticString) {
        text.append(contentsOf: UnsafeBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount))
    }

    private func appendString(_ bytes: [UInt8]) { bytes.withUnsafeBufferPointer { JSONCanonicalizer.appendString($0, to: &text) } }
}
