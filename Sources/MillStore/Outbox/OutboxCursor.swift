package import MillBase
package import MillColumnar
import MillIO
import Synchronization

/// Reads frames in the order of their positions. Owned by one thread.
package final class OutboxCursor {
    private let outbox: Outbox
    package private(set) var position: UInt64
    /// Of the open segment.
    private var number: UInt64?
    private var file: (any File)?

    package init(_ outbox: Outbox) {
        self.outbox = outbox
        position = outbox.progress.start
    }

    /// - Throws: XX001 for a segment that is gone or not whole, 58030.
    package func frame(at position: UInt64) throws(SQLError) -> OutboxFrame {
        let bytes = try read(position, OutboxFrame.headerBytes)
        do throws(RecordDamage) { return try OutboxFrame(bytes, at: position) } catch { throw damage(position) }
    }

    package func batch(of frame: OutboxFrame, types: [SQLType]) throws(SQLError) -> DeltaBatch? {
        let bytes = try read(frame.position, frame.byteCount)
        do throws(RecordDamage) { return try frame.batch(of: bytes, types: types) } catch { throw damage(frame.position) }
    }

    /// To where an epoch begins that was passed.
    package func goBack(to position: UInt64) { self.position = position }

    /// The frames of the epoch at the position, up to `end`, in the order in which they are sent; goes behind them.
    package func nextEpoch(before end: UInt64) throws(SQLError) -> [OutboxFrame] {
        var frames: [OutboxFrame] = []
        var place = try start(position)
        while place < end {
            let frame = try frame(at: place)
            if let first = frames.first, first.epoch != frame.epoch { break }
            guard frame.end <= end else { throw damage(place) }
            frames.append(frame)
            place = frame.end < end ? try start(frame.end) : frame.end
        }
        position = place
        let order: [OutboxFrame.Kind] = [.clear, .takenBack, .added]
        return order.flatMap { kind in frames.filter { $0.kind == kind } }
    }

    /// The first position at or behind this one that a segment has: positions that came to nothing are passed over.
    private func start(_ position: UInt64) throws(SQLError) -> UInt64 {
        let next = outbox.state.withLock { state in state.segments.first { $0.place.end > position }?.place.start }
        guard let next else { throw damage(position) }
        return max(position, next)
    }

    private func read(_ position: UInt64, _ count: Int) throws(SQLError) -> [UInt8] {
        // Looked up each time: what no checkpoint has may have been cut off, and its positions given to other frames.
        let found = outbox.state.withLock { state in state.segments.first { $0.place.start <= position && position < $0.place.end }?.place }
        guard let found else { throw damage(position) }
        if number != found.number { (number, file) = (found.number, nil) }
        do throws(IOFailure) {
            if file == nil { file = try outbox.files.open(outbox.path(found.number), .read) }
            var bytes = [UInt8](repeating: 0, count: count)
            if let file, try file.read(at: Int(position - found.start), into: &bytes, count: count) == count { return bytes }
        } catch {
            file = nil
            // Nobody else removes files here.
            if outbox.files.exists(outbox.path(found.number)) { throw error.sqlError }
        }
        throw damage(position)
    }

    private func damage(_ position: UInt64) -> SQLError {
        SQLError(
            .dataCorrupted, "its outbox in \"\(outbox.directory)\" is damaged at position \(position)",
            hint: "Restore the data directory from a copy, or drop the sink and create it again.")
    }
}
