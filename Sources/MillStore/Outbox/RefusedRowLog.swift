package import MillBase
package import MillIO
import Synchronization

/// A row that a sink's target would not take.
package struct RefusedEntry: Sendable, Hashable {
    package var epoch: Epoch
    /// Microseconds since 1970.
    package var refusedAtMicros: Int64
    /// nil: the whole row.
    package var column: String?
    package var reason: String
    /// As JSON.
    package var row: String

    package init(epoch: Epoch, refusedAtMicros: Int64, column: String?, reason: String, row: String) {
        self.epoch = epoch
        self.refusedAtMicros = refusedAtMicros
        self.column = column
        self.reason = reason
        self.row = row
    }
}

/// The rows that a target would not take, each once (`docs/internals/outbox.md`): written before the commit of their epoch, and cut off
/// behind the epoch that the target has when it is opened again.
///
/// Bounded: of more than `byteCountMax` the older half goes and is counted. Threading: any thread; one lock.
package final class RefusedRowLog: Sendable {
    private let directory: String
    private let files: any FileSystem
    private let byteCountMax: Int
    private let state = Mutex(State())

    private struct State {
        /// Oldest first.
        var parts: [Part] = []
        var isUnsynced = false
        var isRead = false
    }

    private struct Part {
        var number: UInt64
        var file: any File
        var byteCount: Int
        var entryCount: Int64
        /// Of earlier files that are no more.
        var droppedCount: Int64
    }

    package init(directory: String, files: any FileSystem, byteCountMax: Int = 16 << 20) {
        self.directory = directory
        self.files = files
        self.byteCountMax = byteCountMax
    }

    private static let droppedReason = "dropped"

    /// Rows kept, and rows that had to go.
    package var counts: (kept: Int64, dropped: Int64) {
        state.withLock { state in (state.parts.reduce(0) { $0 + $1.entryCount }, state.parts.last?.droppedCount ?? 0) }
    }

    /// Rows, kept or not.
    package var count: Int64 { counts.kept + counts.dropped }

    /// Takes up what is there, without the rows behind the epoch that the target has: they are sent again.
    package func open(after committed: Epoch) throws(SQLError) {
        do throws(IOFailure) { try state.withLock { (state) throws(IOFailure) in try open(&state, after: committed) } } catch {
            throw error.sqlError
        }
    }

    private func open(_ state: inout State, after committed: Epoch) throws(IOFailure) {
        state = State()
        guard files.exists(directory) else {
            state.isRead = true
            return
        }
        let numbers = try files.list(directory).compactMap { $0.hasPrefix("refused-") ? UInt64($0.dropFirst(8)) : nil }.sorted()
        for number in numbers {
            let file = try files.open(path(number), .readWrite)
            var part = Part(number: number, file: file, byteCount: 0, entryCount: 0, droppedCount: 0)
            Self.forEach(try file.readAll()) { entry, end in
                if entry.reason == Self.droppedReason, entry.epoch == .zero {
                    part.droppedCount = Int64(entry.row) ?? 0
                } else {
                    guard entry.epoch <= committed else { return false }
                    part.entryCount += 1
                }
                part.byteCount = end
                return true
            }
            if try file.size() > part.byteCount { try file.truncate(to: part.byteCount) }
            state.parts.append(part)
        }
        state.isUnsynced = true
        state.isRead = true
    }

    private func path(_ number: UInt64) -> String { "\(directory)/refused-\(number)" }

    private static func encode(_ entry: RefusedEntry) -> [UInt8] {
        var body = RecordWriter()
        body.put(entry.epoch.number)
        body.put(entry.refusedAtMicros)
        body.put(entry.column ?? "")
        body.put(entry.reason)
        body.put(entry.row)
        var frame = RecordWriter()
        frame.put(UInt32(body.bytes.count))
        frame.put(checksum(body.bytes))
        return frame.bytes + body.bytes
    }

    /// Entries with where they end, up to the first that is not whole, or that `body` wants no more after.
    private static func forEach(_ bytes: [UInt8], _ body: (RefusedEntry, Int) -> Bool) {
        var reader = RecordReader(bytes[...])
        var end = 0
        while let (entry, count) = try? entry(&reader) {
            end += count
            if !body(entry, end) { return }
        }
    }

    private static func entry(_ reader: inout RecordReader) throws(RecordDamage) -> (RefusedEntry, Int) {
        let count = Int(try reader.get(UInt32.self))
        let sum = try reader.get(UInt32.self)
        let part = try reader.take(count)
        guard checksum(part) == sum else { throw RecordDamage() }
        var body = RecordReader(part)
        let (epoch, micros) = (Epoch(try body.getNumber()), try body.get(Int64.self))
        let (column, reason, row) = (try body.getText(), try body.getText(), try body.getText())
        return (
            RefusedEntry(epoch: epoch, refusedAtMicros: micros, column: column.isEmpty ? nil : column, reason: reason, row: row), count + 8
        )
    }

    /// Adds rows of an epoch; durable with the next `sync`.
    package func append(_ entries: [RefusedEntry]) throws(SQLError) {
        do throws(IOFailure) {
            try state.withLock { (state) throws(IOFailure) in
                for entry in entries { try append(entry, &state) }
            }
        } catch { throw error.sqlError }
    }

    private func append(_ entry: RefusedEntry, _ state: inout State) throws(IOFailure) {
        var entry = entry
        // What an entry takes is bounded, too.
        entry.row = String(decoding: entry.row.utf8.prefix(Self.rowBytesMax), as: UTF8.self)
        let bytes = Self.encode(entry)
        if state.parts.last.map({ $0.byteCount + bytes.count > byteCountMax / 2 }) ?? true { try begin(&state) }
        let last = state.parts.count - 1
        try state.parts[last].file.write(bytes, at: state.parts[last].byteCount)
        state.parts[last].byteCount += bytes.count
        state.parts[last].entryCount += 1
        state.isUnsynced = true
    }

    private static let rowBytesMax = 64 << 10

    /// A new file; of more than two the oldest goes.
    private func begin(_ state: inout State) throws(IOFailure) {
        try files.createDirectory(directory)
        if let last = state.parts.last { try last.file.sync() }
        let number = (state.parts.last?.number ?? 0) + 1
        var dropped = state.parts.last?.droppedCount ?? 0
        if state.parts.count == 2 { dropped += state.parts[0].entryCount }
        let file = try files.open(path(number), .create)
        let first = Self.encode(RefusedEntry(epoch: .zero, refusedAtMicros: 0, column: nil, reason: Self.droppedReason, row: "\(dropped)"))
        try file.write(first)
        try file.sync()
        try files.syncChain(directory)
        state.parts.append(Part(number: number, file: file, byteCount: first.count, entryCount: 0, droppedCount: dropped))
        guard state.parts.count > 2 else { return }
        let oldest = state.parts.removeFirst()
        try? files.remove(path(oldest.number))  // It would be taken up at the next start, its rows counted twice as dropped.
    }

    /// Before the commit of their epoch.
    package func sync() throws(SQLError) {
        do throws(IOFailure) {
            try state.withLock { (state) throws(IOFailure) in
                guard state.isUnsynced, let last = state.parts.last else { return }
                try last.file.sync()
                state.isUnsynced = false
            }
        } catch { throw error.sqlError }
    }

    /// All that is kept, oldest first, and how many are not.
    package func entries() throws(SQLError) -> (entries: [RefusedEntry], droppedCount: Int64) {
        do throws(IOFailure) {
            return try state.withLock { (state) throws(IOFailure) in
                if !state.isRead { try open(&state, after: Epoch(1 << 62)) }
                var found: [RefusedEntry] = []
                for part in state.parts {
                    Self.forEach(try part.file.readAll()) { entry, end in
                        if entry.epoch > .zero { found.append(entry) }
                        return end < part.byteCount
                    }
                }
                return (found, state.parts.last?.droppedCount ?? 0)
            }
        } catch { throw error.sqlError }
    }
}
