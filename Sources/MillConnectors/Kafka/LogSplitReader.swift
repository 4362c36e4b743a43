import MillBase
import MillConnectorKit
import MillKafkaWire
import MillLog

/// Records of one partition of the broker in this process, from its log and without TCP.
///
/// Sees only what is below the durable high watermark, and unless it reads uncommitted records, only what is below the last stable offset
/// and in no aborted transaction. Owned by one worker; `onData` comes from the log's threads.
final class LogSplitReader: SplitReader {
    private let partition: PartitionLog
    private let split: SourceSplit
    private let isolation: ReadIsolation
    private let pool: BlockPool
    private let decoder = RecordDecoder()
    private var nextOffset: Int64
    /// Of the last chunk: so that a poll reads about as many bytes as the records it may give.
    private var recordBytes = 512
    private var subscription: LogSubscription?

    private static let readBytesMin = 64 << 10
    /// What is read at once is still in the cache when it is decoded, and its memory serves the next read.
    private static let readBytesMax = 512 << 10

    let isFinished = false
    var highWatermark: SplitOffset? { SplitOffset(partition.readableEnd(isolation)) }

    init(
        _ partition: PartitionLog, _ split: SourceSplit, at offset: SplitOffset, isolation: ReadIsolation, pool: BlockPool,
        onData: @escaping @Sendable () -> Void
    ) {
        self.partition = partition
        self.split = split
        self.isolation = isolation
        self.pool = pool
        nextOffset = offset.position
        subscription = partition.onAppend { _ in onData() }
    }

    func close() {
        subscription?.cancel()
        subscription = nil
    }

    /// Where a source that begins now begins.
    static func origin(of partition: PartitionLog, _ startup: KafkaSourceOptions.Startup, _ isolation: ReadIsolation) throws(SQLError) -> Int64 {
        let end = partition.readableEnd(isolation)
        switch startup {
        case .earliest: return partition.logStartOffset
        case .latest: return end
        case .timestamp(let millis):
            do throws(LogError) { return min(try partition.offset(forTimestamp: millis)?.offset ?? end, end) } catch { throw error.sqlError }
        }
    }

    func poll(maxRecords: Int, maxBytes: Int) throws(SQLError) -> RawChunk? {
        guard nextOffset < partition.readableEnd(isolation) else {
            // A partition that stopped must say so, and one that was made anew has less than we have read.
            if let failure = partition.failure { throw failure.sqlError }
            guard nextOffset <= partition.highWatermark else { throw outOfRange }
            return nil
        }
        let slice: LogSlice
        let wanted = min(max(Self.readBytesMin, min(maxRecords, maxBytes / recordBytes) * recordBytes), Self.readBytesMax)
        do throws(LogError) { slice = try partition.read(from: nextOffset, maxBytes: min(wanted, maxBytes), isolation: isolation) } catch {
            if case .offsetOutOfRange = error { throw outOfRange }
            throw error.sqlError
        }
        do throws(RecordError) {
            let chunk = try copy(slice, maxRecords: max(maxRecords, 1))
            guard chunk.nextOffset.position != nextOffset else { return nil }
            nextOffset = chunk.nextOffset.position
            if chunk.count > 0 { recordBytes = max(chunk.byteCount / chunk.count + 32, 64) }
            return chunk
        } catch {
            // No memory says nothing of the records, and passes.
            if case .outOfMemory = error { throw error.sqlError }
            throw SQLError(
                .dataCorrupted, "a record of \"\(split.name)\" at or after offset \(nextOffset) is damaged: \(error.sqlError.message)",
                hint: "Restore the data directory from a copy; docs/operating.md says how to go on without what is damaged.")
        }
    }

    private var outOfRange: SQLError {
        SQLError(
            .objectNotInPrerequisiteState, "offset \(nextOffset) of \"\(split.name)\" is out of range",
            detail: "The partition holds \(partition.logStartOffset) up to \(partition.highWatermark).",
            hint: "The records are gone, or the topic was made anew. Drop the source and create it again.")
    }

    private func copy(_ slice: LogSlice, maxRecords: Int) throws(RecordError) -> RawChunk {
        let buffer = RecordBuffer(capacity: slice.bytes.count + slice.bytes.count / 8, pool: pool)
        var starts: [UInt32] = []
        var lengths: [Int32] = []
        var positions: [Int64] = []
        var times = RecordTimes()
        let room = min(maxRecords, slice.bytes.count / 64)
        starts.reserveCapacity(room)
        lengths.reserveCapacity(room)
        positions.reserveCapacity(room)
        times.reserveCapacity(room)
        // Compaction may have taken everything up to here.
        var next = slice.isEmpty ? slice.nextOffset : nextOffset
        var batches = slice.batches
        while starts.count < maxRecords, let batch = try batches.next() {
            // What a disk gives back may not be what it was given.
            if slice.isFromDisk { try batch.validateChecksum() }
            if !batch.isControl, !slice.isAborted(batch) {
                var cursor = try decoder.records(of: batch)
                while starts.count < maxRecords, let record = try cursor.next() {
                    guard record.offset >= nextOffset else { continue }
                    starts.append(buffer.append(record.value?.baseAddress, record.value?.count ?? 0))
                    lengths.append(record.value.map { Int32(clamping: $0.count) } ?? -1)
                    positions.append(record.offset)
                    times.append(millis: record.timestamp)
                    next = record.offset + 1
                }
            }
            // A batch may end with offsets that hold no record; one that was left early goes on at its next record.
            if starts.count < maxRecords { next = max(next, batch.nextOffset) }
        }
        return RawChunk(
            bytes: UnsafeRawPointer(buffer.start), byteCount: buffer.count, starts: starts, lengths: lengths, positions: positions,
            timestamps: times.values, nextOffset: SplitOffset(next), partition: split.partition, owner: buffer)
    }
}
