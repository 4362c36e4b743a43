import MillBase
import MillColumnar
import MillConnectorKit
import MillIceberg
import MillParquet

/// Writes a relation's changes into a table's files and commits them.
///
/// A batch with a value that the table has no place for is refused as a whole before anything of it is written. Then all such values are
/// looked for, their rows are refused and the others taken. Numerics are rounded to the scale of the table's column.
///
/// A commit expects the progress that this writer left in the table. Where it is another, a second writer of the same sink is at work: this
/// one stops with 55000. Of a commit whose answer is lost nothing is assumed: the table is asked, by the commit itself and when it is opened
/// again.
final class IcebergSinkWriter: SinkWriter {
    private let writer: TableWriter
    private let columns: SinkColumns
    private var progress: SinkProgress
    private var maintenance: TableMaintenance

    init(_ writer: TableWriter, _ columns: SinkColumns, _ progress: SinkProgress, _ maintenance: TableMaintenance) {
        self.writer = writer
        self.columns = columns
        self.progress = progress
        self.maintenance = maintenance
    }

    var committedEpoch: Int64? { progress.epoch }

    var pending: SinkPending { SinkPending(rowCount: writer.pendingRowCount, byteCount: Int64(writer.pendingByteCount)) }

    func write(_ batch: DeltaBatch, epoch: Int64) throws(SQLError) -> [RefusedRow] {
        let batch = batch.with(columns: columns.rounded(batch))
        do throws(IcebergError) {
            try writer.write(batch.columns, count: batch.count, weights: batch.weights, of: epoch)
            return []
        } catch {
            guard case .parquet(.valueDoesNotFit) = error else { throw failure(error) }
            do throws(IcebergError) { return try writeWithoutRefused(batch, epoch, error) } catch { throw failure(error) }
        }
    }

    private func writeWithoutRefused(_ batch: DeltaBatch, _ epoch: Int64, _ refusal: IcebergError) throws(IcebergError) -> [RefusedRow] {
        var refused: [Int: RefusedRow] = [:]
        // A row that is taken back needs nothing but its key.
        for value in try writer.refusals(batch.columns, count: batch.count) where batch.weight(value.row) > 0 && refused[value.row] == nil {
            refused[value.row] = RefusedRow(row: value.row, column: value.column, reason: value.reason.description)
        }
        guard !refused.isEmpty else { throw refusal }
        let taken = (0..<batch.count).filter { refused[$0] == nil }.map { UInt32($0) }
        if !taken.isEmpty {
            let rest = taken.withUnsafeBufferPointer { batch.gather($0.baseAddress.unsafelyUnwrapped, count: $0.count) }
            try writer.write(rest.columns, count: rest.count, weights: rest.weights, of: epoch)
        }
        return refused.values.sorted { $0.row < $1.row }
    }

    /// The keys of the table are this sink's, so all rows go.
    func clear() throws(SQLError) {
        do throws(IcebergError) { try writer.clear() } catch { throw failure(error) }
    }

    func commit(through epoch: Int64) throws(SQLError) {
        do throws(IcebergError) {
            try writer.commit(summary: progress.summary(epoch), properties: progress.properties(epoch), expected: progress.expected)
        } catch {
            if error.isCommitUnknown { SentCommits.ofThisProcess.note(progress.sink, epoch) }
            // Without an answer to this question it counts as another writer's.
            if case .outrun = error, let found = try? found(), SentCommits.ofThisProcess.contains(progress.sink, found) {
                throw SQLError(.connectionFailure, "a commit of this sink arrived late", hint: "The table is opened again by itself.")
            }
            throw failure(error)
        }
        progress.advance(to: epoch)
        maintenance.noteCommit()
    }

    /// The epoch that the table says now.
    private func found() throws(IcebergError) -> Int64? {
        var table = writer.table
        try table.refresh()
        return table.metadata.properties[progress.epochProperty].flatMap { Int64($0) }
    }

    /// Only between commits: what is written is not to be mixed with what is put together.
    func maintain() throws(SQLError) {
        guard writer.pendingRowCount == 0 else { return }
        var table = writer.table
        var failed: IcebergError?
        do throws(IcebergError) { try maintenance.run(&table) } catch { failed = error }
        do throws(IcebergError) {
            if table.metadata != writer.table.metadata { try writer.resume(table) }
            // Others were faster: the next run finds what is left to do.
            if let failed, !failed.isConflict { throw failed }
        } catch { throw failure(error) }
    }

    func close() { writer.abandon() }

    private func failure(_ error: IcebergError) -> SQLError { IcebergSink.failure(error, writer.table.identifier) }
}
