import MillBase
import MillIO
import MillKafkaWire
import Synchronization

/// Compaction: of the records with one key only the last stays, at its offset.
///
/// Place in the path: run by `maintain` for topics with `cleanup.policy=compact`, beside appends and reads.
///
/// Invariants: the last record of every key stays, whatever happens; a record without a key stays; only complete segments below the last
/// stable offset are touched; offsets of what stays never change. A tombstone (a null value) stays `delete.retention.ms` after compaction
/// has met it first, which its batch's delete horizon says. Records of aborted transactions go; a marker goes with the last record of
/// its transaction, and not before `delete.retention.ms`.
///
/// Steps: (1) read the part that no earlier run has seen and note each key's last offset, for as many keys as memory is allowed for;
/// (2) write the segments anew from the first on, several small ones as one, without the records that a later one in the notes
/// supersedes; (3) sync the new file, then its index, then the directory; (4) put it in the place of the old ones, for readers at once;
/// (5) remove the old files. The new file has the old one's name with a higher generation, and counts once its index is whole: a crash
/// leaves the old segments, the new one, or both, and `SegmentName.surviving` takes the one that holds.
///
/// Threading: under `maintenance`. Source: https://kafka.apache.org/documentation/#compaction, KIP-534 (delete horizons).
extension PartitionLog {
    /// A complete segment as compaction finds it.
    private struct Source {
        var segment: Segment
        /// The offset after its last one.
        var end: Int64
        var producers: ProducerStates
        var transactions: TransactionIndex
    }

    func compact(_ config: TopicConfig, _ isStopped: () -> Bool = { false }) throws(LogError) {
        let sources = try complete()
        guard let first = sources.first else { return }
        let cleanedTo = sources.lazy.map(\.segment.cleanedTo).max() ?? -1
        let dirty = sources.filter { $0.end > max(cleanedTo, first.segment.baseOffset) }
        let dirtyBytes = dirty.reduce(0) { $0 + $1.segment.size }
        let totalBytes = sources.reduce(0) { $0 + $1.segment.size }
        guard dirtyBytes > 0, Double(dirtyBytes) >= config.dirtyRatioMin * Double(totalBytes) else { return }
        var latest = LatestOffsets(keysMax: options.compactionKeysMax)
        let aborted = state.withLock { $0.transactions.aborted(in: first.segment.baseOffset..<(sources.last?.end ?? 0)) }
        let decoder = RecordDecoder(decompressedBytesMax: options.decompressedBytesMax)
        var filter = CompactionFilter(aborted: aborted, nowMillis: nowMillis, deleteRetentionMillis: config.deleteRetentionMillis)
        for source in dirty where !latest.isFull {
            if isStopped() { return }
            try note(source, from: cleanedTo, filter, decoder, in: &latest)
        }
        var rest = sources[...].prefix { $0.segment.baseOffset < latest.end }
        while !rest.isEmpty {
            if isStopped() { return }
            let group = Self.group(rest, config.segmentBytes(options))
            rest = rest.dropFirst(group.count)
            try rewrite(group, latest, &filter, decoder)
        }
    }

    /// The segments that compaction may write anew: all but the one that is appended to, below the last stable offset, with their index.
    private func complete() throws(LogError) -> [Source] {
        let (candidates, start) = state.withLock { state in
            (
                zip(state.segments, state.segments.dropFirst()).filter { $0.1.baseOffset <= state.lastStableOffset }.map {
                    ($0.0, $0.1.baseOffset)
                }, state.startOffset
            )
        }
        var sources: [Source] = []
        for (segment, end) in candidates where end > start {
            guard environment.files.exists(segment.indexPath) else { break }
            let copy = Segment(
                baseOffset: segment.baseOffset, generation: segment.generation, file: segment.file, indexPath: segment.indexPath)
            let bytes: WireBytes
            do throws(IOFailure) { bytes = try environment.files.open(segment.indexPath, .read).readAll() } catch { throw .storage(error) }
            guard let (producers, transactions) = copy.restore(fromIndex: bytes), copy.size == segment.size else { break }
            sources.append(Source(segment: segment, end: end, producers: producers, transactions: transactions))
        }
        return sources
    }

    /// As many of the first sources as fit in one segment; at least one.
    private static func group(_ sources: ArraySlice<Source>, _ bytesMax: Int) -> ArraySlice<Source> {
        var bytes = 0
        let base = sources.first?.segment.baseOffset ?? 0
        let count = sources.prefix { source in
            bytes += source.segment.size
            return bytes <= bytesMax && source.end - base <= Int64(Int32.max)
        }.count
        return sources.prefix(max(count, 1))
    }

    /// Step 1, for one segment.
    private func note(
        _ source: Source, from offset: Int64, _ filter: CompactionFilter, _ decoder: RecordDecoder, in latest: inout LatestOffsets
    ) throws(LogError) {
        try forEachWholeBatch(source) { batch throws(RecordError) in
            if latest.isFull { return }
            if batch.nextOffset > offset, !batch.isControl, !filter.isAborted(batch) {
                var cursor = try decoder.records(of: batch)
                while let record = try cursor.next() {
                    if let key = record.key { latest.note(key, record.offset) }
                }
            }
            latest.end = batch.nextOffset
        }
        if !latest.isFull { latest.end = source.end }
    }

    /// Steps 2 to 5, for the segments that become one.
    private func rewrite(
        _ group: ArraySlice<Source>, _ latest: LatestOffsets, _ filter: inout CompactionFilter, _ decoder: RecordDecoder
    ) throws(LogError) {
        guard let first = group.first, let last = group.last else { return }
        let generation = (group.lazy.map(\.segment.generation).max() ?? 0) + 1
        let output: Segment
        do throws(IOFailure) {
            output = try Self.makeSegment(first.segment.baseOffset, generation: generation, in: directory, environment.files, .create)
        } catch {
            throw .storage(error)
        }
        do throws(LogError) {
            var writer = SegmentWriter(output, indexIntervalBytes: options.indexIntervalBytes)
            for source in group {
                filter.beginSegment(lastAppendMillis: source.segment.lastAppendMillis)
                try forEachWholeBatch(source) { batch throws(RecordError) in
                    if let kept = try filter.kept(of: batch, latest, decoder) { writer.add(kept) }
                }
            }
            output.nextOffset = last.end
            output.cleanedTo = latest.end
            output.inheritAge(of: group.map(\.segment))
            var transactions = last.transactions
            transactions.replaceAborted(group.flatMap(\.transactions.aborted).filter { !filter.droppedMarkers.contains($0.lastOffset) })
            try writer.finish()
            let index = output.encodedIndex(last.producers, transactions)
            do throws(IOFailure) {
                try Self.writeIndex(index, at: output.indexPath, environment.files)
                try environment.files.syncDirectory(directory)
            } catch {
                throw .storage(error)
            }
        } catch {
            discard([output])
            throw error
        }
        output.visibleSize = output.size
        replace(group.map(\.segment), by: output, filter)
    }

    /// Step 4 and 5.
    private func replace(_ old: [Segment], by new: Segment, _ filter: CompactionFilter) {
        let isReplaced = state.withLock { state in
            guard state.failure == nil, let place = state.segments.firstIndex(where: { $0 === old[0] }) else { return false }
            state.segments.replaceSubrange(place..<place + old.count, with: [new])
            state.forgetHints(to: old)
            state.transactions.replaceAborted(state.transactions.aborted.filter { !filter.droppedMarkers.contains($0.lastOffset) })
            return true
        }
        // A partition that stopped keeps all its files; the next start chooses.
        if isReplaced { discard(old) }
    }

    /// All batches of a segment.
    private func forEachWholeBatch(_ source: Source, _ body: (RecordBatch) throws(RecordError) -> Void) throws(LogError) {
        var failure: RecordError?
        let file = source.segment.file
        let end = try Self.forEachBatch(file, from: 0, to: source.segment.size) { batch throws(RecordError) in
            do throws(RecordError) { try body(batch) } catch { failure = error }
            return failure == nil
        }
        if let failure { throw LogError(reading: failure, of: file.path) }
        guard end == source.segment.size else { throw .corrupted(path: file.path, reason: "no batch at \(end)") }
    }
}
