package import MillBase
import MillIO
package import MillState

/// A checkpoint found at the start, from which tables are filled. Readable from any thread.
package final class RecoveredState: Sendable {
    package let record: CheckpointRecord
    private let blocks: BlockIndex
    private let files: [UInt64: any File]
    private let tables: [TablePlace: CheckpointRecord.Table]

    init(record: CheckpointRecord, blocks: BlockIndex, files: [UInt64: any File]) {
        self.record = record
        self.blocks = blocks
        self.files = files
        jobs = Set(record.tables.map(\.place.job))
        tables = Dictionary(record.tables.map { ($0.place, $0) }) { first, _ in first }
    }

    /// Jobs that the checkpoint holds.
    package let jobs: Set<ObjectID>

    /// What is kept beside an object's tables.
    package func note(_ kind: String, of object: ObjectID) -> StateNote? { record.notes.first { $0.object == object && $0.kind == kind } }

    /// Fills a table with what it held.
    /// - Returns: false when the checkpoint does not have it.
    /// - Throws: XX001 when what is stored is damaged, 58030 when it cannot be read.
    package func restore(_ table: any DurableTable, at place: TablePlace) throws(SQLError) -> Bool {
        guard let stored = tables[place] else { return false }
        do throws(StateCorruption) {
            if let damage = blocks.damage { throw StateCorruption(damage) }
            try table.restore(stored.shape)
            var buffer: [UInt8] = []
            for block in blocks.blocks(of: stored.id) {
                guard let file = files[block.file] else { throw StateCorruption("page file \(block.file) is missing") }
                if buffer.count < block.bytes { buffer = [UInt8](repeating: 0, count: max(block.bytes, 64 << 10)) }
                do throws(IOFailure) {
                    _ = try file.read(at: block.offset, into: &buffer, count: block.bytes)
                } catch { throw StateCorruption("\(error)") }
                let result = buffer.withUnsafeBytes { all -> Result<Void, StateCorruption> in
                    Self.restore(table, from: UnsafeRawBufferPointer(rebasing: all[..<block.bytes]), block)
                }
                try result.get()
            }
            try table.finishRestore()
            return true
        } catch {
            throw SQLError(
                .dataCorrupted,
                "the stored state of node \(place.node), table \(place.ordinal), worker \(place.worker) is damaged: \(error)",
                hint: "Drop and create the object again, or restore the data directory from a copy.")
        }
    }
}

extension RecoveredState {
    private static func restore(_ table: any DurableTable, from bytes: UnsafeRawBufferPointer, _ place: BlockIndex.Place) -> Result<
        Void, StateCorruption
    > {
        guard BlockChecksums.isBodyWhole(bytes), let block = StateBlock(bytes) else {
            return .failure(
                StateCorruption("the block at \(place.offset) of page file \(place.file) has another checksum than it says"))
        }
        do throws(StateCorruption) { return .success(try table.restore(block: block)) } catch { return .failure(error) }
    }
}

/// Where the blocks lie that make each table: of every page the last whole one and what came after it.
struct BlockIndex: Sendable {
    struct Place: Sendable {
        var file: UInt64
        var offset: Int
        var bytes: Int
        var page: UInt32
    }

    private var places: [TableID: [Place]] = [:]
    /// Where in `places` the last whole block of each page is.
    private var wholes: [TableID: [UInt32: Int]] = [:]
    /// What is damaged so that nobody knows whose it was.
    private(set) var damage: String?
    private(set) var bases = PageBases()

    func blocks(of table: TableID) -> [Place] {
        let wholes = wholes[table] ?? [:]
        return (places[table] ?? []).enumerated().filter { index, place in index >= wholes[place.page] ?? 0 }.map(\.element)
    }

    private static let chunkBytes = 4 << 20

    /// Reads the blocks that count of one page file.
    mutating func read(_ file: any File, _ pages: CheckpointRecord.PageFile) throws(IOFailure) {
        var chunk: [UInt8] = []
        var chunkStart = 0
        var offset = StateStore.header.count
        let end = Int(pages.bytes)
        var header = [UInt8](repeating: 0, count: StateStore.header.count)
        _ = try file.read(at: 0, into: &header, count: header.count)
        guard header == StateStore.header else { return damage = "page file \(pages.number) is not one, or of another version" }
        while offset < end {
            func has(_ count: Int) -> Bool { offset >= chunkStart && offset + count <= chunkStart + chunk.count }
            func load(_ count: Int) throws(IOFailure) {
                guard !has(count) else { return }
                chunkStart = offset
                let size = min(max(count, Self.chunkBytes), end - offset)
                if chunk.count != size { chunk = [UInt8](repeating: 0, count: size) }
                let got = try file.read(at: chunkStart, into: &chunk, count: size)
                if got < size { chunk.removeLast(size - got) }
            }
            try load(StateBlock.headerBytes)
            let count = chunk.withUnsafeBytes { bytes in
                has(StateBlock.headerBytes) ? Int(bytes.loadUnaligned(fromByteOffset: offset - chunkStart, as: UInt32.self)) : 0
            }
            guard count >= StateBlock.headerBytes, count & 7 == 0, offset + count <= end else {
                return damage = "page file \(pages.number) has no block at \(offset)"
            }
            let isNoted = chunk.withUnsafeBytes { bytes in
                let header = UnsafeRawBufferPointer(rebasing: bytes[(offset - chunkStart)..<(offset - chunkStart + StateBlock.headerBytes)])
                guard BlockChecksums.isHeaderWhole(header), let block = StateBlock(header) else { return false }
                note(block, Place(file: pages.number, offset: offset, bytes: count, page: block.page))
                return true
            }
            guard isNoted else { return damage = "the block at \(offset) of page file \(pages.number) has a damaged header" }
            offset += count
        }
    }

    private mutating func note(_ block: StateBlock, _ place: Place) {
        let table = TableID(block.table)
        if block.kind != .rows { wholes[table, default: [:]][block.page] = places[table]?.count ?? 0 }
        places[table, default: []].append(place)
        bases.note(block, bytes: place.bytes, in: place.file)
    }
}
