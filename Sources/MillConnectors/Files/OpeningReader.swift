import MillBase
import MillConnectorKit
import Synchronization

/// A reader that takes time to be opened: until it is there it has nothing to give. Owned by one worker.
final class OpeningReader: SplitReader {
    /// Made on another thread, used by the worker from then on.
    private struct Opened: @unchecked Sendable {
        var result: Result<any SplitReader, SQLError>
    }

    private final class Slot: Sendable {
        let opened = Mutex<Opened?>(nil)
    }

    private let start: SplitOffset
    private let slot = Slot()
    private var reader: (any SplitReader)?

    init(
        at start: SplitOffset, gate: FetchGate, onData: @escaping @Sendable () -> Void,
        open: @escaping @Sendable () throws(SQLError) -> any SplitReader
    ) {
        self.start = start
        gate.run { [slot] failure in
            let opened: Opened
            if let failure {
                opened = Opened(result: .failure(failure))
            } else {
                do throws(SQLError) { opened = Opened(result: .success(try open())) } catch { opened = Opened(result: .failure(error)) }
            }
            slot.opened.withLock { $0 = opened }
            onData()
        }
    }

    /// Something is there to be read until it is known that there is not.
    var highWatermark: SplitOffset? { reader.map(\.highWatermark) ?? SplitOffset(start.position + 1) }
    var isFinished: Bool { reader?.isFinished ?? false }

    func poll(maxRecords: Int, maxBytes: Int) throws(SQLError) -> RawChunk? {
        if reader == nil {
            guard let opened = slot.opened.withLock({ $0 }) else { return nil }
            reader = try opened.result.get()
        }
        return try reader?.poll(maxRecords: maxRecords, maxBytes: maxBytes)
    }

    func aim(at end: SplitOffset?) { reader?.aim(at: end) }

    func close() { reader?.close() }
}
