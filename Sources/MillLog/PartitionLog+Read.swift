package import MillKafkaWire
import MillIO
import Synchronization

/// Whole record batches out of a partition: raw bytes of the log, with 64 readable bytes after them.
///
/// The first batch may begin before the offset that was asked for; a reader skips those records.
package struct LogSlice: Sendable {
    package var bytes: WireBytes
    /// The offset to read from next; the one asked for when there was nothing.
    package var nextOffset: Int64
    package var highWatermark: Int64
    package var logStartOffset: Int64
    package var lastStableOffset: Int64
    /// For a reader of committed records: the aborted transactions with records in the slice.
    package var aborted: [AbortedTransaction] = []
    /// The bytes were read from the disk, and no checksum was compared since.
    package var isFromDisk = false

    /// Whether a reader of committed records leaves the batch out.
    package func isAborted(_ batch: RecordBatch) -> Bool {
        guard batch.isTransactional, !aborted.isEmpty else { return false }
        return aborted.contains { $0.producerID == batch.producerID && $0.firstOffset <= batch.baseOffset && batch.baseOffset <= $0.lastOffset }
    }

    package var isEmpty: Bool { bytes.count == 0 }
    /// The batches, for `RecordDecoder`.
    package var batches: RecordBatches { RecordBatches(bytes) }
}

extension PartitionLog {
    /// Where to read: a segment's bytes from `position` up to `limit`, and what held when it was chosen.
    private struct Span {
        var segment: Segment
        var position: Int
        var limit: Int
        /// The offset after the segment's last one, and where it ends for this reader.
        var nextBase: Int64
        var end: Int64
        var highWatermark: Int64
        var lastStableOffset: Int64
        var start: Int64

        func slice(_ bytes: WireBytes, nextOffset: Int64) -> LogSlice {
            LogSlice(bytes: bytes, nextOffset: nextOffset, highWatermark: highWatermark, logStartOffset: start, lastStableOffset: lastStableOffset)
        }
    }

    private enum Found {
        case nothing(LogSlice)
        case span(Span)
    }

    /// Batches from the one that holds `offset` on: at least one if there is one, then as many as fit in `maxBytes`. Empty at the end of
    /// what `isolation` shows. Blocks for the disk when the pages are not in memory.
    /// - Throws: `offsetOutOfRange`, `storage`, `corrupted`, `closed`.
    package func read(from offset: Int64, maxBytes: Int, isolation: ReadIsolation = .uncommitted) throws(LogError) -> LogSlice {
        var slice: LogSlice
        if let kept = try readTail(from: offset, maxBytes: maxBytes, isolation) {
            slice = kept
        } else {
            slice = try readSegments(from: offset, maxBytes: maxBytes, isolation)
            slice.isFromDisk = true
        }
        if isolation == .committed, !slice.isEmpty {
            slice.aborted = state.withLock { $0.transactions.aborted(in: offset..<slice.nextOffset) }
        }
        return slice
    }

    /// From memory; nil when the records are not there.
    private func readTail(from offset: Int64, maxBytes: Int, _ isolation: ReadIsolation) throws(LogError) -> LogSlice? {
        let found: (span: Span, entries: [LogTail.Entry])? = state.withLock { state in
            guard state.failure == nil, offset >= state.startOffset else { return nil }
            let end = isolation == .committed ? state.lastStableOffset : state.highWatermark
            let entries = state.tail.entries(from: offset, below: end, maxBytes: maxBytes)
            guard let first = entries.first, let last = entries.last else { return nil }
            return (
                Span(
                    segment: first.segment, position: first.position, limit: last.position + last.bytes.count, nextBase: last.nextOffset,
                    end: end, highWatermark: state.highWatermark, lastStableOffset: state.lastStableOffset, start: state.startOffset),
                entries
            )
        }
        guard let (span, entries) = found else { return nil }
        var bytes = entries[0].bytes
        if entries.count > 1 {
            let gathered = WireBuffer(capacity: span.limit - span.position)
            for entry in entries { entry.bytes.withUnsafeBytes { gathered.append($0) } }
            gathered.setCount(gathered.count)
            bytes = gathered.bytes
        }
        guard case .slice(let slice, let next) = try cut(bytes, from: offset, maxBytes: maxBytes, span) else { return nil }
        return span.slice(slice, nextOffset: next)
    }

    private func readSegments(from offset: Int64, maxBytes: Int, _ isolation: ReadIsolation) throws(LogError) -> LogSlice {
        var from = offset
        while true {
            let span: Span
            switch try locate(from, isolation) {
            case .nothing(let empty): return empty
            case .span(let found): span = found
            }
            if let slice = try read(span, from: from, maxBytes: maxBytes) { return slice }
            // Compaction took everything from there to the segment's end.
            from = span.nextBase
        }
    }

    /// Nil when the span has no batch at or after `offset`.
    private func read(_ span: Span, from offset: Int64, maxBytes: Int) throws(LogError) -> LogSlice? {
        let available = span.limit - span.position
        var count = min(available, max(maxBytes, RecordBatch.headerBytes) + options.indexIntervalBytes)
        while true {
            let bytes: WireBytes
            do throws(IOFailure) { bytes = try span.segment.file.readBytes(at: span.position, count: count) } catch { throw .storage(error) }
            guard bytes.count == count else { throw .corrupted(path: span.segment.file.path, reason: "it ends before its log does") }
            switch try cut(bytes, from: offset, maxBytes: maxBytes, span) {
            case .slice(let slice, let next):
                let end = span.position + (slice.offset - bytes.offset) + slice.count
                remember(ReadHint(offset: next, segment: span.segment, position: end))
                // Who reads from a file is behind, and likely to read on.
                let ahead = min(span.limit - end, Self.prefetchBytes)
                if ahead > 0 { span.segment.file.prefetch(at: end, count: ahead) }
                return span.slice(slice, nextOffset: next)
            case .end: return span.slice(WireBytes(), nextOffset: offset)
            case .needs(let more):
                if count == available, more == count + RecordBatch.headerBytes { return nil }
                guard more <= available || count < available, more > count else {
                    throw .corrupted(path: span.segment.file.path, reason: "a batch at \(span.position) runs over the end")
                }
                count = min(more, available)
            }
        }
    }

    private static let prefetchBytes = 1 << 20

    private enum Cut {
        case slice(WireBytes, nextOffset: Int64)
        /// What comes next is not for this reader.
        case end
        case needs(Int)
    }

    /// The part of `bytes` that a reader of `offset` gets.
    private func cut(_ bytes: WireBytes, from offset: Int64, maxBytes: Int, _ span: Span) throws(LogError) -> Cut {
        var position = 0
        var first: Int?
        var next = offset
        while true {
            let rest = bytes.slice(offset: position, count: bytes.count - position)
            let batch: RecordBatch?
            do throws(RecordError) { batch = try RecordBatch(firstIn: rest) } catch {
                throw .corrupted(path: span.segment.file.path, reason: "no batch at \(span.position + position)")
            }
            guard let batch else {
                if let first { return .slice(bytes.slice(offset: first, count: position - first), nextOffset: next) }
                guard rest.count >= RecordBatch.lengthPrefixBytes else { return .needs(position + RecordBatch.headerBytes) }
                return .needs(position + RecordBatch.lengthPrefixBytes + Self.batchLength(rest))
            }
            let end = position + batch.bytes.count
            guard batch.baseOffset < span.end else {
                if let first { return .slice(bytes.slice(offset: first, count: position - first), nextOffset: next) }
                return .end
            }
            if batch.nextOffset > offset {
                if let first, end - first > maxBytes { return .slice(bytes.slice(offset: first, count: position - first), nextOffset: next) }
                if first == nil { first = position }
                next = batch.nextOffset
            }
            position = end
            if position == bytes.count, let first { return .slice(bytes.slice(offset: first, count: position - first), nextOffset: next) }
        }
    }

    private static func batchLength(_ bytes: WireBytes) -> Int {
        bytes.withUnsafeBytes { Int(Int32(bigEndian: $0.loadUnaligned(fromByteOffset: 8, as: Int32.self))) }
    }

    private func locate(_ offset: Int64, _ isolation: ReadIsolation) throws(LogError) -> Found {
        let found: Result<Found, LogError> = state.withLock { state in
            if let failure = state.failure { return .failure(failure) }
            guard offset >= state.startOffset, offset <= state.logEndOffset else {
                return .failure(.offsetOutOfRange(requested: offset, start: state.startOffset, end: state.highWatermark))
            }
            let end = isolation == .committed ? state.lastStableOffset : state.highWatermark
            let empty = LogSlice(
                bytes: WireBytes(), nextOffset: offset, highWatermark: state.highWatermark, logStartOffset: state.startOffset,
                lastStableOffset: state.lastStableOffset)
            guard offset < end, let place = Self.place(holding: offset, state.segments) else { return .success(.nothing(empty)) }
            let segment = state.segments[place]
            let isLast = place + 1 == state.segments.count
            let hint = state.hints.first { $0.offset == offset && $0.segment === segment }
            let position = hint?.position ?? segment.position(ofOffset: offset)
            guard position < segment.visibleSize || !isLast else { return .success(.nothing(empty)) }
            return .success(.span(Span(
                segment: segment, position: position, limit: segment.visibleSize, nextBase: isLast ? state.logEndOffset : state.segments[place + 1].baseOffset,
                end: end, highWatermark: state.highWatermark, lastStableOffset: state.lastStableOffset, start: state.startOffset)))
        }
        return try found.get()
    }

    /// About how many bytes `read` would find from `offset` on; nil when it would fail.
    package func bytesAvailable(from offset: Int64, isolation: ReadIsolation = .uncommitted) -> Int? {
        guard let found = try? locate(offset, isolation) else { return nil }  // the caller asks `read` for the reason
        guard case .span(let span) = found else { return 0 }
        let later = state.withLock { state in state.segments.reversed().prefix { $0.baseOffset > span.segment.baseOffset }.reduce(0) { $0 + $1.visibleSize } }
        return span.limit - span.position + later
    }

    private func remember(_ hint: ReadHint) {
        state.withLock { state in
            if state.hints.count < 8 { return state.hints.append(hint) }
            state.hints[state.nextHint] = hint
            state.nextHint = (state.nextHint + 1) % 8
        }
    }

    private static func place(holding offset: Int64, _ segments: [Segment]) -> Int? {
        var low = 0
        var high = segments.count
        while low < high {
            let middle = (low + high) / 2
            if segments[middle].baseOffset <= offset { low = middle + 1 } else { high = middle }
        }
        return low == 0 ? nil : low - 1
    }

    // MARK: By time

    /// A record's place and time, in milliseconds.
    package struct TimedOffset: Sendable, Hashable {
        package var offset: Int64
        package var timestamp: Int64
    }

    /// The first record at or after `timestamp` (milliseconds), or nil when there is none. Decompresses one batch.
    package func offset(forTimestamp timestamp: Int64) throws(LogError) -> TimedOffset? {
        let candidates = state.withLock { state in
            state.segments.filter { $0.maxTimestamp >= timestamp && $0.nextOffset > state.startOffset }.map { (segment: $0, position: $0.position(ofTimestamp: timestamp), limit: $0.visibleSize) }
        }
        for candidate in candidates {
            if let found = try firstRecord(candidate.segment, candidate.position, candidate.limit, { $0.maxTimestamp >= timestamp }, { $0 >= timestamp }) { return found }
        }
        return nil
    }

    /// The first record that has the largest timestamp, or nil when the partition is empty.
    package func offsetOfMaxTimestamp() throws(LogError) -> TimedOffset? {
        let (segments, limits) = state.withLock { state in (state.segments, state.segments.map(\.visibleSize)) }
        let largest = state.withLock { _ in segments.enumerated().max { $0.element.maxTimestamp < $1.element.maxTimestamp }.map { ($0.offset, $0.element.maxTimestamp) } }
        guard let (place, timestamp) = largest else { return nil }
        return try firstRecord(segments[place], 0, limits[place], { $0.maxTimestamp >= timestamp }, { $0 >= timestamp })
    }

    private func firstRecord(
        _ segment: Segment, _ from: Int, _ limit: Int, _ batchMatches: (RecordBatch) -> Bool, _ matches: (Int64) -> Bool
    ) throws(LogError) -> TimedOffset? {
        let decoder = RecordDecoder(decompressedBytesMax: options.decompressedBytesMax)
        let start = logStartOffset
        var found: TimedOffset?
        var failure: RecordError?
        try Self.forEachBatch(segment.file, from: from, to: limit) { batch throws(RecordError) in
            guard batchMatches(batch), !batch.isControl else { return true }
            do throws(RecordError) {
                var cursor = try decoder.records(of: batch)
                while let record = try cursor.next() {
                    if record.offset >= start, matches(record.timestamp) {
                        found = TimedOffset(offset: record.offset, timestamp: record.timestamp)
                        return false
                    }
                }
            } catch { failure = error }
            return failure == nil
        }
        if let failure { throw LogError(reading: failure, of: segment.file.path) }
        return found
    }

    /// Reads a file's batches in order until `body` says false or there is no whole batch; returns the position after the last
    /// one that `body` took.
    @discardableResult
    static func forEachBatch(_ file: any File, from: Int, to limit: Int, _ body: (RecordBatch) throws(RecordError) -> Bool) throws(LogError) -> Int {
        var position = from
        var chunkBytes = 1 << 20
        while position < limit {
            let bytes: WireBytes
            do throws(IOFailure) { bytes = try file.readBytes(at: position, count: min(chunkBytes, limit - position)) } catch { throw .storage(error) }
            var batches = RecordBatches(bytes)
            let before = position
            do throws(RecordError) {
                while let batch = try batches.next() {
                    guard try body(batch) else { return position }
                    position += batch.bytes.count
                }
            } catch {
                return position
            }
            if position == before {
                // A batch longer than the chunk, or what is no batch at all.
                guard bytes.count == chunkBytes, position + chunkBytes < limit else { return position }
                let needed = RecordBatch.lengthPrefixBytes + batchLength(bytes)
                guard needed > chunkBytes, needed <= limit - position else { return position }
                chunkBytes = needed
            }
        }
        return position
    }
}
