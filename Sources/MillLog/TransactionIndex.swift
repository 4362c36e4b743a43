import MillKafkaWire

/// A transaction that was aborted in a partition: the records of its producer from its first one to its marker.
package struct AbortedTransaction: Sendable, Hashable {
    package var producerID: Int64
    package var firstOffset: Int64
    /// The marker's.
    package var lastOffset: Int64
    /// No transaction that ends after this one begins before.
    var stableOffset: Int64
}

/// A partition's transactions: which are open, so up to where readers of committed records may go, and which were aborted.
///
/// A transaction counts as open until its marker is below the high watermark; the marker itself is only known to hold then.
struct TransactionIndex: Sendable, Equatable {
    /// First offsets of transactions without a marker, by producer id.
    private(set) var open: [Int64: Int64] = [:]
    /// Those whose marker may not be durable yet.
    private var ending: [(first: Int64, marker: Int64)] = []
    /// Ascending by last offset.
    private(set) var aborted: [AbortedTransaction] = []

    static func == (a: TransactionIndex, b: TransactionIndex) -> Bool { a.open == b.open && a.aborted == b.aborted }

    /// Takes note of a batch that was appended.
    mutating func note(_ batch: RecordBatch) {
        guard batch.isTransactional else { return }
        guard batch.isControl else {
            if open[batch.producerID] == nil { open[batch.producerID] = batch.baseOffset }
            return
        }
        guard let marker = batch.marker, let first = open.removeValue(forKey: batch.producerID) else { return }
        ending.append((first, batch.baseOffset))
        if marker == .abort {
            let stable = open.values.min() ?? batch.nextOffset
            aborted.append(
                AbortedTransaction(producerID: batch.producerID, firstOffset: first, lastOffset: batch.baseOffset, stableOffset: stable))
        }
    }

    func isOpen(_ producerID: Int64) -> Bool { open[producerID] != nil }

    /// The offset that no open transaction lies below.
    mutating func lastStableOffset(highWatermark: Int64) -> Int64 {
        if open.isEmpty, ending.isEmpty { return highWatermark }
        ending.removeAll { $0.marker < highWatermark }
        return min(highWatermark, open.values.min() ?? .max, ending.lazy.map(\.first).min() ?? .max)
    }

    /// The aborted transactions with records in a range of offsets.
    func aborted(in range: Range<Int64>) -> [AbortedTransaction] {
        guard !aborted.isEmpty, !range.isEmpty else { return [] }
        var low = 0
        var high = aborted.count
        while low < high {
            let middle = (low + high) / 2
            if aborted[middle].lastOffset < range.lowerBound { low = middle + 1 } else { high = middle }
        }
        var found: [AbortedTransaction] = []
        for transaction in aborted[low...] {
            if transaction.firstOffset < range.upperBound { found.append(transaction) }
            if transaction.stableOffset >= range.upperBound { break }
        }
        return found
    }

    /// Forgets what ended before `offset`.
    mutating func removeAborted(before offset: Int64) { aborted.removeAll { $0.lastOffset < offset } }

    mutating func replaceAborted(_ aborted: [AbortedTransaction]) { self.aborted = aborted }

    // MARK: Format (docs/internals/log.md)

    /// The open transactions, and the aborted ones whose marker is in `range`.
    func write(to writer: inout WireWriter, abortedIn range: Range<Int64>) {
        writer.array(open.sorted { $0.key < $1.key }, flexible: false) { writer, transaction in
            writer.int64(transaction.key)
            writer.int64(transaction.value)
        }
        writer.array(aborted.filter { range.contains($0.lastOffset) }, flexible: false) { writer, transaction in
            writer.int64(transaction.producerID)
            writer.int64(transaction.firstOffset)
            writer.int64(transaction.lastOffset)
            writer.int64(transaction.stableOffset)
        }
    }

    init() {}

    init(from reader: inout WireReader) throws(WireError) {
        open = Dictionary(try reader.array(flexible: false) { reader throws(WireError) in (try reader.int64(), try reader.int64()) }) {
            _, new in new
        }
        aborted = try reader.array(flexible: false) { reader throws(WireError) in
            AbortedTransaction(
                producerID: try reader.int64(), firstOffset: try reader.int64(), lastOffset: try reader.int64(),
                stableOffset: try reader.int64())
        }
    }

    /// Goes on from a segment's index: its open transactions, and its aborted ones after those of the segments before.
    mutating func advance(to segment: TransactionIndex) {
        open = segment.open
        aborted += segment.aborted
    }
}
