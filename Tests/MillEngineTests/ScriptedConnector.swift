import MillBase
import MillCatalog
import MillColumnar
import MillConnectorKit
import MillConnectors
import MillDataflow
import MillEngine
import MillIO
import MillText
import Synchronization

/// A source of JSON lines in memory that does what a test tells it; a record's position is its number in the split.
final class ScriptedConnector: SourceConnector {
    let isBounded: Bool
    struct State {
        var splits: [[String]] = [[]]
        var listeners: [@Sendable () -> Void] = []
        /// Ends that are told beyond what the readers give.
        var missing: Int64 = 0
        var status: String?
        /// What it is, and what it was told that it had been.
        var incarnation: String?
        var expected: String?
        /// Readers opened from now on fail when they get here.
        var failsAt: Int64?
        /// How they fail; damaged records when nil.
        var failure: SQLError?
        /// A poll that finds nothing.
        var onEmptyPoll: (@Sendable () -> Void)?
        /// Holds up the questions to the broker.
        var onQuestion: (@Sendable () -> Void)?
        /// Why no reader can be opened.
        var openError: SQLError?
        /// What questions to the broker are answered with.
        var questionError: SQLError?
        var emptyPolls = 0
    }

    let state = Mutex(State())

    init(isBounded: Bool = false, _ records: String...) {
        self.isBounded = isBounded
        state.withLock { $0.splits = [records] }
    }

    func change(_ body: @Sendable (inout State) -> Void) {
        let listeners = state.withLock { state in
            body(&state)
            return state.listeners
        }
        for listener in listeners { listener() }
    }

    private func split(_ index: Int) -> SourceSplit { SourceSplit(name: "s/\(index)", topic: "s", partition: Int32(index)) }

    var status: String? { state.withLock { $0.status } }
    var incarnation: String? { state.withLock { $0.incarnation } }
    func expect(incarnation: String) { state.withLock { $0.expected = incarnation } }

    func resolveOrigin() throws(SQLError) -> [SourceSplit: SplitOffset] {
        Dictionary(uniqueKeysWithValues: try currentSplits().map { ($0, SplitOffset(0)) })
    }

    func currentSplits() throws(SQLError) -> [SourceSplit] {
        state.withLock { $0.onQuestion }?()
        if let error = state.withLock({ $0.questionError }) { throw error }
        return state.withLock { $0.splits.indices }.map { split($0) }
    }

    func onSplitChange(_ body: @escaping @Sendable () -> Void) -> (any Sendable)? {
        state.withLock { $0.listeners.append(body) }
        return true
    }

    func highWatermarks(_ splits: [SourceSplit]) throws(SQLError) -> [SourceSplit: SplitOffset] {
        state.withLock { state in
            Dictionary(uniqueKeysWithValues: splits.map { ($0, SplitOffset(Int64(state.splits[Int($0.partition)].count) + state.missing)) })
        }
    }

    func openReader(
        _ split: SourceSplit, at offset: SplitOffset, onData: @escaping @Sendable () -> Void
    ) throws(SQLError) -> any SplitReader {
        let (failsAt, error) = state.withLock { state in
            state.listeners.append(onData)
            return (state.failsAt, state.openError)
        }
        if let error { throw error }
        return ScriptedReader(self, split, offset.position, failsAt: failsAt)
    }
}

private final class ScriptedReader: SplitReader {
    private let connector: ScriptedConnector
    private let split: SourceSplit
    private var position: Int64
    private let failsAt: Int64?

    init(_ connector: ScriptedConnector, _ split: SourceSplit, _ position: Int64, failsAt: Int64?) {
        self.connector = connector
        self.split = split
        self.position = position
        self.failsAt = failsAt
    }

    private final class Buffer {
        let bytes: UnsafeMutableRawPointer
        init(_ content: [UInt8]) {
            bytes = .allocate(byteCount: content.count + 64, alignment: 8)
            content.withUnsafeBytes { bytes.copyMemory(from: $0.baseAddress!, byteCount: content.count) }
        }
        deinit { bytes.deallocate() }
    }

    func poll(maxRecords: Int, maxBytes: Int) throws(SQLError) -> RawChunk? {
        let all = connector.state.withLock { $0.splits[Int(split.partition)] }
        // A few at a time, so that a reader can fail between two chunks.
        let end = min(Int64(all.count), failsAt ?? .max, position + Int64(min(maxRecords, 2)))
        guard end > position else {
            if let failsAt, position >= failsAt {
                throw connector.state.withLock { $0.failure } ?? SQLError(.dataCorrupted, "the record at \(failsAt) cannot be read")
            }
            let onEmptyPoll = connector.state.withLock { state in
                state.emptyPolls += 1
                return state.onEmptyPoll
            }
            onEmptyPoll?()
            return nil
        }
        var bytes: [UInt8] = []
        var starts: [UInt32] = []
        var lengths: [Int32] = []
        for record in all[Int(position)..<Int(end)] {
            starts.append(UInt32(bytes.count))
            lengths.append(Int32(record.utf8.count))
            bytes += Array(record.utf8) + [10]
        }
        let positions = Array(position..<end)
        position = end
        let buffer = Buffer(bytes)
        return RawChunk(
            bytes: UnsafeRawPointer(buffer.bytes), byteCount: bytes.count, starts: starts, lengths: lengths, positions: positions,
            timestamps: nil, nextOffset: SplitOffset(end), partition: split.partition, owner: buffer)
    }

    var isFinished: Bool { false }
    var highWatermark: SplitOffset? { try? connector.highWatermarks([split])[split] }
    func close() {}
}

/// Connectors by the name that CREATE SOURCE gives in `connector = '...'`.
struct ScriptedAssembly: SourceAssembly {
    var connectors: [String: ScriptedConnector]

    func source(
        name: String, options: [CatalogOption], fields: [Field], catalogs: @escaping IcebergSource.CatalogFinder
    ) throws(SQLError) -> AssembledSource {
        guard let connector = connectors[name] else { throw SQLError(.invalidParameterValue, "there is no connector \"\(name)\"") }
        return AssembledSource(
            connector: connector, makeDecoder: { columns in JSONRecordDecoder(fields: fields, wanted: columns.map { .field($0) }) })
    }
}
