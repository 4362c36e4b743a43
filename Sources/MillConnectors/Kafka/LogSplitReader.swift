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
    private let decoder: RecordDecoder
    private var nextOffset: Int64
    /// Of the last chunk: so that a poll reads about as many bytes as the records it may give.
    private var recordBytes = 512
    /// The batch that the last chunk ended in: the next one goes on there, since to open it again costs the whole batch.
    private var rest: (batch: RecordBatch, records: RecordCursor?)?
    private var subscription: LogSubscription?

    private static let readBytesMin = 64 << 10
    /// What is read at once is still in the cache when it is decoded, and its memory serves the next read.
    private static let readBytesMax = 512 << 10

    let isFinished = false
    var highWatermark: SplitOffset? { SplitOffset(partition.readableEnd(isolation)) }

    init(
        _ partition: PartitionLog, _ split: SourceSplit, at offset: SplitOffset, isolation: ReadIsolation, pool: BlockPool,
        decoder: RecordDecoder = RecordDecoder(), onData: @escaping @Sendable () -> Void
    ) {
        self.partition = partition
        self.split = split
        self.isolation = isolation
        self.pool = pool
        self.decoder = decoder
        nextOffset = offset.position
        subscription = partition.onAppend { _ in onData() }
    }

    func close() {
        subscription?.cancel()
        subscription = nil
        rest = nil
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
        let limit = (records: max(maxRecords, 1), bytes: min(maxBytes, Self.readBytesMax))
        let slice = rest == nil ? try read(limit.records, maxBytes) : nil
        guard rest != nil || slice != nil else { return nil }
        do throws(RecordError) {
            let chunk = try copy(slice, maxRecords: limit.records, maxBytes: limit.bytes)
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

    /// About as many bytes as the records have that may be given; nil at the end.
    private func read(_ maxRecords: Int, _ maxBytes: Int) throws(SQLError) -> LogSlice? {
        guard nextOffset < partition.readableEnd(isolation) else {
            // A partition that stopped must say so, and one that was made anew has less than we have read.
            if let failure = partition.failure { throw failure.sqlError }
            guard nextOffset <= partition.highWatermark else { throw outOfRange }
            return nil
        }
        let wanted = min(max(Self.readBytesMin, min(maxRecords, maxBytes / recordBytes) * recordBytes), Self.readBytesMax)
        do throws(LogError) { return try partition.read(from: nextOffset, maxBytes: min(wanted, maxBytes), isolation: isolation) } catch {
            if case .offsetOutOfRange = error { throw outOfRange }
            throw error.sqlError
        }
    }

    private var outOfRange: SQLError {
        SQLError(
            .objectNotInPrerequisiteState, "offset \(nextOffset) of \"\(split.name)\" is out of range",
            detail: "The partition holds \(partition.logStartOffset) up to \(partition.highWatermark).",
            hint: "The records are gone, or the topic was made anew. Drop the source and create it again.")
    }

    /// What is left of a batch, or what a slice has; bytes of compressed batches count as they are then.
    private func copy(_ slice: LogSlice?, maxRecords: Int, maxBytes: Int) throws(RecordError) -> RawChunk {
        let expected = slice.map { $0.bytes.count + $0.bytes.count / 8 } ?? min(maxRecords, maxBytes / recordBytes) * recordBytes
        let buffer = RecordBuffer(capacity: expected, pool: pool)
        var starts: [UInt32] = []
        var lengths: [Int32] = []
        var positions: [Int64] = []
        var times = RecordTimes()
        let room = min(maxRecords, expected / 64)
        starts.reserveCapacity(room)
        lengths.reserveCapacity(room)
        positions.reserveCapacity(room)
        times.reserveCapacity(room)
        var next = nextOffset
        // Compaction may have taken everything up to there.
        if let slice, slice.isEmpty { next = slice.nextOffset }
        var batches = slice?.batches
        var bytesLeft = maxBytes
        while starts.count < maxRecords, bytesLeft > 0 {
            if rest == nil { rest = try open(&batches, of: slice) }
            guard let (batch, opened) = rest else { break }
            rest = nil
            if var records = opened {
                while starts.count < maxRecords, bytesLeft > 0, let record = try records.next() {
                    guard record.offset >= nextOffset else { continue }
                    let length = record.value?.count ?? 0
                    starts.append(buffer.append(record.value?.baseAddress, length))
                    lengths.append(record.value == nil ? -1 : Int32(clamping: length))
                    positions.append(record.offset)
                    times.append(millis: record.timestamp)
                    next = record.offset + 1
                    bytesLeft -= length + 1
                }
                guard records.isAtEnd else {
                    rest = (batch, records)
                    break
                }
            }
            // A batch may end with offsets that hold no record.
            next = max(next, batch.nextOffset)
        }
        return RawChunk(
            bytes: UnsafeRawPointer(buffer.start), byteCount: buffer.count, starts: starts, lengths: lengths, positions: positions,
            timestamps: times.values, nextOffset: SplitOffset(next), partition: split.partition, owner: buffer)
    }

    /// The next batch; without records if they are not for readers.
    private func open(_ batches: inout RecordBatches?, of slice: LogSlice?) throws(RecordError) -> (batch: RecordBatch, records: RecordCursor?)? {
        guard let slice, let batch = try batches?.next() else { return nil }
        // What a disk gives back may not be what it was given.
        if slice.isFromDisk { try batch.validateChecksum() }
        return (batch, batch.isControl || slice.isAborted(batch) ? nil : try decoder.records(of: batch))
    }
}
