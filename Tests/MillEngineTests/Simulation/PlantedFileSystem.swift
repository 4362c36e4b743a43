import MillBase
import MillConnectorKit
import MillIO
import MillState
import MillTestKit
import Synchronization

@testable import MillStore

/// Bugs that the simulation has to find, made by a disk that does what a wrong program would have done.
enum PlantedBug: String, CaseIterable, Sendable {
    /// A sync of files of state does nothing.
    case skippedSync
    /// Pages are synced only after the record that names them: with the pages of the next one, so that many an end comes in between.
    case recordBeforePages
    /// The record's offsets are one further than the state.
    case offsetAhead
    /// Rows that were freed are not sealed.
    case freedRowNotSealed
    /// Half a page is lost and its checksum not looked at.
    case tornPage
    /// The directory of checkpoints is not synced, though what they hold is sent.
    case directoryNotSynced
    /// A sink's outbox is not synced.
    case outboxNotSynced
    /// Epochs are published before their journal entries are there: an end of the process always comes in between.
    case journalLate
}

final class PlantedFileSystem: FileSystem {
    private let files: MemoryFileSystem
    fileprivate let bug: PlantedBug
    fileprivate let unsynced = Mutex<[any File]>([])

    init(_ files: MemoryFileSystem, _ bug: PlantedBug) {
        self.files = files
        self.bug = bug
    }

    func open(_ path: String, _ mode: OpenMode) throws(IOFailure) -> any File { PlantedFile(try files.open(path, mode), self) }
    func list(_ directory: String) throws(IOFailure) -> [String] { try files.list(directory) }
    func createDirectory(_ path: String) throws(IOFailure) { try files.createDirectory(path) }
    func remove(_ path: String) throws(IOFailure) { try files.remove(path) }
    func exists(_ path: String) -> Bool { files.exists(path) }

    func rename(_ from: String, to: String) throws(IOFailure) { try files.rename(from, to: to) }
    func syncDirectory(_ path: String) throws(IOFailure) {
        if bug != .directoryNotSynced || !path.hasSuffix("/state") { try files.syncDirectory(path) }
    }
    func look(at path: String) throws(IOFailure) -> FileStatus? { try files.look(at: path) }
    func link(_ from: String, to: String) throws(IOFailure) { try files.link(from, to: to) }
    func lock(_ directory: String) throws(IOFailure) -> any FileLock { try files.lock(directory) }
}

private final class PlantedFile: File {
    private let file: any File
    private let system: PlantedFileSystem

    init(_ file: any File, _ system: PlantedFileSystem) {
        self.file = file
        self.system = system
    }

    var path: String { file.path }
    func size() throws(IOFailure) -> Int { try file.size() }
    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> Int { try file.read(at: offset, into: buffer) }
    func truncate(to size: Int) throws(IOFailure) { try file.truncate(to: size) }

    func write(_ buffer: UnsafeRawBufferPointer, at offset: Int) throws(IOFailure) {
        switch system.bug {
        case .offsetAhead where path.contains("checkpoint-"):
            guard var record = try? CheckpointRecord(Array(buffer)) else { break }
            record.position.offsets = record.position.offsets.mapValues { $0.mapValues { SplitOffset($0.position + 1) } }
            return try file.write(record.bytes, at: offset)
        case .freedRowNotSealed where path.contains("pages-") && offset > 0:
            return try file.write(BlockDamage.withoutFreedRows(Array(buffer)), at: offset)
        case .journalLate where path.contains("journal-") && offset > StateStore.header.count:
            return
        default: break
        }
        try file.write(buffer, at: offset)
    }

    func sync() throws(IOFailure) {
        switch system.bug {
        case .skippedSync where path.contains("/state/"): return
        case .outboxNotSynced where path.contains("segment-"): return
        case .recordBeforePages where path.contains("pages-"):
            for file in system.unsynced.withLock({ files in
                defer { files = [file] }
                return files
            }) { try file.sync() }
        default: try file.sync()
        }
    }
}

/// Changes of blocks that leave their checksums right.
enum BlockDamage {
    private static func forEachBlock(_ bytes: inout [UInt8], from start: Int, _ body: (inout [UInt8]) -> Void) {
        var offset = start
        while offset + StateBlock.headerBytes <= bytes.count {
            let count = bytes.withUnsafeBytes { Int($0.loadUnaligned(fromByteOffset: offset, as: UInt32.self)) }
            guard count >= StateBlock.headerBytes, offset + count <= bytes.count else { return }
            var block = Array(bytes[offset..<offset + count])
            body(&block)
            BlockChecksums.write(&block, from: 0)
            bytes.replaceSubrange(offset..<offset + count, with: block)
            offset += count
        }
    }

    /// Of the blocks of some rows those without the free ones, which are as if they had not been listed.
    static func withoutFreedRows(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        forEachBlock(&bytes, from: 0) { block in
            guard block[16] == StateBlock.Kind.rows.rawValue else { return }
            let rows = Int(block[18]) | Int(block[19]) << 8
            let heap = block.withUnsafeBytes { Int($0.loadUnaligned(fromByteOffset: 20, as: UInt32.self)) }
            let heapStart = block.count - (heap + 7) & ~7
            let first = StateBlock.headerBytes + (2 * rows + 7) & ~7
            let stride = (heapStart - first) / max(rows, 1)
            let live = (0..<rows).filter { row in block[(first + row * stride)..<(first + row * stride + 8)].contains { $0 != 0 } }
            var body = live.flatMap { Array(block[(StateBlock.headerBytes + 2 * $0)..<(StateBlock.headerBytes + 2 * $0 + 2)]) }
            while body.count & 7 != 0 { body.append(0) }
            for row in live { body += block[(first + row * stride)..<(first + (row + 1) * stride)] }
            body += [UInt8](repeating: 0, count: heapStart - StateBlock.headerBytes - body.count)
            block.replaceSubrange(StateBlock.headerBytes..<heapStart, with: body)
            (block[18], block[19]) = (UInt8(live.count & 255), UInt8(live.count >> 8))
        }
        return bytes
    }

    /// Loses half of some page.
    static func tear(_ files: MemoryFileSystem, _ random: inout SeededGenerator) throws {
        let names = try files.list("/data/state").filter { $0.hasPrefix("pages-") }
        guard let name = names.randomElement(using: &random) else { return }
        let file = try files.open("/data/state/\(name)", .readWrite)
        var bytes = try file.readAll()
        var blocks = 0
        forEachBlock(&bytes, from: StateStore.header.count) { _ in blocks += 1 }
        let torn = random.number(0...max(blocks - 1, 0))
        var number = 0
        forEachBlock(&bytes, from: StateStore.header.count) { block in
            if number == torn { for index in (StateBlock.headerBytes + (block.count - StateBlock.headerBytes) / 2)..<block.count { block[index] = 0 } }
            number += 1
        }
        try file.write(bytes)
        try file.sync()
    }
}
