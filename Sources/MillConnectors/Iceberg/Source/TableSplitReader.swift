import MillBase
import MillConnectorKit
import Synchronization

/// The rows of a table from a place on: what it has there, then what each snapshot adds. Owned by one worker.
///
/// Manifests are read on threads of the follower; what a chunk gives are ranges of rows, which `TableRowDecoder` reads.
final class TableSplitReader: SplitReader {
    /// A question what comes next, and its answer.
    private final class Question: Sendable {
        let aim: TablePosition?
        /// The follower's when it was asked.
        let version: Int
        let answer = Mutex<Result<TableFollower.Step?, SQLError>?>(nil)

        init(aim: TablePosition?, version: Int) { (self.aim, self.version) = (aim, version) }
    }

    private let follower: TableFollower
    private let split: SourceSplit
    private let onData: @Sendable () -> Void
    private var place: TablePosition
    private var listener: Int?
    /// Rows that are being given, and where those are who have read them all.
    private var step: TableFollower.Step?
    /// The next of them.
    private var nextRow: Int64 = 0
    private var aim: TablePosition?
    /// The last one; nil when there is to be another.
    private var question: Question?
    /// It has got no answer yet: what was known of the table before may have expired.
    private var isOpening = true

    init(_ follower: TableFollower, _ split: SourceSplit, at offset: SplitOffset, onData: @escaping @Sendable () -> Void) throws(SQLError) {
        self.follower = follower
        self.split = split
        self.onData = onData
        place = try TablePosition(offset)
        listener = follower.listen(onData)
    }

    let isFinished = false
    var highWatermark: SplitOffset? { follower.head?.end?.offset }

    func close() {
        if let listener { follower.stopListening(listener) }
        listener = nil
    }

    func aim(at end: SplitOffset?) { aim = end.flatMap { try? TablePosition($0) } }  // What is no place of the table leads nowhere.

    func poll(maxRecords: Int, maxBytes: Int) throws(SQLError) -> RawChunk? {
        if let step { return chunk(of: step, maxRecords, maxBytes) }
        guard let question else {
            ask()
            return nil
        }
        guard let result = question.answer.withLock({ $0 }) else { return nil }
        // What was not known when it was asked may be known now.
        guard question.aim == aim, let found = try result.get() else {
            if question.aim != aim || question.version != follower.version { ask() }
            return nil
        }
        step = found
        isOpening = false
        // In the middle of them when it was opened there.
        nextRow = place.row
        return chunk(of: found, maxRecords, maxBytes)
    }

    private func ask() {
        let (asked, follower, place, onData) = (Question(aim: aim, version: follower.version), follower, place, onData)
        let beginsAnew = isOpening && place.phase == .whole && place.row == 0
        question = asked
        follower.run { failure in
            let result = failure.map { .failure($0) } ?? Self.answer(asked, place, follower, beginsAnew: beginsAnew)
            asked.answer.withLock { $0 = result }
            onData()
        }
    }

    private static func answer(
        _ question: Question, _ place: TablePosition, _ follower: TableFollower, beginsAnew: Bool
    ) -> Result<TableFollower.Step?, SQLError> {
        if beginsAnew {
            do throws(SQLError) { try follower.refresh() } catch {
                // A catalog that is away is asked again by the follower, which says so.
                return error.mayPass ? .success(nil) : .failure(error)
            }
        }
        do throws(SQLError) { return .success(try follower.step(from: place, to: question.aim)) } catch { return .failure(error) }
    }

    private func chunk(of step: TableFollower.Step, _ maxRecords: Int, _ maxBytes: Int) -> RawChunk {
        guard let rows = step.rows, nextRow < rows.rowCount else {
            defer { go(to: step.end) }
            let here = place.offset.position
            return RawChunk(FileRows(file: follower, range: here..<here), byteCount: 0, partition: split.partition, nextOffset: step.end.offset)
        }
        let count = max(min(Int64(maxRecords), Int64(maxBytes) / rows.bytesPerRow, rows.rowCount - nextRow), 1)
        let start = rows.position.offset.position + nextRow
        nextRow += count
        let isLast = nextRow == rows.rowCount
        defer { if isLast { go(to: step.end) } }
        return RawChunk(
            FileRows(file: rows, range: start..<start + count),
            byteCount: Int(clamping: count.multipliedReportingOverflow(by: rows.bytesPerRow).partialValue), partition: split.partition,
            nextOffset: isLast ? step.end.offset : nil)
    }

    private func go(to end: TablePosition) {
        place = end
        step = nil
        question = nil
    }
}
