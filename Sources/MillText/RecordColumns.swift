import CJSONDecode
import MillBase
package import MillColumnar
import MillConnectorKit

/// A column of the batches that a text decoder makes.
package enum RecordOutput: Hashable, Sendable {
    /// A declared field.
    case field(Int)
    /// The record's position in its split: bigint.
    case position
    /// The record's own time, NULL when the connector has none: timestamptz.
    case timestamp
    /// The split's partition: integer.
    case partition
}

/// Chunks of text records to batches of columns by a kernel of ours in C++: what the decoders of all text formats have in common.
///
/// All declared fields are read, whichever are wanted, so that what is accepted depends on the record alone.
final class RecordColumns {
    private let fields: [Field]
    private let wanted: [RecordOutput]
    private let kernel: TextKernel
    /// Fields that are wanted, or whose check needs their text (`SecondPass`): these get a column.
    private let materialized: [Bool]
    private var rowRecords: [UInt32]
    private var pointers: [UnsafeMutableRawPointer?]

    init(_ fields: [Field], _ wanted: [RecordOutput], _ kernel: TextKernel) {
        self.fields = fields
        self.wanted = wanted
        self.kernel = kernel
        var materialized = fields.map { SecondPass(for: $0.type) != nil }
        for case .field(let index) in wanted {
            precondition(fields.indices.contains(index), "a wanted field is a declared one")
            materialized[index] = true
        }
        self.materialized = materialized
        rowRecords = Array(repeating: 0, count: Limits.batchRowsMax)
        pointers = Array(repeating: nil, count: max(fields.count, 1))
    }

    func decode(_ chunk: RawChunk) -> DecodedChunk {
        var result = DecodedChunk(batches: [], rejects: [])
        let chunkHeap = StringHeap(keeping: chunk)
        var next = 0
        while next < chunk.count {
            let first = next
            let columns = makeColumns(capacity: min(chunk.count - first, Limits.batchRowsMax))
            let progress = decodeBatch(chunk, from: first, into: columns)
            next = Int(progress.next_record)
            finish(columns, chunk, first: first, rows: Int(progress.rows), next: next, chunkHeap: chunkHeap, into: &result)
        }
        return result
    }

    /// A column for each materialized field. Text that a second pass turns into something else is a varchar until then.
    private func makeColumns(capacity: Int) -> [Column?] {
        fields.indices.map { index in
            guard materialized[index] else { return nil }
            return Column(SecondPass(for: fields[index].type) == nil ? fields[index].type : .varchar, capacity: capacity)
        }
    }

    private func decodeBatch(_ chunk: RawChunk, from first: Int, into columns: [Column?]) -> mill_json_progress {
        for (index, column) in columns.enumerated() { pointers[index] = column?.data }
        let rowsMax = min(chunk.count - first, Limits.batchRowsMax)
        return chunk.starts.withUnsafeBufferPointer { starts in
            chunk.lengths.withUnsafeBufferPointer { lengths in
                var input = mill_json_input(
                    bytes: chunk.bytes.assumingMemoryBound(to: UInt8.self), starts: starts.baseAddress, lengths: lengths.baseAddress,
                    count: UInt32(starts.count))
                return kernel.decode(&input, first: UInt32(first), rowsMax: UInt32(rowsMax), pointers, &rowRecords)
            }
        }
    }

    private func finish(
        _ columns: [Column?], _ chunk: RawChunk, first: Int, rows: Int, next: Int, chunkHeap: StringHeap, into result: inout DecodedChunk
    ) {
        let arena = kernel.takeArena().map { StringHeap(keeping: TextArena($0)) }
        for (index, column) in columns.enumerated() {
            guard let column else { continue }
            column.setCount(rows)
            if let bitmap = kernel.validity(UInt32(index)) {
                column.ensureValidity().update(from: bitmap, count: column.validityWords)
            }
            if column.type.physical == .string {
                column.keep(chunkHeap)
                if let arena { column.keep(arena) }
            }
        }
        var rejects = takeRejects(chunk)
        var finished = columns
        for (index, column) in columns.enumerated() {
            guard let column, let pass = SecondPass(for: fields[index].type) else { continue }
            finished[index] = pass.run(column, rawIsJSON: kernel.isJSON) { row, raw, reason in
                let record = Int(rowRecords[row])
                rejects.append((record, Reject(position: chunk.positions[record], column: fields[index].name, raw: raw, reason: reason)))
            }
        }
        if rejects.count > 1 { rejects.sort { $0.record < $1.record } }
        result.rejects.append(contentsOf: rejects.map(\.reject))
        guard rows > 0 else { return }
        let isDense = rows == next - first
        let outputs = wanted.map { output in
            switch output {
            case .field(let index): finished[index].unsafelyUnwrapped
            case .position: metadata(.int64, chunk.positions, first: first, rows: rows, isDense: isDense)
            case .timestamp:
                chunk.timestamps.map { recordTimes($0, first: first, rows: rows, isDense: isDense) }
                    ?? Column.constant(.null, .timestamptz, count: rows)
            case .partition: Column.constant(.int(Int64(chunk.partition)), .int32, count: rows)
            }
        }
        result.batches.append(DeltaBatch(columns: outputs, count: rows))
    }

    /// The values of a per-record array for the rows just made.
    private func metadata(_ type: SQLType, _ values: [Int64], first: Int, rows: Int, isDense: Bool) -> Column {
        let column = Column(type, uninitialized: rows)
        let target = column.values(Int64.self)
        values.withUnsafeBufferPointer { values in
            if isDense {
                target.update(from: values.baseAddress.unsafelyUnwrapped + first, count: rows)
            } else {
                rowRecords.withUnsafeBufferPointer { records in
                    for row in 0..<rows { target[row] = values[Int(records[row])] }
                }
            }
        }
        return column
    }

    private func recordTimes(_ timestamps: [Int64], first: Int, rows: Int, isDense: Bool) -> Column {
        let column = metadata(.timestamptz, timestamps, first: first, rows: rows, isDense: isDense)
        let micros = column.values(Int64.self)
        for row in 0..<rows where micros[row] == RawChunk.unknownTime { column.setNull(row) }
        return column
    }

    private func takeRejects(_ chunk: RawChunk) -> [(record: Int, reject: Reject)] {
        kernel.rejects().map { reject in
            let record = Int(reject.record)
            let field = reject.field >= 0 ? fields[Int(reject.field)] : nil
            return (
                record,
                Reject(
                    position: chunk.positions[record], column: field?.name,
                    raw: Array(UnsafeBufferPointer(start: reject.raw, count: Int(reject.raw_length))),
                    reason: RejectReason.text(mill_json_reason(reject.reason), type: field?.type))
            )
        }
    }
}

/// Owns the bytes of strings that the C++ decoder had to rewrite. Immutable once taken.
private final class TextArena: @unchecked Sendable {
    private let blocks: UnsafeMutableRawPointer
    init(_ blocks: UnsafeMutableRawPointer) { self.blocks = blocks }
    deinit { mill_json_free_arena(blocks) }
}
