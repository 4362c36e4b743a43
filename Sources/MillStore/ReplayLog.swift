package import MillBase
package import MillConnectorKit
package import MillIO
import Synchronization

/// Corrected records of one source, in the order in which they were replayed: the source's side split (`docs/internals/replay.md`).
///
/// A record's number is its position; each names the reject that it stands for, so one sync makes the record part of the source and takes
/// the reject away. Kept in memory as well, up to a limit of bytes, and on disk when there is a directory.
///
/// Threading: any thread. After a crash a torn entry at the end is cut off: nobody was told of it. One that is damaged although a mark behind it
/// says that it was durable is not. When a sync fails nobody knows what is on disk, and nothing more is taken before the next start.
package final class ReplayLog: Sendable {
    package struct Entry: Sendable, Equatable {
        /// The reject that it stands for.
        package var split: SourceSplit
        package var position: Int64
        /// The corrected record.
        package var record: [UInt8]

        package init(split: SourceSplit, position: Int64, record: [UInt8]) {
            self.split = split
            self.position = position
            self.record = record
        }
    }

    private struct State {
        var file: (any File)?
        var entries: [Entry] = []
        var byteCount = 0
        var fileBytes = 0
        var failure: IOFailure?
        var listeners: [Int: @Sendable () -> Void] = [:]
        var nextListener = 0
    }

    /// Where a log is kept.
    package struct Place: Sendable {
        var files: any FileSystem
        var directory: String
        var name: String

        package init(_ files: any FileSystem, directory: String, name: String) {
            self.files = files
            self.directory = directory
            self.name = name
        }

        var path: String { directory + "/" + name }
        /// Where the directory is.
        var parent: String { directory.lastIndex(of: "/").map { String(directory[..<$0]) } ?? "." }
    }

    private let place: Place?
    private let state: Mutex<State>
    private let bytesMax: Int

    /// Empty; its file is made with the first record.
    /// - Parameters:
    ///   - place: nil keeps it in memory alone.
    ///   - bytesMax: of corrected records.
    package init(at place: Place?, bytesMax: Int) {
        self.place = place
        self.bytesMax = bytesMax
        state = Mutex(State())
    }

    /// Takes up what an earlier process wrote.
    /// - Throws: 58030 or 53100 when the file cannot be read; XX001 when something is damaged that was acknowledged.
    package init(reading place: Place, bytesMax: Int) throws(SQLError) {
        self.bytesMax = bytesMax
        let (file, bytes): (any File, [UInt8])
        do throws(IOFailure) {
            file = try place.files.open(place.path, .readWrite)
            bytes = try file.readAll()
        } catch { throw error.sqlError }
        var state = State(file: file)
        var rest = bytes[...]
        while let (frame, length) = Self.frame(at: rest) {
            if case .entry(let entry) = frame {
                state.entries.append(entry)
                state.byteCount += entry.record.count
            }
            rest = rest.dropFirst(length)
        }
        state.fileBytes = bytes.count - rest.count
        guard !Self.isVouchedFor(rest) else {
            throw SQLError(
                .dataCorrupted, "\"\(place.path)\" is damaged: the entry at byte \(state.fileBytes) is not whole, and it was acknowledged",
                hint: "Restore the data directory from a copy; docs/operating.md says how to go on without what is damaged.")
        }
        do throws(IOFailure) {
            if !rest.isEmpty { try file.truncate(to: state.fileBytes) }
            // What an earlier process wrote and did not sync is read from here on.
            try file.sync()
            try place.files.syncDirectory(place.directory)
        } catch { throw error.sqlError }
        self.place = place
        self.state = Mutex(state)
    }

    /// Removes the file; what is in memory stays until readers are closed.
    package func remove() throws(IOFailure) {
        if let place { try place.files.remove(place.path) }
    }

    package var count: Int { state.withLock { $0.entries.count } }

    package var entries: [Entry] { state.withLock { $0.entries } }

    /// Records from a number on, at most so many and about so many bytes.
    package func entries(from first: Int, countMax: Int, bytesMax: Int) -> [Entry] {
        state.withLock { state in
            var bytes = 0
            return Array(
                state.entries.dropFirst(first).prefix(max(countMax, 1)).prefix { entry in
                    defer { bytes += entry.record.count }
                    return bytes < bytesMax
                })
        }
    }

    /// Adds records, all of them or none; they are on disk when it returns.
    /// - Throws: 54000 beyond the limit, 53100 or 58030 when they cannot be stored.
    package func append(_ entries: [Entry]) throws(SQLError) {
        let listeners: Result<[@Sendable () -> Void], SQLError> = state.withLock { state in
            do throws(SQLError) { try append(entries, &state) } catch { return .failure(error) }
            return .success(Array(state.listeners.values))
        }
        for listener in try listeners.get() { listener() }
    }

    /// - Throws: 54000 when so many bytes of records more are beyond the limit.
    package func requireRoom(for bytes: Int) throws(SQLError) {
        guard state.withLock({ $0.byteCount + bytes <= bytesMax }) else { throw isFull }
    }

    private var isFull: SQLError {
        SQLError(
            .programLimitExceeded, "a source keeps \(bytesMax >> 20) MiB of replayed records at most",
            hint: "Replay fewer with WHERE, or write them to the source's topic.")
    }

    private func append(_ entries: [Entry], _ state: inout State) throws(SQLError) {
        let added = entries.reduce(0) { $0 + $1.record.count }
        guard state.byteCount + added <= bytesMax else { throw isFull }
        if let failure = state.failure { throw failure.sqlError }
        // Whoever finds what is before the mark damaged knows that it was acknowledged.
        let bytes = (state.fileBytes > 0 ? Self.mark(state.fileBytes) : []) + entries.flatMap(Self.bytes)
        if let place {
            do throws(IOFailure) { try write(bytes, at: place, &state) } catch { throw error.sqlError }
        }
        state.fileBytes += bytes.count
        state.byteCount += added
        state.entries += entries
    }

    private func write(_ bytes: [UInt8], at place: Place, _ state: inout State) throws(IOFailure) {
        let file: any File
        if let open = state.file {
            file = open
        } else {
            try place.files.createDirectory(place.directory)
            file = try place.files.open(place.path, .readWrite)
            try place.files.syncDirectory(place.directory)
            try place.files.syncDirectory(place.parent)
            state.file = file
        }
        do throws(IOFailure) { try file.write(bytes, at: state.fileBytes) } catch {
            try? file.truncate(to: state.fileBytes)  // A torn entry is cut off at the next start as well.
            throw error
        }
        do throws(IOFailure) { try file.sync() } catch {
            state.failure = error
            throw error
        }
    }

    /// Calls `body`, from any thread, after records were added.
    /// - Returns: for `removeListener`.
    package func addListener(_ body: @escaping @Sendable () -> Void) -> Int {
        state.withLock { state in
            state.nextListener += 1
            state.listeners[state.nextListener] = body
            return state.nextListener
        }
    }

    package func removeListener(_ id: Int) { state.withLock { state in state.listeners[id] = nil } }

    // MARK: Bytes

    /// What is found in a file.
    private enum Frame {
        case entry(Entry)
        /// So many of the file's first bytes were durable when it was written.
        case mark(durableBytes: UInt64)
    }

    private static let frameBytes = 8
    /// Of a mark's body; an entry's is longer.
    private static let markBytes = 8

    private static func bytes(_ entry: Entry) -> [UInt8] {
        var body = RecordWriter()
        body.put(entry.split.name)
        body.put(entry.split.topic)
        body.put(entry.split.partition)
        body.put(entry.position)
        body.put(bytes: entry.record)
        return framed(body.bytes)
    }

    private static func mark(_ durableBytes: Int) -> [UInt8] {
        var body = RecordWriter()
        body.put(UInt64(durableBytes))
        return framed(body.bytes)
    }

    private static func framed(_ body: [UInt8]) -> [UInt8] {
        var whole = RecordWriter()
        whole.put(checksum(body))
        whole.put(bytes: body)
        return whole.bytes
    }

    /// What is at the beginning and its length; nil when it is not whole.
    private static func frame(at bytes: ArraySlice<UInt8>) -> (Frame, length: Int)? {
        do throws(RecordDamage) {
            var head = RecordReader(bytes.prefix(frameBytes))
            let sum = try head.get(UInt32.self)
            let length = Int(try head.get(UInt32.self))
            guard length <= bytes.count - frameBytes else { return nil }
            let body = bytes.dropFirst(frameBytes).prefix(length)
            guard checksum(body) == sum else { return nil }
            var reader = RecordReader(body)
            if length == markBytes { return (.mark(durableBytes: try reader.get(UInt64.self)), frameBytes + length) }
            let split = SourceSplit(name: try reader.getText(), topic: try reader.getText(), partition: try reader.get(Int32.self))
            return (.entry(Entry(split: split, position: try reader.get(Int64.self), record: try reader.getBytes())), frameBytes + length)
        } catch { return nil }
    }

    /// Whether a mark says that the first byte of a file's rest was durable: then it is no torn tail.
    private static func isVouchedFor(_ rest: ArraySlice<UInt8>) -> Bool {
        // The length that a mark begins with after its checksum.
        let length = [UInt8(markBytes), 0, 0, 0]
        var place = rest.startIndex
        while place + frameBytes + markBytes <= rest.endIndex {
            if rest[place + 4] == length[0], rest[place + 4..<place + frameBytes].elementsEqual(length),
                case .mark(let durableBytes)? = frame(at: rest[place...])?.0, durableBytes > UInt64(rest.startIndex)
            {
                return true
            }
            place += 1
        }
        return false
    }
}
