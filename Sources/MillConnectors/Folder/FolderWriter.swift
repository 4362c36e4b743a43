import MillBase
import MillColumnar
import MillConnectorKit
import MillIO
import MillObjectStore
import MillParquet

/// Rows of a sink on their way into the files of a folder.
///
/// Fed by the sink's thread. Files are written under their final names and seen by nobody until they are finished, which `commit` does with
/// all of them at once. Whoever lists the folder finds complete files only, and each row in one of them at most.
///
/// Commit through epoch E:
/// 1. All files get their footers. They are still seen by nobody.
/// 2. The sink's state object is replaced, on condition that it is the one this writer knows: E is pending, with the names of the files. A
///    writer that another one has taken the place of fails here, before anything of it is seen.
/// 3. The files are finished: now they are seen, one after the other.
/// 4. The state is replaced again: E is committed. From here on it is.
///
/// What a crash leaves: before 2 nothing that is seen. Between 2 and 4 files that are not committed, of rows that will be sent again: the next
/// `open` removes those that the state names, before anything else. Until then a reader may see part of them, none twice.
/// Half-written files of this machine's disk are removed by `open` as well, if no other sink writes into the folder.
///
/// Threading: one thread at a time.
final class FolderWriter: SinkWriter {
    private let sink: FolderSink
    private let store: any ObjectStore
    private let random: any RandomSource
    private let stateLocation: String
    private let columns: [ParquetColumn]
    /// Places of the columns that are in the files.
    private let stored: [Int]
    private let partitioner: FolderPartitioner

    private var state = FolderState()
    /// nil before the first state is put.
    private var tag: String?
    private var open: [FolderPartitioner.Key: FolderFile] = [:]
    /// Full ones, with their footers.
    private var full: [FolderFile] = []
    private var fileCount = 0
    private var writeCount = 0
    private(set) var pending = SinkPending()

    /// Files open at once; beyond, the one that waited longest for a row gets its footer, so that memory is bounded and files may be small.
    private static let openFilesMax = 64
    /// Of open files in memory; beyond, the one with the most gets its footer.
    private static let bufferedBytesMax = 256 << 20

    var committedEpoch: Int64? { state.committed }
    private var folder: String { sink.options.folder }

    /// Takes back what a crash has left.
    init(_ sink: FolderSink, _ name: SinkName, _ store: any ObjectStore, _ random: any RandomSource) throws(SQLError) {
        self.sink = sink
        self.store = store
        self.random = random
        stateLocation = FolderState.location(in: sink.options.folder, of: name)
        partitioner = FolderPartitioner(sink.fields, sink.options.partition)
        stored = sink.fields.indices.filter { !sink.options.partition.contains($0) }
        columns = stored.map { ParquetColumn(sink.fields[$0].name, sink.fields[$0].type) }
        do throws(IOFailure) { try takeUp() } catch {
            guard error.errorNumber == FolderState.isDamaged else { throw taken(error) }
            throw SQLError(.dataCorrupted, "\"\(stateLocation)\" is no state of a sink", hint: "Drop the sink and create it again.")
        }
    }

    private func takeUp() throws(IOFailure) {
        if let entry = try store.look(at: stateLocation) {
            guard let found = FolderState(try store.get(stateLocation)) else {
                throw IOFailure("read", path: stateLocation, errorNumber: FolderState.isDamaged, detail: "it is no state of a sink")
            }
            // Should another have replaced it in between, the first put finds out.
            state = found
            tag = entry.tag
        }
        if state.pending != nil {
            try store.remove(state.files.map { folder + "/" + $0.name })
            state.pending = nil
            state.files = []
            try put(state)
        }
        try removeHalfWritten()
    }

    private func removeHalfWritten() throws(IOFailure) {
        guard let local = store as? LocalObjectStore else { return }
        let states = try store.list(FolderState.directory(of: folder)).filter { $0.location.hasSuffix("/" + FolderState.fileName) }
        if states.allSatisfy({ $0.location == stateLocation }) { try local.removeLeftovers(under: folder) }
    }

    /// Replaces the state, if it is still the one that is known here.
    private func put(_ next: FolderState) throws(IOFailure) {
        let bytes = next.bytes
        try store.put(stateLocation, bytes, tag.map { .hasTag($0) } ?? .isMissing)
        // The tag is of these bytes, or the next put with it fails.
        guard let entry = try store.look(at: stateLocation), try store.get(stateLocation) == bytes else {
            throw IOFailure("put", path: stateLocation, errorNumber: FolderState.conditionUnmet, detail: "another one is in its place")
        }
        state = next
        // One that has no tags has no conditions either.
        tag = entry.tag
    }

    // MARK: Rows

    func write(_ batch: DeltaBatch, epoch: Int64) throws(SQLError) -> [RefusedRow] {
        writeCount += 1
        var refused: [RefusedRow] = []
        let rows = try added(of: batch)
        for part in partitioner.split(batch, rows, &refused) {
            let columns = stored.map { batch.columns[$0] }
            // Without copies of rows as many as there are are all of them.
            let isWhole = batch.weights == nil && part.rows.count == batch.count
            refused += try append(columns, part.rows, isWhole: isWhole, to: try file(of: part.key))
        }
        while open.count > 1, open.values.reduce(0, { $0 + $1.bufferedByteCount }) > Self.bufferedBytesMax,
            let largest = open.values.max(by: { $0.bufferedByteCount < $1.bufferedByteCount })
        { try close(largest) }
        pending.byteCount = Int64(full.reduce(0) { $0 + $1.byteCount } + open.values.reduce(0) { $0 + $1.byteCount })
        return refused.sorted { $0.row < $1.row }
    }

    /// The rows of a batch, one of weight n n times.
    private func added(of batch: DeltaBatch) throws(SQLError) -> [UInt32] {
        guard batch.weights != nil else { return (0..<batch.count).map { UInt32($0) } }
        var rows: [UInt32] = []
        rows.reserveCapacity(batch.count)
        for row in 0..<batch.count {
            let weight = batch.weight(row)
            guard weight > 0, weight <= Limits.batchRowsMax * 1024 else {
                throw SQLError(
                    .featureNotSupported, "a folder of files cannot take a row with weight \(weight)",
                    hint: "Rows are only added to it. Use connector = 'iceberg' with type = 'upsert' where rows change.")
            }
            for _ in 0..<weight { rows.append(UInt32(row)) }
        }
        return rows
    }

    /// Appends those rows that the columns of the file can hold.
    private func append(_ columns: [Column], _ rows: [UInt32], isWhole: Bool, to file: FolderFile) throws(SQLError) -> [RefusedRow] {
        var refused: [RefusedRow] = []
        var waiting = [rows[...]]
        while var part = waiting.popLast() {
            guard !part.isEmpty else { continue }
            if part.count > Limits.batchRowsMax, let last = part.dropFirst(Limits.batchRowsMax - 1).first {
                // Copies of a row stay together, so that it is refused once.
                let end = part.dropFirst(Limits.batchRowsMax).firstIndex { $0 != last } ?? part.endIndex
                waiting.append(part[end...])
                part = part[..<end]
            }
            do throws(ParquetError) {
                let picked =
                    isWhole && part.count == rows.count
                    ? columns
                    : part.withUnsafeBufferPointer { rows in
                        columns.map { $0.gather(rows.baseAddress.unsafelyUnwrapped, count: rows.count) }
                    }
                try file.append(picked, count: part.count, at: writeCount)
                pending.rowCount += Int64(part.count)
            } catch {
                switch error {
                case .valueDoesNotFit(let column, let row, let reason):
                    let place = part.startIndex + row
                    let culprit = part[place]
                    refused.append(RefusedRow(row: Int(culprit), column: column, reason: "\(reason)"))
                    // Its copies follow it. Those before it have not been tried with the other columns yet.
                    waiting.append(part[place...].drop { $0 == culprit })
                    waiting.append(part[..<place])
                case .batchTooLarge where part.count > 1:
                    let middle = part.startIndex + part.count / 2
                    waiting.append(part[middle...])
                    waiting.append(part[..<middle])
                default: throw error.sqlError
                }
            }
        }
        if file.rowCount >= sink.options.fileRowsMax || file.byteCount >= sink.options.fileBytesMax { try close(file) }
        return refused
    }

    // MARK: Files

    private func file(of key: FolderPartitioner.Key) throws(SQLError) -> FolderFile {
        if let found = open[key] { return found }
        if open.count >= Self.openFilesMax, let oldest = open.values.min(by: { $0.lastWrite < $1.lastWrite }) { try close(oldest) }
        fileCount += 1
        let name = "\(key.directory)part-\(FolderSink.hexadecimal(random, digits: 16))-\(fileCount).parquet"
        let file = try FolderFile(key, name: name, in: folder, columns, sink.options.parquet, store)
        open[key] = file
        return file
    }

    /// Gives a file its footer; it is still seen by nobody.
    private func close(_ file: FolderFile) throws(SQLError) {
        open[file.key] = nil
        do throws(ParquetError) { try file.end() } catch {
            file.abandon()
            throw error.sqlError
        }
        full.append(file)
    }

    func commit(through epoch: Int64) throws(SQLError) {
        for file in open.values.sorted(by: { $0.name < $1.name }) { try close(file) }
        do throws(IOFailure) {
            let files = full.map { FolderState.File(rowCount: $0.rowCount, byteCount: $0.byteCount, name: $0.name) }
            var next = state
            if !files.isEmpty {
                next.pending = epoch
                next.files = files
                try put(next)
                for file in full { try file.finish() }
            }
            next.pending = nil
            next.committed = epoch
            next.files = files
            try put(next)
        } catch { throw taken(error) }
        full = []
        pending = SinkPending()
    }

    private func taken(_ error: IOFailure) -> SQLError {
        guard error.errorNumber == FolderState.conditionUnmet else { return error.sqlError }
        return SQLError(
            .objectNotInPrerequisiteState, "another writer has taken over the sink's folder \"\(folder)\"",
            hint: "Only one server may run a sink: stop the one that was started from a copy of the data directory.")
    }

    /// Files that were finished and not committed stay until the next `open`, as the state says.
    func close() {
        for file in open.values { file.abandon() }
        for file in full { file.abandon() }
        open = [:]
        full = []
        pending = SinkPending()
    }
}
