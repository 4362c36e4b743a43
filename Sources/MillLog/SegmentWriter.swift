import MillIO
import MillKafkaWire

/// Writes a segment that nobody reads yet, in large pieces.
struct SegmentWriter {
    private static let pieceBytes = 1 << 20

    private let segment: Segment
    private let indexIntervalBytes: Int
    private var piece: [UInt8] = []
    private var written = 0
    private var failure: IOFailure?

    init(_ segment: Segment, indexIntervalBytes: Int) {
        self.segment = segment
        self.indexIntervalBytes = indexIntervalBytes
    }

    /// Adds a batch at its offset. A failure is kept for `finish`.
    mutating func add(_ batch: RecordBatch) {
        guard failure == nil else { return }
        segment.add(batch, indexIntervalBytes: indexIntervalBytes)
        batch.bytes.withUnsafeBytes { piece.append(contentsOf: $0) }
        if piece.count >= Self.pieceBytes { writePiece() }
    }

    /// Makes the segment's file durable.
    /// - Throws: `storage`, also of an earlier `add`.
    mutating func finish() throws(LogError) {
        writePiece()
        do throws(IOFailure) {
            if let failure { throw failure }
            try segment.file.sync()
        } catch {
            throw .storage(error)
        }
    }

    private mutating func writePiece() {
        guard failure == nil, !piece.isEmpty else { return }
        do throws(IOFailure) { try segment.file.writeAll(WireBytes(piece), at: written) } catch { failure = error }
        written += piece.count
        piece.removeAll(keepingCapacity: true)
    }
}
