import MillBase
import MillIO
import MillState

/// Appends the blocks of one checkpoint to page files: to the last one of the checkpoint before while that has room, then to new ones.
struct PageFileWriter: ~Copyable {
    private let store: StateStore
    private let retry: (IOFailure) -> Bool
    /// The page files that the checkpoint names so far, the one that is written to last.
    private(set) var list: [CheckpointRecord.PageFile]
    private(set) var bytesWritten = 0
    private var created: [UInt64] = []
    private var touched: [any File] = []
    private var buffer: [UInt8] = []
    /// The block that a write ends in goes through the page cache, and the next write waits for it: so few, large ones.
    private static let bufferBytes = 4 << 20

    init(_ store: StateStore, after list: [CheckpointRecord.PageFile], retry: @escaping (IOFailure) -> Bool) {
        self.store = store
        self.list = list
        self.retry = retry
    }

    /// Appends what tables changed, and makes it durable.
    mutating func write(_ tables: [SealedTable], _ written: inout StateStore.Written) throws(IOFailure) {
        for table in tables {
            guard let changes = table.changes else { continue }
            for index in 0..<changes.count {
                let start = buffer.count
                changes.write(index, to: &buffer)
                BlockChecksums.write(&buffer, from: start)
                if buffer.count >= Self.bufferBytes { try flush(&written) }
            }
            written.pages.forget(changes.freed, of: table.id)
        }
        try flush(&written)
        for file in touched { try file.sync() }
        if !created.isEmpty { try store.files.syncDirectory(store.directory) }
    }

    /// Takes away what a checkpoint wrote that came to nothing: nothing names these files, and on a full disk they are in the way of the next.
    func removeCreated() {
        for number in created { try? store.files.remove(store.path("pages", number)) }
    }

    private mutating func flush(_ written: inout StateStore.Written) throws(IOFailure) {
        guard !buffer.isEmpty else { return }
        if written.file == nil || list.isEmpty || list[list.count - 1].bytes >= UInt64(store.fileBytesMax) { try begin(&written) }
        guard let file = written.file else { return }
        if touched.last !== file { touched.append(file) }
        let (number, offset) = (list[list.count - 1].number, Int(list[list.count - 1].bytes))
        noteBlocks(of: number, &written.pages)
        try store.attempt(retry) { [store, buffer] () throws(IOFailure) in try store.writer.write([buffer], to: file, at: offset) }
        list[list.count - 1].bytes += UInt64(buffer.count)
        bytesWritten += buffer.count
        buffer.removeAll(keepingCapacity: true)
    }

    /// Begins a new page file.
    private mutating func begin(_ written: inout StateStore.Written) throws(IOFailure) {
        let number = written.nextFile
        written.nextFile += 1
        created.append(number)
        let store = store
        written.file = try store.attempt(retry) { () throws(IOFailure) in
            try store.files.createDirectory(store.directory)
            let file = try store.files.open(store.path("pages", number), .create)
            try file.write(StateStore.header)
            return file
        }
        list.append(CheckpointRecord.PageFile(number: number, bytes: UInt64(StateStore.header.count)))
    }

    private func noteBlocks(of file: UInt64, _ pages: inout PageBases) {
        buffer.withUnsafeBytes { all in
            var offset = 0
            while offset < all.count {
                let count = Int(all.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
                if let block = StateBlock(UnsafeRawBufferPointer(rebasing: all[offset..<offset + count])) {
                    pages.note(BlockPlace(block, file: file, offset: offset, bytes: count))
                }
                offset += count
            }
        }
    }
}
