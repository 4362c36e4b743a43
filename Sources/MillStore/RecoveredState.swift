package import MillBase
import MillIO
package import MillState
import Synchronization

/// A checkpoint found at the start, from which tables are filled once its blocks have been found (`StateStore.findBlocks`).
/// Usable from any thread.
package final class RecoveredState: Sendable {
    package let record: CheckpointRecord
    private let tables: [TablePlace: CheckpointRecord.Table]
    private let state: Mutex<State>

    private struct State {
        var files: [UInt64: any File]
        var blocks: BlockIndex?
        var isClosed = false
        var progress: RecoveryProgress
        var isCancelled = false
    }

    init(record: CheckpointRecord, files: [UInt64: any File]) {
        self.record = record
        workers = record.tables.reduce(into: [:]) { $0[$1.place.job] = max($0[$1.place.job] ?? 0, $1.place.worker + 1) }
        jobs = Set(workers.keys)
        tables = Dictionary(record.tables.map { ($0.place, $0) }) { first, _ in first }
        state = Mutex(State(files: files, progress: RecoveryProgress(record)))
    }

    /// Jobs that the checkpoint holds.
    package let jobs: Set<ObjectID>

    /// How many workers made a job's state, 0 for a job that the checkpoint does not hold. Not the same for all: one that does not run is
    /// kept as it was.
    package func workers(of job: ObjectID) -> Int { workers[job] ?? 0 }
    private let workers: [ObjectID: Int]

    package var progress: RecoveryProgress { state.withLock { $0.progress } }

    /// Nothing is read any more: who asks for a table gets 57P01.
    package func cancel() { state.withLock { $0.isCancelled = true } }

    var files: [UInt64: any File] { state.withLock { $0.files } }

    /// Nothing is taken from it any more. Its files are closed: those that no later checkpoint needs would else keep their room on the disk.
    package func close() {
        state.withLock { state in
            state.isClosed = true
            (state.files, state.blocks) = ([:], nil)
        }
    }

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    func take(_ blocks: BlockIndex) {
        state.withLock { state in
            state.blocks = blocks
            for table in record.tables { state.progress.expect(blocks.blocks(of: table.id).reduce(0) { $0 + $1.bytes }, of: table) }
        }
    }

    /// What is kept beside an object's tables.
    package func note(_ kind: String, of object: ObjectID) -> StateNote? { record.notes.first { $0.object == object && $0.kind == kind } }

    /// Fills a table with what it held.
    /// - Returns: false when the checkpoint does not have it.
    /// - Throws: XX001 when what is stored is damaged, 58030 when it cannot be read, 57P01 when it is not wanted any more, 55000 after `close`.
    package func restore(_ table: any DurableTable, at place: TablePlace) throws(SQLError) -> Bool {
        guard let stored = tables[place] else { return false }
        let (found, isClosed) = state.withLock { ($0.blocks, $0.isClosed) }
        guard !isClosed else { throw SQLError(.objectNotInPrerequisiteState, "the checkpoint that the start found is no longer at hand") }
        guard let blocks = found else { preconditionFailure("a table is restored after its blocks were found") }
        do throws(StateCorruption) {
            if let damage = blocks.damage { throw StateCorruption(damage) }
            try table.restore(stored.shape)
            try apply(blocks.blocks(of: stored.id), to: table, stored)
            if isCancelled { throw StateCorruption("it was not read to its end") }
            try table.finishRestore()
            state.withLock { $0.progress.end(stored) }
            return true
        } catch {
            if isCancelled { throw .shuttingDown }
            throw SQLError(
                .dataCorrupted,
                "the stored state of node \(place.node), table \(place.ordinal), worker \(place.worker) is damaged: \(error)",
                hint: "Drop and create the object again, or restore the data directory from a copy.")
        }
    }

    private func apply(
        _ blocks: [BlockPlace], to table: any DurableTable, _ stored: CheckpointRecord.Table
    ) throws(StateCorruption) {
        let bytes = blocks.reduce(0) { $0 + $1.bytes }
        let files = files
        var (bytesRead, rowsRead) = (0, UInt64(0))
        try BlockReader(blocks, files).forEachRun { run, memory throws(StateCorruption) in
            if isCancelled { throw StateCorruption("it was not read to its end") }
            for place in run.places {
                guard let block = StateBlock(UnsafeRawBufferPointer(rebasing: memory[run.range(of: place)])) else {
                    throw StateCorruption("the block at \(place.offset) of page file \(place.file) is of no known kind")
                }
                try table.restore(block: block)
            }
            bytesRead += run.blockBytes
            let rows = UInt64(Double(stored.shape.count) * Double(bytesRead) / Double(bytes))
            let fresh = rows - rowsRead
            rowsRead = rows
            let read = run.blockBytes
            state.withLock { $0.progress.note(read, rows: fresh, of: stored) }
        }
    }
}
