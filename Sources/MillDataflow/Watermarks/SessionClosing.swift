import MillBase
import MillColumnar
import MillState
import MillStore

/// Which sessions close by the watermark of their time: those whose last row is more than the gap before it. A row at or after the
/// watermark can neither go on with them nor join them to another; a row before it is late.
package struct SessionClosing {
    var step = WatermarkStep()
    let emitsOnClose: Bool
    private let filter: LateFilter
    /// Sessions by a time at or before their last row: one that has gone on meanwhile is put back by its last.
    private var index = ClosingIndex()
    /// The sessions that close in this epoch, and how many of them are given out.
    private var closed: [RowNumber] = []
    private var position = 0

    init(filter: LateFilter, emitsOnClose: Bool) {
        self.filter = filter
        self.emitsOnClose = emitsOnClose
    }

    var byteCount: Int { index.byteCount }

    func onTime(_ batch: DeltaBatch) -> DeltaBatch? { filter.onTime(batch, step.passed) }

    mutating func begin(_ number: RowNumber, at time: Int64) {
        if time != SessionStore.timeless { index.add(number, at: time) }
    }

    /// Finds the sessions that close now.
    mutating func close(_ store: SessionStore, gapMicros: Int64) {
        guard let now = step.now else { return }
        let (limit, overflow) = now.subtractingReportingOverflow(gapMicros)
        guard !overflow else { return }
        for number in index.take(before: limit) where store.sessions.storedHash(number) != 0 {
            let session = store.session(number)
            guard session.isLive, session.first.pointee != SessionStore.timeless else { continue }
            if session.last.pointee < limit { closed.append(number) } else { index.add(number, at: session.last.pointee) }
        }
    }

    /// The next sessions to give out.
    mutating func nextPart() -> [RowNumber]? {
        guard position < closed.count else { return nil }
        defer { position = min(position + Limits.batchRowsMax, closed.count) }
        return Array(closed[position..<min(position + Limits.batchRowsMax, closed.count)])
    }

    mutating func removeClosed(_ remove: (RowNumber) -> Void) {
        for number in closed { remove(number) }
        closed.removeAll(keepingCapacity: closed.count < 1 << 16)
        position = 0
    }

    mutating func rebuild(_ store: SessionStore) {
        index.removeAll()
        store.sessions.forEachRow { number in begin(number, at: store.session(number).last.pointee) }
    }
}
