import MillBase
import MillIO
import MillState
import Synchronization

/// Where the blocks lie that make each table: of every page the last whole one and what came after it.
struct BlockIndex: Sendable {
    private var places: [TableID: [BlockPlace]] = [:]
    /// Where in `places` the last whole block of each page is.
    private var wholes: [TableID: [UInt32: Int]] = [:]
    /// What is damaged so that nobody knows whose it was.
    private(set) var damage: String?
    private(set) var bases = PageBases()

    /// The blocks that count of a table, in the order in which they are to be applied.
    func blocks(of table: TableID) -> [BlockPlace] {
        let wholes = wholes[table] ?? [:]
        return (places[table] ?? []).enumerated().filter { index, place in index >= wholes[place.page] ?? 0 }.map(\.element)
    }

    /// - Parameter pages: how many a table can have, by table.
    private mutating func note(_ place: BlockPlace, _ pages: [TableID: UInt64]) {
        // Of a table that is no more.
        guard let limit = pages[place.table] else { return }
        if place.isWhole { wholes[place.table, default: [:]][place.page] = places[place.table]?.count ?? 0 }
        places[place.table, default: []].append(place)
        // What is out of bounds is the table's to refuse.
        if UInt64(place.page) < limit { bases.note(place) }
    }

    // MARK: Reading

    /// So much at least is read by two threads.
    private static let sharedBytesMin = 16 << 20

    /// Reads the headers of all blocks that count.
    ///
    /// The files are read whole: that is what brings them into memory in the order of the disk, for the tables to be filled from.
    /// - Parameter isCancelled: asked now and then; nothing is read any more once it is true.
    init(
        _ record: CheckpointRecord, _ files: [UInt64: any File], isCancelled: @escaping @Sendable () -> Bool = { false }
    ) throws(IOFailure) {
        let reading = Reading(record.files, files, isCancelled)
        if record.files.count > 1, record.files.reduce(0, { $0 + Int($1.bytes) }) >= Self.sharedBytesMin {
            // Alone it takes longer.
            let helper = try? PinnedThread(stackBytes: 1 << 20) { reading.readFiles() }
            reading.readFiles()
            helper?.join()
        } else {
            reading.readFiles()
        }
        // A row takes its place in a page of its own at worst.
        let pages = Dictionary(record.tables.map { ($0.id, $0.shape.used) }) { max($0, $1) }
        for result in reading.results {
            let found = try result.get()
            for place in found.places { note(place, pages) }
            if damage == nil { damage = found.damage }
        }
    }

    /// What one page file has.
    private struct Found: Sendable {
        var places: [BlockPlace] = []
        var damage: String?
    }

    /// Page files, each read by whoever comes to it first.
    private final class Reading: Sendable {
        private let pageFiles: [CheckpointRecord.PageFile]
        private let files: [UInt64: any File]
        private let isCancelled: @Sendable () -> Bool
        private let state: Mutex<State>

        private struct State {
            var next = 0
            var results: [Result<Found, IOFailure>]
        }

        init(_ pageFiles: [CheckpointRecord.PageFile], _ files: [UInt64: any File], _ isCancelled: @escaping @Sendable () -> Bool) {
            self.pageFiles = pageFiles
            self.files = files
            self.isCancelled = isCancelled
            state = Mutex(State(results: pageFiles.map { .success(Found(damage: "page file \($0.number) was not read")) }))
        }

        /// In the order of the files.
        var results: [Result<Found, IOFailure>] { state.withLock { $0.results } }

        func readFiles() {
            while !isCancelled() {
                let claimed: Int? = state.withLock { state in
                    guard state.next < pageFiles.count else { return nil }
                    state.next += 1
                    return state.next - 1
                }
                guard let claimed else { return }
                let result = read(pageFiles[claimed])
                state.withLock { $0.results[claimed] = result }
            }
        }

        private func read(_ pages: CheckpointRecord.PageFile) -> Result<Found, IOFailure> {
            guard let file = files[pages.number] else { return .success(Found(damage: "page file \(pages.number) is missing")) }
            do throws(IOFailure) { return .success(try BlockIndex.places(in: file, pages)) } catch { return .failure(error) }
        }
    }

    private static let chunkBytes = 4 << 20

    /// The blocks that count of one page file, up to the first damaged header.
    private static func places(in file: any File, _ pages: CheckpointRecord.PageFile) throws(IOFailure) -> Found {
        var found = Found()
        var chunk: [UInt8] = []
        var chunkStart = 0
        /// Bytes of the chunk that are there.
        var chunkCount = 0
        var offset = StateStore.header.count
        let end = Int(pages.bytes)
        var header = [UInt8](repeating: 0, count: StateStore.header.count)
        _ = try file.read(at: 0, into: &header, count: header.count)
        guard header == StateStore.header else {
            return Found(damage: "page file \(pages.number) is not one, or of another version")
        }
        while offset < end {
            if offset < chunkStart || offset + StateBlock.headerBytes > chunkStart + chunkCount {
                chunkStart = offset
                let size = min(chunkBytes, end - offset)
                if chunk.count < size { chunk = [UInt8](repeating: 0, count: size) }
                chunkCount = try file.read(at: chunkStart, into: &chunk, count: size)
            }
            let place: BlockPlace? = chunk.withUnsafeBytes { bytes in
                let start = offset - chunkStart
                guard start + StateBlock.headerBytes <= chunkCount else { return nil }
                let header = UnsafeRawBufferPointer(rebasing: bytes[start..<start + StateBlock.headerBytes])
                guard BlockChecksums.isHeaderWhole(header), let block = StateBlock(header) else { return nil }
                return BlockPlace(
                    block, file: pages.number, offset: offset, bytes: Int(header.loadUnaligned(as: UInt32.self)))
            }
            guard let place, place.bytes >= StateBlock.headerBytes, place.bytes & 7 == 0, place.end <= end else {
                found.damage = "the block at \(offset) of page file \(pages.number) has a damaged header"
                return found
            }
            found.places.append(place)
            offset = place.end
        }
        return found
    }
}
