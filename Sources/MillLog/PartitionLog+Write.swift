import MillIO
import MillKafkaWire
import Synchronization

/// Writing what waits: offsets are assigned in the order of the queue, and what follows one another in a segment is one write.
///
/// While a flush writes and syncs, more comes and is the next flush's: so the more there is to do, the fewer writes and syncs it takes.
extension PartitionLog {
    /// Appends that are written together. No producer has two of them, because whether the second may follow depends on the first.
    private struct Run {
        struct Part {
            var batches: [RecordBatch]
            var bytes: WireBytes
            var appended: Appended
            var completion: @Sendable (Result<Appended, LogError>) -> Void
        }

        var parts: [Part] = []
        var byteCount = 0
        var producers: Set<Int64> = []
    }

    /// One emptying of the queue.
    private struct Writing {
        var config: TopicConfig
        var nowMillis: Int64
        var run = Run()
        /// What is told at once, when the locks are given up.
        var outcomes: [(completion: @Sendable (Result<Appended, LogError>) -> Void, result: Result<Appended, LogError>)] = []
        var failure: LogError?
    }

    /// Writes what is in the queue. An append that cannot be written is told so, and the next one is tried.
    func writePending() {
        let (outcomes, failure) = appender.withLock { appender in
            let (pending, config, failure) = state.withLock { state in
                defer { (state.pending, state.pendingBytes) = ([], 0) }
                return (state.pending, state.config, state.failure)
            }
            var writing = Writing(config: config, nowMillis: nowMillis, failure: failure)
            for append in pending {
                do throws(LogError) { try place(append, &writing, &appender) } catch {
                    writing.outcomes.append((append.completion, .failure(error)))
                }
            }
            writeRun(&writing, &appender)
            return (writing.outcomes, failure == nil ? writing.failure : nil)
        }
        if let failure { stop(failure) }
        for outcome in outcomes { outcome.completion(outcome.result) }
    }

    private func place(_ append: PendingAppend, _ writing: inout Writing, _ appender: inout Appender) throws(LogError) {
        if let failure = writing.failure { throw failure }
        switch append.content {
        case .batches(let batches, let bytes):
            if writing.run.producers.contains(batches[0].producerID) { writeRun(&writing, &appender) }
            if case .duplicate(let base, let last) = try appender.producers.check(batches[0]) {
                let appended = Appended(baseOffset: base, endOffset: last + 1, logStartOffset: logStartOffset, isDuplicate: true)
                if !wait(for: appended, append.completion) { writing.outcomes.append((append.completion, .success(appended))) }
                return
            }
            // Under the appender's lock: a transaction whose end is decided gets no record after its marker.
            if batches[0].isTransactional { try coordinator.check(batches[0], belongsTo: PartitionPlace(topic: topic, partition: index)) }
            try add(batches, bytes, append.completion, to: &writing, &appender)
        case .marker(let producer, let isCommit):
            writeRun(&writing, &appender)
            guard state.withLock({ $0.transactions.isOpen(producer.id) }) else {
                // A marker of an earlier attempt may be on its way.
                let end = appender.nextOffset
                let appended = Appended(baseOffset: end, endOffset: end, logStartOffset: logStartOffset, isDuplicate: true)
                if !wait(for: appended, append.completion) { writing.outcomes.append((append.completion, .success(appended))) }
                return
            }
            let bytes = RecordBatchBuilder.marker(
                producerID: producer.id, producerEpoch: producer.epoch, isCommit: isCommit, timestamp: writing.nowMillis)
            var batches = RecordBatches(bytes)
            guard let marker = try? batches.next() else { preconditionFailure("a marker is a batch") }
            try add([marker], bytes, append.completion, to: &writing, &appender)
        }
    }

    /// Assigns offsets; the active segment ends before what it has no room for.
    private func add(
        _ batches: [RecordBatch], _ bytes: WireBytes, _ completion: @escaping @Sendable (Result<Appended, LogError>) -> Void,
        to writing: inout Writing, _ appender: inout Appender
    ) throws(LogError) {
        func next() -> Int64 { writing.run.parts.last?.appended.endOffset ?? appender.nextOffset }
        let recordCount = batches.reduce(Int64(0)) { $0 + Int64($1.recordCount) }
        let active = appender.active
        let size = active.size + writing.run.byteCount
        let isFull =
            size + bytes.count > writing.config.segmentBytes(options) || next() + recordCount - active.baseOffset > Int64(Int32.max)
        if size > 0, isFull || active.isOlder(than: writing.config.segmentMillis, writing.nowMillis) {
            writeRun(&writing, &appender)
            if active.size > 0 { try roll(&appender) }
        }
        let base = next()
        var end = base
        for batch in batches {
            batch.assign(baseOffset: end, leaderEpoch: 0)
            if writing.config.stampsAppends, !batch.isControl { batch.stamp(appendedAtMillis: writing.nowMillis) }
            end += Int64(batch.recordCount)
        }
        var appended = Appended(baseOffset: base, endOffset: end, logStartOffset: logStartOffset, isDuplicate: false)
        if writing.config.stampsAppends { appended.appendedAtMillis = writing.nowMillis }
        writing.run.parts.append(Run.Part(batches: batches, bytes: bytes, appended: appended, completion: completion))
        writing.run.byteCount += bytes.count
        if batches[0].hasProducer { writing.run.producers.insert(batches[0].producerID) }
    }

    /// Writes the run and takes note of it.
    private func writeRun(_ writing: inout Writing, _ appender: inout Appender) {
        let run = writing.run
        writing.run = Run()
        guard let last = run.parts.last else { return }
        let active = appender.active
        let position = active.size
        reserve(position + run.byteCount, &appender)
        do throws(IOFailure) {
            try flusher.writer.write(run.parts.map(\.bytes), to: active.file, at: position, usesBlocks: options.flush == .sync)
        } catch {
            // A part of it may be there. A start would cut it; so do we, or stop if even that fails.
            let failure = LogError.storage(error)
            // The cut gives back what was reserved, too.
            appender.reserved = 0
            do throws(IOFailure) { try active.file.truncate(to: position) } catch {
                writing.failure = .storage(error)
                state.withLock { $0.failure = $0.failure ?? .storage(error) }
            }
            for part in run.parts { writing.outcomes.append((part.completion, .failure(failure))) }
            return
        }
        appender.nextOffset = last.appended.endOffset
        for part in run.parts {
            for batch in part.batches { appender.producers.record(batch, baseOffset: batch.baseOffset, nowMillis: writing.nowMillis) }
        }
        let tail = tailEntries(of: run, in: active, at: position)
        state.withLock { state in
            for part in run.parts {
                for batch in part.batches {
                    active.add(batch, indexIntervalBytes: options.indexIntervalBytes)
                    state.transactions.note(batch)
                }
                state.waiters.append(Waiter(of: part.appended, part.completion))
            }
            active.noteAppend(writing.nowMillis)
            state.logEndOffset = last.appended.endOffset
            for entry in tail { state.tail.append(entry) }
        }
        for entry in tail { tailBudget.add(entry, of: self) }
    }

    /// What readers find in memory: large appends in the memory they came in, small ones side by side in new memory, so that what
    /// came with them can go.
    private func tailEntries(of run: Run, in segment: Segment, at position: Int) -> [LogTail.Entry] {
        var entries: [LogTail.Entry] = []
        var position = position
        var place = 0
        while place < run.parts.count {
            let first = place
            var byteCount = 0
            while place < run.parts.count, place == first || byteCount + run.parts[place].bytes.count <= LogTail.sliceBytesMin {
                byteCount += run.parts[place].bytes.count
                place += 1
            }
            var bytes = run.parts[first].bytes
            if place - first > 1 || byteCount < LogTail.sliceBytesMin {
                let gathered = WireBuffer(capacity: byteCount)
                for part in run.parts[first..<place] { part.bytes.withUnsafeBytes { gathered.append($0) } }
                gathered.setCount(byteCount)
                bytes = gathered.bytes
            }
            entries.append(
                LogTail.Entry(
                    baseOffset: run.parts[first].appended.baseOffset, nextOffset: run.parts[place - 1].appended.endOffset, segment: segment,
                    position: position, bytes: bytes))
            position += byteCount
        }
        return entries
    }

    func dropTail(before offset: Int64) { state.withLock { $0.tail.drop(before: offset) } }

    /// Has the completion run once the high watermark is there, or the partition has failed; false, and nothing kept, when it is there.
    private func wait(for appended: Appended, _ completion: @escaping @Sendable (Result<Appended, LogError>) -> Void) -> Bool {
        state.withLock { state in
            guard state.highWatermark < appended.endOffset else { return false }
            state.waiters.append(Waiter(of: appended, completion))
            return true
        }
    }
}

extension PartitionLog.Waiter {
    init(of appended: PartitionLog.Appended, _ completion: @escaping @Sendable (Result<PartitionLog.Appended, LogError>) -> Void) {
        self.init(endOffset: appended.endOffset) { error in completion(error.map { .failure($0) } ?? .success(appended)) }
    }
}
