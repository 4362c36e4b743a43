import MillIO
import MillState
import MillTestKit
import Testing

@testable import MillStore

/// Blocks come in order and verified, whoever reads them.
@Suite struct BlockReaderTests {
    /// The tables' blocks of a checkpoint in several page files.
    private func blocks(_ files: MemoryFileSystem) throws -> (tables: [[BlockPlace]], files: [UInt64: any File]) {
        var random = SeededGenerator(seed: 7)
        let shelf = try Shelf(files)
        for _ in 0..<6 {
            shelf.change(&random, count: 300)
            try shelf.checkpoint()
        }
        let name = try #require(try files.list("/state").filter { $0.hasPrefix("checkpoint-") }.max())
        let record = try CheckpointRecord(files.open("/state/\(name)", .read).readAll())
        var open: [UInt64: any File] = [:]
        for file in record.files { open[file.number] = try files.open("/state/pages-\(file.number)", .read) }
        let index = try BlockIndex(record, open)
        #expect(index.damage == nil && record.files.count > 1)
        return (record.tables.map { index.blocks(of: $0.id) }, open)
    }

    private func pages(_ blocks: [BlockPlace], _ files: [UInt64: any File], aloneBytesMax: Int) throws(StateCorruption) -> [[UInt8]] {
        var found: [[UInt8]] = []
        try BlockReader(blocks, files, aloneBytesMax: aloneBytesMax).forEachRun { run, bytes throws(StateCorruption) in
            for place in run.places { found.append(Array(bytes[run.range(of: place)])) }
        }
        return found
    }

    @Test func aThreadThatReadsAheadGivesTheSame() throws {
        let disk = MemoryFileSystem()
        let (tables, files) = try blocks(disk)
        for blocks in tables {
            let alone = try pages(blocks, files, aloneBytesMax: .max)
            #expect(alone.count == blocks.count && alone.count > 4)
            #expect(try pages(blocks, files, aloneBytesMax: 0) == alone)
        }
    }

    @Test func aDamagedBlockIsNamed() throws {
        let disk = MemoryFileSystem()
        let (tables, files) = try blocks(disk)
        let block = try #require(tables.first?.last)
        let file = try disk.open("/state/pages-\(block.file)", .readWrite)
        var bytes = try file.readAll()
        bytes[block.end - 1] ^= 1
        try file.write(bytes)
        for aloneBytesMax in [0, Int.max] {
            let error = #expect(throws: StateCorruption.self) { try pages(tables[0], files, aloneBytesMax: aloneBytesMax) }
            #expect("\(String(describing: error))".contains("the block at \(block.offset) of page file \(block.file)"))
        }
    }

    /// Who takes the blocks may stop in the middle.
    @Test func readingAheadEndsWithItsTaker() throws {
        let disk = MemoryFileSystem()
        let (tables, files) = try blocks(disk)
        var seen = 0
        #expect(throws: StateCorruption.self) {
            try BlockReader(tables[0], files, aloneBytesMax: 0).forEachRun { _, _ throws(StateCorruption) in
                seen += 1
                throw StateCorruption("enough")
            }
        }
        #expect(seen == 1)
    }
}
