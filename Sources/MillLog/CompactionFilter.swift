import MillIO
import MillKafkaWire

/// The last offset of each key in a part of a partition.
///
/// Keys are held as 128 bits of a hash that is seeded anew in each process: two keys that meet would cost one of them its record, and
/// with a million keys that happens once in 10^26 runs.
struct LatestOffsets {
    private struct Hash: Hashable {
        var first: UInt64
        var second: UInt64

        init(_ key: UnsafeRawBufferPointer) {
            var (a, b) = (Hasher(), Hasher())
            a.combine(0)
            b.combine(1)
            a.combine(bytes: key)
            b.combine(bytes: key)
            first = UInt64(bitPattern: Int64(a.finalize()))
            second = UInt64(bitPattern: Int64(b.finalize()))
        }
    }

    private var offsets: [Hash: Int64] = [:]
    private let keysMax: Int
    /// Records from here on were not looked at.
    var end: Int64 = 0

    init(keysMax: Int) { self.keysMax = keysMax }

    var isFull: Bool { offsets.count >= keysMax }

    mutating func note(_ key: UnsafeRawBufferPointer, _ offset: Int64) { offsets[Hash(key)] = offset }

    /// Whether a later record has the key.
    func supersedes(_ key: UnsafeRawBufferPointer, _ offset: Int64) -> Bool { offset < end && (offsets[Hash(key)] ?? -1) > offset }
}

/// What compaction leaves of each batch; sees a partition's batches in order, from the first one.
struct CompactionFilter {
    private let aborted: [Int64: [ClosedRange<Int64>]]
    private let nowMillis: Int64
    private let deleteRetentionMillis: Int64
    /// Producers with a record in their transaction that stays, up to where we are.
    private var transactionsWithRecords: Set<Int64> = []
    private var markersMayGo = false
    /// Offsets of markers that were left out.
    private(set) var droppedMarkers: Set<Int64> = []

    init(aborted: [AbortedTransaction], nowMillis: Int64, deleteRetentionMillis: Int64) {
        self.aborted = Dictionary(grouping: aborted, by: \.producerID).mapValues { $0.map { $0.firstOffset...$0.lastOffset } }
        self.nowMillis = nowMillis
        self.deleteRetentionMillis = deleteRetentionMillis
    }

    /// A retention may be as long as the type allows, which means for ever.
    private var deleteHorizonMillis: Int64 {
        let (sum, overflows) = nowMillis.addingReportingOverflow(deleteRetentionMillis)
        return overflows ? .max : sum
    }

    func isAborted(_ batch: RecordBatch) -> Bool {
        batch.isTransactional && !batch.isControl && (aborted[batch.producerID] ?? []).contains { $0.contains(batch.baseOffset) }
    }

    mutating func beginSegment(lastAppendMillis: Int64) { markersMayGo = nowMillis - lastAppendMillis > deleteRetentionMillis }

    /// The batch, what is left of it, or nil when nothing is.
    mutating func kept(of batch: RecordBatch, _ latest: LatestOffsets, _ decoder: RecordDecoder) throws(RecordError) -> RecordBatch? {
        if batch.isControl { return keepsMarker(batch) ? batch : nil }
        if isAborted(batch) { return nil }
        let tombstonesMayGo = batch.deleteHorizonMillis.map { nowMillis >= $0 } ?? false
        var (isWhole, hasTombstones) = (true, false)
        try forEachRecord(of: batch, latest, decoder, tombstonesMayGo) { record, isKept in
            if !isKept { isWhole = false } else if record.value == nil, record.key != nil { hasTombstones = true }
        }
        // The first to meet a tombstone says when it may go.
        let needsHorizon = hasTombstones && batch.deleteHorizonMillis == nil
        let result = isWhole && !needsHorizon ? batch : try rebuilt(batch, latest, decoder, tombstonesMayGo, hasTombstones: hasTombstones)
        if result != nil, batch.isTransactional { transactionsWithRecords.insert(batch.producerID) }
        return result
    }

    private func forEachRecord(
        of batch: RecordBatch, _ latest: LatestOffsets, _ decoder: RecordDecoder, _ tombstonesMayGo: Bool, _ body: (Record, Bool) -> Void
    ) throws(RecordError) {
        var cursor = try decoder.records(of: batch)
        while let record = try cursor.next() {
            guard let key = record.key else {
                body(record, true)
                continue
            }
            body(record, !latest.supersedes(key, record.offset) && !(record.value == nil && tombstonesMayGo))
        }
    }

    private func rebuilt(
        _ batch: RecordBatch, _ latest: LatestOffsets, _ decoder: RecordDecoder, _ tombstonesMayGo: Bool, hasTombstones: Bool
    ) throws(RecordError) -> RecordBatch? {
        let horizon = hasTombstones ? batch.deleteHorizonMillis ?? deleteHorizonMillis : nil
        var builder = RecordBatchBuilder(remnantOf: batch, deleteHorizonMillis: horizon)
        try forEachRecord(of: batch, latest, decoder, tombstonesMayGo) { record, isKept in
            if isKept { builder.append(record, offsetDelta: record.offset - batch.baseOffset) }
        }
        guard builder.recordCount > 0 else { return nil }
        let rebuilt = try RecordBatch(firstIn: builder.finish(compression: batch.compression(), lastOffsetDelta: batch.lastOffsetDelta))
        rebuilt?.assign(baseOffset: batch.baseOffset, leaderEpoch: 0)
        return rebuilt
    }

    private mutating func keepsMarker(_ batch: RecordBatch) -> Bool {
        let hasRecords = transactionsWithRecords.remove(batch.producerID) != nil
        guard !hasRecords, markersMayGo, batch.marker != nil else { return true }
        droppedMarkers.insert(batch.baseOffset)
        return false
    }
}
