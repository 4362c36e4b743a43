import MillIO
import MillKafkaWire
import Synchronization

/// Making what was written durable, and letting readers see it.
extension PartitionLog {
    /// Called by the flusher: writes what waits, and makes it durable.
    func flush() {
        writePending()
        let index = dueIndex()
        let work = state.withLock { state in
            let sealed = state.sealed
            let directoryDirty = state.directoryDirty
            state.sealed = []
            state.directoryDirty = false
            return (sealed: sealed, directoryDirty: directoryDirty, written: Written(state), failure: state.failure)
        }
        // An append that met the failure too late to see it is told here.
        if let failure = work.failure { return stop(failure) }
        do throws(IOFailure) {
            for (segment, index) in work.sealed {
                try segment.file.truncate(to: segment.size)
                try segment.file.sync()
                writeIndexIfRoom(index, of: segment)
            }
            if work.directoryDirty { try environment.files.syncDirectory(directory) }
            guard options.flush == .sync else { return }
            try work.written.active.file.sync()
            // Of a segment that has ended since, the index covers all.
            if let index, index.segment === work.written.active { replaceIndex(of: index.segment, by: index.bytes) }
        } catch {
            // After a failed fsync the system may have dropped the pages: what is on disk is unknown, so nobody is told more.
            stop(.storage(error))
            return
        }
        publish { _ in work.written }
    }

    /// The index of the active segment as it is now, to be written once that is durable; nil while little has come since the last one.
    private func dueIndex() -> (segment: Segment, bytes: WireBytes)? {
        guard options.flush == .sync else { return nil }
        return appender.withLock { appender in
            let active = appender.active
            guard active.size - active.indexedSize >= options.uncheckedBytesMax else { return nil }
            active.indexedSize = active.size
            return (active, encodedIndex(of: active, &appender))
        }
    }

    /// Not synced: one that a power cut tears counts as missing, and what it covers is durable already.
    private func replaceIndex(of segment: Segment, by index: WireBytes) {
        let fresh = segment.indexPath + ".new"
        do throws(IOFailure) {
            try environment.files.open(fresh, .create).writeAll(index)
            try environment.files.rename(fresh, to: segment.indexPath)
        } catch {
            try? environment.files.remove(fresh)  // The one before goes on: a start has more to check.
        }
    }

    /// Without its index the segment is checked at the next start: a full disk costs time there, and nothing else.
    private func writeIndexIfRoom(_ index: WireBytes, of segment: Segment) {
        do throws(IOFailure) { try Self.writeIndex(index, at: segment.indexPath, environment.files) } catch {
            try? environment.files.remove(segment.indexPath)  // What is there of it has no checksum that fits.
        }
    }

    func publishWritten() { publish { Written($0) } }

    /// The end of what was written at some moment.
    private struct Written {
        var active: Segment
        var activeSize: Int
        var end: Int64

        init(_ state: borrowing State) {
            active = state.segments[state.segments.count - 1]
            activeSize = active.size
            end = state.logEndOffset
        }
    }

    /// Lets readers see what was written, and tells who waits for it.
    private func publish(_ choose: (borrowing State) -> Written) {
        let (end, due, listeners) = state.withLock { state in
            let written = choose(state)
            guard written.end > state.highWatermark else { return (written.end, [Waiter](), [@Sendable (Int64) -> Void]()) }
            state.highWatermark = written.end
            state.lastStableOffset = state.transactions.lastStableOffset(highWatermark: written.end)
            written.active.visibleSize = written.activeSize
            for segment in state.segments.reversed() where segment.baseOffset < written.active.baseOffset {
                if segment.visibleSize == segment.size { break }
                segment.visibleSize = segment.size
            }
            let count = state.waiters.prefix { $0.endOffset <= written.end }.count
            let due = Array(state.waiters.prefix(count))
            state.waiters.removeFirst(count)
            return (written.end, due, Array(state.listeners.values))
        }
        for waiter in due { waiter.run(nil) }
        for listener in listeners { listener(end) }
    }

    /// Stops the partition for good: waiting appends fail, and all later calls.
    func stop(_ error: LogError) {
        let (waiters, pending, listeners, end) = state.withLock { state in
            if state.failure == nil { state.failure = error }
            defer { (state.waiters, state.pending, state.pendingBytes, state.tail) = ([], [], 0, LogTail()) }
            return (state.waiters, state.pending, Array(state.listeners.values), state.highWatermark)
        }
        for waiter in waiters { waiter.run(error) }
        for append in pending { append.completion(.failure(error)) }
        // Readers look again, and see why there will be nothing more.
        for listener in listeners { listener(end) }
    }

    /// Makes everything durable, indexes included, and stops. The flusher has ended before.
    func close() {
        flush()
        let index = appender.withLock { appender in
            failure == nil ? (appender.active, encodedIndex(of: appender.active, &appender)) : nil
        }
        if let (active, bytes) = index {
            // Without its index the segment is checked at the next start, so a failure here loses time and nothing else.
            do throws(IOFailure) {
                try active.file.truncate(to: active.size)
                try active.file.sync()
                try Self.writeIndex(bytes, at: active.indexPath, environment.files)
                try environment.files.syncDirectory(directory)
            } catch {}
        }
        stop(.closed)
    }

    /// Durable when the directory is, too.
    static func writeIndex(_ index: WireBytes, at path: String, _ files: any FileSystem) throws(IOFailure) {
        let file = try files.open(path, .create)
        try file.writeAll(index)
        try file.sync()
    }
}
