package import MillBase
package import MillColumnar

/// A kind of source: resolves the options of CREATE SOURCE once, then hands out splits and their readers.
///
/// The dataflow and the engine know this protocol and never a connector. Methods may block (they are called off the
/// workers) unless they say otherwise.
package protocol SourceConnector: Sendable {
    /// Whether its splits end. A source that is not bounded is never read whole, not even while it has no split yet.
    var isBounded: Bool { get }
    /// How many records of a split lie between two positions, for lag; nil where that is not known, as of bytes of a file.
    func recordCount(_ split: SourceSplit, from start: SplitOffset, to end: SplitOffset) -> Int64?
    /// What is wrong with the connection now, for SHOW JOBS; nil when all is well.
    var status: String? { get }
    /// What tells the source from another that is made later under its name, such as a topic's id; nil while that is not known.
    var incarnation: String? { get }
    /// Before anything is asked: what `incarnation` was when the source was read last. If it is another now, every question is answered by 55000.
    func expect(incarnation: String)
    /// Before anything is asked: the splits of which something was read before, or that the source began with.
    func expect(_ splits: [SourceSplit])
    /// What columns its records have, for a source that is declared without; nil when they do not say.
    func columns() throws(SQLError) -> [Field]?
    /// The splits now, each with the offset where the source begins: `scan.startup.mode` is resolved here, once, and the
    /// answer is stored as the source's origin. A topic that does not exist yet gives no splits or is created.
    func resolveOrigin() throws(SQLError) -> [SourceSplit: SplitOffset]
    /// Splits that exist now; one that is not in the origin starts at its beginning.
    func currentSplits() throws(SQLError) -> [SourceSplit]
    /// The end of each split now: what SELECT without a running job reads up to, and what FLUSH waits for.
    func highWatermarks(_ splits: [SourceSplit]) throws(SQLError) -> [SourceSplit: SplitOffset]
    /// Opens a reader that starts at `offset`. `onData` may be called from any thread whenever a poll that found nothing
    /// would now find something; it must return at once.
    func openReader(_ split: SourceSplit, at offset: SplitOffset, onData: @escaping @Sendable () -> Void) throws(SQLError) -> any SplitReader
    /// Calls `body`, from any thread, whenever `currentSplits` may have another answer, for as long as what it returns is held. nil
    /// when the connector is not told, and has to be asked.
    func onSplitChange(_ body: @escaping @Sendable () -> Void) -> (any Sendable)?
}

extension SourceConnector {
    /// Where positions number records.
    package func recordCount(_ split: SourceSplit, from start: SplitOffset, to end: SplitOffset) -> Int64? { max(end.position - start.position, 0) }
    package func columns() throws(SQLError) -> [Field]? { nil }
    package var status: String? { nil }
    package var incarnation: String? { nil }
    package func expect(incarnation: String) {}
    package func expect(_ splits: [SourceSplit]) {}
    package func onSplitChange(_ body: @escaping @Sendable () -> Void) -> (any Sendable)? { nil }
}

/// Reads one split. Owned by one worker thread; `poll` never blocks.
package protocol SplitReader: AnyObject {
    /// Up to `maxRecords` records and about `maxBytes`, or nil while there is nothing. A bounded split that is done says
    /// so by `isFinished`.
    func poll(maxRecords: Int, maxBytes: Int) throws(SQLError) -> RawChunk?
    /// A bounded split (a file) has given its last record.
    var isFinished: Bool { get }
    /// The place that those who read it want to reach next, nil when any will do; told before each poll. A reader that has several ways to the
    /// same rows, such as a newer state of a table in place of one and what was added to it, takes one that leads there.
    func aim(at end: SplitOffset?)
    /// The highest known end of the split, for lag; nil when not known yet.
    var highWatermark: SplitOffset? { get }
    func close()
}

extension SplitReader {
    package func aim(at end: SplitOffset?) {}
}

extension SQLError {
    /// Whether what a connector threw may pass by itself: the broker or disk is away, or has not yet got what was asked for. Anything else
    /// stays: records that are gone or damaged, a topic that was made anew.
    package var mayPass: Bool { ["08", "28", "53", "58"].contains(sqlState.code.prefix(2)) || sqlState == .undefinedObject }
}

/// Bytes to columns. Owned by one worker; one call per chunk.
package protocol Decoder: AnyObject {
    /// Decodes all records of `chunk`: one row per accepted record in order, of the columns the decoder was made for, and
    /// what was rejected. `columns` of the batches follow the order asked for at creation.
    /// - Throws: what is wrong with the whole split, such as a file that cannot be read. Never of one record.
    func decode(_ chunk: RawChunk) throws(SQLError) -> DecodedChunk
    /// Whether chunks may be decoded in any order, by decoders of several workers, but for those that `mayStop`.
    var takesAnyOrder: Bool { get }
    /// Whether `decode` may throw on this chunk.
    func mayStop(at chunk: RawChunk) -> Bool
}

extension Decoder {
    package var takesAnyOrder: Bool { false }
    package func mayStop(at chunk: RawChunk) -> Bool { true }
}

/// What a decoder makes of one chunk.
package struct DecodedChunk: Sendable {
    /// At most `Limits.batchRowsMax` rows each; weights nil.
    package var batches: [DeltaBatch]
    package var rejects: [Reject]

    package init(batches: [DeltaBatch], rejects: [Reject]) {
        self.batches = batches
        self.rejects = rejects
    }
}

/// A record, or one value of it, that could not be accepted.
package struct Reject: Sendable, Hashable {
    /// The record's position in its split.
    package var position: Int64
    /// nil when the whole record was refused; else the declared column whose value became NULL.
    package var column: String?
    /// The record's bytes, or the value's.
    package var raw: [UInt8]
    package var reason: String

    package init(position: Int64, column: String?, raw: [UInt8], reason: String) {
        self.position = position
        self.column = column
        self.raw = raw
        self.reason = reason
    }
}
