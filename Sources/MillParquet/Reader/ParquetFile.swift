package import MillColumnar
package import MillIO

/// An open Parquet file: its footer, and what its columns are in SQL.
///
/// Nothing in it is believed: lengths are held against the file's size before memory is reserved, and what is wrong is said with the
/// file's name and the offset.
package struct ParquetFile: Sendable {
    package let file: any File
    package let metadata: FileMetadata
    package let nodes: [SchemaNode]
    /// The columns of the file, one for each node below the root.
    package let columns: [Column]
    /// Where the footer begins: pages and indexes lie before.
    let footerStart: Int

    /// A column as SQL sees it.
    package struct Column: Sendable {
        package let name: String
        package let fieldID: Int32?
        /// Nil when we cannot read it; asking for it says why.
        package let type: SQLType?
        package let isRequired: Bool
    }

    private static let magic: [UInt8] = Array("PAR1".utf8)
    private static let encryptedMagic: [UInt8] = Array("PARE".utf8)
    /// The footer's length and the magic number.
    private static let tailBytes = 8

    package init(_ file: any File) throws(ParquetError) {
        self.file = file
        let size: Int
        do throws(IOFailure) { size = try file.size() } catch { throw .io(error) }
        func malformed(_ offset: Int, _ reason: Malformed) -> ParquetError {
            .malformed(file: file.path, offset: offset, column: nil, reason)
        }
        guard size >= Self.magic.count + Self.tailBytes else { throw malformed(0, .cutShort) }
        let tail = try Self.read(file, at: size - Self.tailBytes, Self.tailBytes)
        let end = tail.bytes.suffix(4)
        guard !end.elementsEqual(Self.encryptedMagic) else { throw .unsupported(file: file.path, column: nil, feature: "it is encrypted") }
        guard end.elementsEqual(Self.magic) else { throw malformed(size - 4, .noMagicNumber) }
        let length = Int(UInt32(littleEndian: tail.bytes.loadUnaligned(as: UInt32.self)))
        guard length <= size - Self.magic.count - Self.tailBytes else { throw malformed(size - Self.tailBytes, .badLength(length)) }
        footerStart = size - Self.tailBytes - length
        let footer = try Self.read(file, at: footerStart, length)
        do throws(Malformed) {
            metadata = try FileMetadata(footer.bytes)
            nodes = try SchemaTreeBuilder.build(metadata.schema)
            let leafCount = nodes.reduce(0) { $0 + $1.leaves.count }
            var rowCount: Int64 = 0
            for group in metadata.rowGroups {
                guard group.columns.count == leafCount else {
                    throw .badSchema("a row group has \(group.columns.count) columns of \(leafCount)")
                }
                let (sum, overflow) = rowCount.addingReportingOverflow(group.rowCount)
                guard !overflow else { throw .badLength(Int(group.rowCount)) }
                rowCount = sum
            }
            guard rowCount == metadata.rowCount else { throw .badSchema("its row groups have \(rowCount) rows, not \(metadata.rowCount)") }
        } catch { throw malformed(footerStart, error) }
        columns = nodes.map { node in
            Column(
                name: node.name, fieldID: node.fieldID, type: try? Self.source(of: node, as: nil, .asStored).type,  // asking for the column says why not
                isRequired: node.repetition == .required)
        }
    }

    static func read(_ file: any File, at offset: Int, _ count: Int) throws(ParquetError) -> PageMemory {
        let memory = PageMemory(count: count)
        let found: Int
        do throws(IOFailure) {
            found = try file.read(at: offset, into: UnsafeMutableRawBufferPointer(start: memory.base, count: count))
        } catch { throw .io(error) }
        guard found == count else { throw .malformed(file: file.path, offset: offset + found, column: nil, .cutShort) }
        return memory
    }

    /// How a column is read.
    enum Source {
        case flat(SchemaLeaf, ColumnMeaning)
        /// As jsonb.
        case nested(NestedShape, [(SchemaLeaf, ColumnMeaning)])

        var type: SQLType {
            switch self {
            case .flat(_, let meaning): meaning.type
            case .nested: .jsonb
            }
        }
    }

    private static func source(of node: SchemaNode, as type: SQLType?, _ projection: NestedProjection) throws(UnreadableType) -> Source {
        if case .leaf(let leaf) = node.kind, leaf.repetitionMax == 0 {
            let meaning = try ColumnMeaning(leaf)
            return .flat(leaf, try type.map { (type) throws(UnreadableType) in try meaning.widened(to: type) } ?? meaning)
        }
        guard type == nil || type == .jsonb else { throw UnreadableType("it is nested, which can only be read as jsonb") }
        let shape = try NestedShape(column: node, as: projection)
        return .nested(shape, try node.leaves.map { (leaf) throws(UnreadableType) in (leaf, try ColumnMeaning(leaf)) })
    }

    func source(of index: Int, as type: SQLType?, _ projection: NestedProjection = .asStored) throws(ParquetError) -> Source {
        precondition(nodes.indices.contains(index), "only columns of the file are asked for")
        do throws(UnreadableType) { return try Self.source(of: nodes[index], as: type, projection) } catch {
            throw .unsupported(file: file.path, column: nodes[index].name, feature: error.reason)
        }
    }
}
