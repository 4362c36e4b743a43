package import MillBase
package import MillColumnar
package import MillIO
import Synchronization

/// What committed transactions did to tables, durable before they are acknowledged: one log for all tables.
///
/// The format, and what a crash leaves, is docs/internals/dml-log.md. Positions are transaction numbers, from 1 without gaps, in the
/// order of the calls of `write`.
///
/// Threading: any thread. `write` takes a place in the buffer and returns; one thread writes and syncs what has gathered, so
/// transactions that commit at the same time share an fsync.
package final class DMLLog: Flushable {
    package struct Options: Sendable {
        /// A flush that finds the last segment this large begins the next one.
        package var segmentBytesMax = 16 << 20

        package init() {}
    }

    struct Segment {
        var first: DMLPosition
        var path: String
    }

    /// The end of the last segment; only the flushing thread uses it after the start.
    struct Tail {
        var file: any File
        var size: Int
        /// The next flush begins another one, whatever the size.
        var isFull = false
    }

    /// Room for what is in the buffer and not in the last segment yet. It is asked for before a transaction gets its place: one that has
    /// one may have been built upon.
    private struct Room {
        /// The last segment.
        var file: any File
        /// Bytes that it has once the buffer is in it.
        var size: Int
        /// Bytes that there is room for.
        var reserved = 0

        mutating func grow(_ bytes: Int) throws(IOFailure) {
            if size + bytes > reserved {
                // In steps, so that a sync seldom finds a new size.
                let wanted = size + max(bytes, DMLLog.reserveBytes)
                do throws(IOFailure) {
                    try file.reserve(wanted)
                    reserved = wanted
                } catch {
                    try file.reserve(size + bytes)
                    reserved = size + bytes
                }
            }
            size += bytes
        }
    }

    private struct State {
        var next: DMLPosition
        var nextRowID: Int64
        /// Records that are not in the file yet, behind the mark of their flush.
        var buffer: [UInt8] = []
        /// Number of the first record in the buffer, and the row numbers given out before it.
        var bufferStart: DMLRecord.Header
        var durable: DMLPosition
        var waiters: [(position: DMLPosition, resume: @Sendable (LogError?) -> Void)] = []
        var segments: [Segment]
        var room: Room
        var failure: LogError?
    }

    private static let reserveBytes = 1 << 20

    private let state: Mutex<State>
    private let tail: Mutex<Tail>
    private let directory: String
    private let files: any FileSystem
    private let options: Options
    private let flusher: LogFlusher
    /// What the start cut off the last segment.
    package let truncatedTail: TruncatedTail?
    /// Acknowledged transactions of the last segment that cannot be read. `read` fails when it is asked for one of them.
    package let damage: [DMLDamage]

    /// Opens the log in a directory, which is made when missing.
    /// - Throws: `storage`, or `corrupted` for a file that contradicts itself.
    package init(environment: Environment, directory: String, options: Options = Options()) throws(LogError) {
        files = environment.files
        self.directory = directory
        self.options = options
        let found = try Self.recover(directory, files)
        state = Mutex(
            State(
                next: found.next.first, nextRowID: found.next.nextRowID, bufferStart: found.next, durable: found.next.first.previous,
                segments: found.segments, room: Room(file: found.tail.file, size: found.tail.size)))
        tail = Mutex(found.tail)
        truncatedTail = found.truncatedTail
        damage = found.damage
        flusher = try LogFlusher(threadCount: 1)
    }

    /// A log that nobody closed leaves no thread behind.
    deinit { flusher.stop() }

    /// The last transaction that is durable.
    package var durablePosition: DMLPosition { state.withLock { $0.durable } }
    /// The first row number that no transaction in the log has given out.
    package var nextRowID: Int64 { state.withLock { $0.nextRowID } }

    // MARK: Appending

    /// Appends a transaction; returns its position when it is durable.
    package func append(_ transaction: DMLTransaction) async throws(LogError) -> DMLPosition {
        let position = try write(transaction)
        try await sync(upTo: position)
        return position
    }

    /// Gives a transaction its position, behind all that were written before. It is durable once `sync(upTo:)` has returned.
    /// - Throws: `transactionTooLarge`, `closed`, `storage` when the disk is full, or what an earlier flush failed with.
    package func write(_ transaction: DMLTransaction) throws(LogError) -> DMLPosition {
        let changes = DMLRecord.encodeChanges(transaction)
        guard changes.count <= DMLRecord.payloadBytesMax - DMLRecord.numbersBytes else {
            throw .transactionTooLarge(bytes: changes.count, limit: DMLRecord.payloadBytesMax - DMLRecord.numbersBytes)
        }
        let result: Result<DMLPosition, LogError> = state.withLock { state in
            if let failure = state.failure { return .failure(failure) }
            let isFirst = state.buffer.isEmpty
            let byteCount = DMLRecord.frameBytes + DMLRecord.numbersBytes + changes.count + (isFirst ? DMLRecord.markBytes : 0)
            do throws(IOFailure) { try state.room.grow(byteCount) } catch { return .failure(.storage(error)) }
            if isFirst {
                state.bufferStart = DMLRecord.Header(first: state.next, nextRowID: state.nextRowID)
                // The flush says what is durable by then.
                state.buffer = [UInt8](repeating: 0, count: DMLRecord.markBytes)
            }
            let position = state.next
            state.nextRowID = max(state.nextRowID, transaction.nextRowID)
            DMLRecord.append(changes, number: position, nextRowID: state.nextRowID, to: &state.buffer)
            state.next = position.next
            return .success(position)
        }
        flusher.schedule(self)
        return try result.get()
    }

    /// Returns when all transactions up to a position are durable.
    package func sync(upTo position: DMLPosition) async throws(LogError) {
        let failure: LogError? = await withCheckedContinuation { continuation in
            let answer: LogError?? = state.withLock { state in
                if state.durable >= position { return .some(nil) }
                if let failure = state.failure { return .some(failure) }
                state.waiters.append((position, { continuation.resume(returning: $0) }))
                return nil
            }
            if let answer { continuation.resume(returning: answer) }
        }
        if let failure { throw failure }
    }

    func flush() {
        let taken: (bytes: [UInt8], start: DMLRecord.Header, last: DMLPosition)? = state.withLock { state in
            guard state.failure == nil, !state.buffer.isEmpty else { return nil }
            let durable = DMLRecord.Header(first: state.durable, nextRowID: state.bufferStart.nextRowID)
            state.buffer.replaceSubrange(..<DMLRecord.markBytes, with: DMLRecord.mark(durable))
            defer { state.buffer = [] }
            return (state.buffer, state.bufferStart, state.next.previous)
        }
        guard let taken else { return }
        var failure: LogError?
        do throws(IOFailure) { try append(taken.bytes, startingAt: taken.start) } catch { failure = .storage(error) }
        let due = state.withLock { state in
            if failure == nil { state.durable = taken.last } else { state.failure = failure }
            let due = state.waiters.filter { failure != nil || $0.position <= taken.last }
            state.waiters.removeAll { failure != nil || $0.position <= taken.last }
            return due
        }
        for waiter in due { waiter.resume(failure) }
    }

    private func append(_ bytes: [UInt8], startingAt start: DMLRecord.Header) throws(IOFailure) {
        let result: Result<Void, IOFailure> = tail.withLock { tail in
            do throws(IOFailure) {
                if tail.size >= options.segmentBytesMax || tail.isFull { try roll(&tail, start, bytes.count) }
                let (file, size) = (tail.file, tail.size)
                try file.write(bytes, at: size)
                try file.sync()
                tail.size += bytes.count
                return .success(())
            } catch { return .failure(error) }
        }
        try result.get()
    }

    /// Begins the next segment, unless there is no room for it and all that is to go there: then the last one goes on.
    private func roll(_ tail: inout Tail, _ start: DMLRecord.Header, _ taken: Int) throws(IOFailure) {
        let made: (segment: Segment, tail: Tail)
        do throws(IOFailure) { made = try Self.makeSegment(start, in: directory, files) } catch {
            guard error.isDiskFull else { throw error }
            return try Self.removeSegment(start, in: directory, files)
        }
        let isMade = state.withLock { state in
            var room = Room(file: made.tail.file, size: made.tail.size)
            do throws(IOFailure) { try room.grow(taken + state.buffer.count) } catch { return false }
            state.room = room
            state.segments.append(made.segment)
            return true
        }
        guard isMade else { return try Self.removeSegment(start, in: directory, files) }
        let finished = tail
        tail = made.tail
        // Room that stays reserved is free once the segment goes.
        try? finished.file.truncate(to: finished.size)
    }

    /// Makes what was written durable and takes nothing more.
    package func close() {
        state.withLock { $0.failure = $0.failure ?? ($0.buffer.isEmpty ? .closed : nil) }
        flusher.stop()
        let left = state.withLock { state in
            state.failure = state.failure ?? .closed
            defer { state.waiters = [] }
            return (waiters: state.waiters, failure: state.failure)
        }
        for waiter in left.waiters { waiter.resume(left.failure) }
        tail.withLock { tail in
            // Room that stays reserved is given back by the next start.
            try? tail.file.truncate(to: tail.size)
        }
    }

    // MARK: Reading and discarding

    /// Calls `body` with every durable transaction from a position on, in order.
    ///
    /// - Parameter types: of a table's columns; nil for a table that is no more, whose rows are left out.
    /// - Throws: `corrupted` when a record is not what it should be, or `position` has been discarded; what `body` throws.
    package func read(
        from position: DMLPosition, types: (ObjectID) -> [SQLType]?, _ body: (DMLPosition, DMLTransaction) throws(SQLError) -> Void
    ) throws(SQLError) {
        let (segments, durable) = state.withLock { ($0.segments, $0.durable) }
        guard position <= durable else { return }
        guard let first = segments.lastIndex(where: { $0.first <= position }) else {
            throw LogError.corrupted(path: directory, reason: "transaction \(position) is no longer there").sqlError
        }
        for index in first..<segments.count {
            let last = index + 1 < segments.count ? segments[index + 1].first.previous : durable
            let bytes: [UInt8]
            do throws(IOFailure) { bytes = try Self.readAll(segments[index].path, files) } catch { throw error.sqlError }
            guard let (header, _) = DMLRecord.header(bytes[...]), header.first == segments[index].first else {
                throw LogError.corrupted(path: segments[index].path, reason: "it does not begin with its header").sqlError
            }
            var reader = DMLSegmentReader(bytes, header)
            while reader.expected <= last {
                switch reader.next() {
                case .transaction(let header, let payload):
                    guard header.first >= position else { continue }
                    guard let transaction = DMLRecord.transaction(payload, types: types) else {
                        throw LogError.corrupted(path: segments[index].path, reason: "transaction \(header.first) does not fit its tables").sqlError
                    }
                    try body(header.first, transaction)
                case .damage(let first, let offset):
                    let damage = DMLDamage(path: segments[index].path, offset: offset, first: first, next: reader.expected)
                    if damage.next > max(first, position) { throw damage.sqlError }
                case .end:
                    throw DMLDamage(path: segments[index].path, offset: reader.offset, first: reader.expected, next: last.next).sqlError
                }
            }
        }
    }

    /// Removes segments that hold nothing behind a position; the last segment always stays.
    package func discard(upTo position: DMLPosition) throws(LogError) {
        let old: [Segment] = state.withLock { state in
            let kept = state.segments.dropFirst().firstIndex { $0.first > position.next } ?? state.segments.count
            let count = max(kept - 1, 0)
            defer { state.segments.removeFirst(count) }
            return Array(state.segments.prefix(count))
        }
        do throws(IOFailure) {
            for segment in old { try files.remove(segment.path) }
            if !old.isEmpty { try files.syncDirectory(directory) }
        } catch { throw .storage(error) }
    }
}
