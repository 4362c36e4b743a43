import MillIO
import Synchronization

/// Taking away a partition's beginning: by request, by size, by time.
///
/// Order on disk: first the new start, durable, in `log.start`; then the segments that lie wholly below it go, oldest first. A start after
/// a crash in between removes what is left of them.
extension PartitionLog {
    /// Rolls, deletes and compacts as the topic's settings say. `isStopped` is asked between segments.
    func maintain(_ isStopped: () -> Bool = { false }) throws(LogError) {
        try maintenance.withLock { _ throws(LogError) in
            let (failure, config) = state.withLock { ($0.failure, $0.config) }
            if failure != nil { return }
            try rollIfOld(config)
            if config.deletesOld, config.retentionBytes >= 0 || config.retentionMillis >= 0 { try deleteOld(config) }
            if config.isCompacted { try compact(config, isStopped) }
        }
    }

    /// Makes `offset` the first one there is; records below are gone when it returns, also after a crash. Blocks.
    /// - Returns: the first offset there is.
    /// - Throws: `offsetOutOfRange` above the high watermark, `storage`, `closed`.
    package func deleteRecords(before offset: Int64) throws(LogError) -> Int64 {
        try maintenance.withLock { _ throws(LogError) in
            let (failure, start, end) = state.withLock { ($0.failure, $0.startOffset, $0.highWatermark) }
            if let failure { throw failure }
            guard (0...end).contains(offset) else { throw .offsetOutOfRange(requested: offset, start: start, end: end) }
            guard offset > start else { return start }
            try advanceStart(to: offset)
            return offset
        }
    }

    /// A segment that is appended to is never deleted, so one that is old enough must end first.
    private func rollIfOld(_ config: TopicConfig) throws(LogError) {
        let now = nowMillis
        let didRoll = try appender.withLock { (appender) throws(LogError) in
            let active = appender.active
            guard active.size > 0 else { return false }
            let isExpired = config.deletesOld && config.retentionMillis >= 0 && now - active.lastAppendMillis > config.retentionMillis
            guard isExpired || active.isOlder(than: config.segmentMillis, now) else { return false }
            try roll(&appender)
            return true
        }
        if didRoll { flusher.schedule(self) }
    }

    private func deleteOld(_ config: TopicConfig) throws(LogError) {
        let now = nowMillis
        let start: Int64? = state.withLock { state in
            var total = state.segments.reduce(0) { $0 + $1.size }
            var start: Int64?
            for (segment, next) in zip(state.segments, state.segments.dropFirst()) {
                let isTooMuch = config.retentionBytes >= 0 && total - segment.size >= config.retentionBytes
                let isTooOld =
                    config.retentionMillis >= 0 && segment.lastAppendMillis >= 0 && now - segment.lastAppendMillis > config.retentionMillis
                guard isTooMuch || isTooOld, next.baseOffset <= state.lastStableOffset else { break }
                start = next.baseOffset
                total -= segment.size
            }
            return start
        }
        if let start, start > logStartOffset { try advanceStart(to: start) }
    }

    private func advanceStart(to offset: Int64) throws(LogError) {
        do throws(IOFailure) { try LogStart.write(offset, in: directory, environment.files) } catch { throw .storage(error) }
        let dropped = state.withLock { state in
            state.startOffset = offset
            state.transactions.removeAborted(before: offset)
            let count = zip(state.segments, state.segments.dropFirst()).prefix { $0.1.baseOffset <= offset }.count
            let dropped = Array(state.segments.prefix(count))
            state.segments.removeFirst(count)
            state.sealed.removeAll { sealed in dropped.contains { $0 === sealed.segment } }
            state.forgetHints(to: dropped)
            return dropped
        }
        discard(dropped)
    }

    /// Removes files of segments that no longer count. What cannot be removed now goes at the next start.
    func discard(_ segments: [Segment]) {
        for segment in segments {
            do throws(IOFailure) { try Self.remove(segment, environment.files) } catch {}
        }
    }
}
