import MillBase
package import MillConnectorKit

/// A place in a split, and the reader that goes on from there.
///
/// The reader is opened when it is first needed, and again after a failure, a pause, or a chunk of which only the beginning was
/// wanted: the place alone decides what is read next, so nothing is skipped or read twice however often that happens.
/// Confined to its worker.
final class SplitPosition {
    let split: SourceSplit
    private(set) var offset: SplitOffset
    /// Why it is not read; nil when it is, or could be.
    private(set) var failure: SQLError?
    private let open: (SplitOffset) throws(SQLError) -> any SplitReader
    private var reader: (any SplitReader)?
    private var wasFinished = false

    init(_ split: SourceSplit, at offset: SplitOffset, open: @escaping (SplitOffset) throws(SQLError) -> any SplitReader) {
        self.split = split
        self.offset = offset
        self.open = open
    }

    /// A bounded split has given its last record.
    var isFinished: Bool { reader?.isFinished ?? wasFinished }

    /// nil while it is not read.
    var highWatermark: SplitOffset? { reader?.highWatermark }

    /// Opens the reader now, so that what is wrong with it is known.
    func start() throws(SQLError) {
        if reader == nil { reader = try open(offset) }
    }

    /// The same, where what is wrong is its failure and nobody else's.
    func tryToStart() {
        do throws(SQLError) { try start() } catch { fail(error) }
    }

    /// The next records, none at or behind `end`; nil when there is nothing now.
    /// - Throws: what is wrong, again with every call until `retry`.
    func poll(before end: SplitOffset?, maxRecords: Int, maxBytes: Int) throws(SQLError) -> RawChunk? {
        if let failure { throw failure }
        do throws(SQLError) {
            try start()
            reader?.aim(at: end)
            // A record takes a position at least, so that mostly nothing behind the end is read.
            let records = end.map { min(maxRecords, Int(clamping: max($0.position - offset.position, 1))) } ?? maxRecords
            guard let chunk = try reader?.poll(maxRecords: records, maxBytes: maxBytes) else { return nil }
            guard let end, chunk.nextOffset > end else {
                offset = chunk.nextOffset
                return chunk
            }
            // The reader is behind what was wanted of it.
            close()
            offset = end
            return chunk.prefix(before: end)
        } catch {
            fail(error)
            throw error
        }
    }

    /// Goes to a place that another reader has brought all consumers to.
    func move(to offset: SplitOffset) {
        close()
        self.offset = offset
    }

    func fail(_ error: SQLError) {
        close()
        failure = error
    }

    /// After a failure the next poll tries again.
    func retry() { failure = nil }

    /// Ends reading; the place stays.
    func close() {
        wasFinished = isFinished
        reader?.close()
        reader = nil
    }
}

/// How far a job is in a split.
package struct SplitPlace: Sendable {
    /// What it gets next.
    package var offset: SplitOffset
    /// The split's end as its readers know it; nil while nobody reads it.
    package var end: SplitOffset?
}
