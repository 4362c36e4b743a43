import MillBase
import MillColumnar
import MillConnectorKit
import MillIO
import MillTestKit
import Synchronization
import Testing

@testable import MillEngine
@testable import MillStore

/// One opening of a sink's target by itself.
@Suite struct DeliveryRunTests {
    private let files = MemoryFileSystem()
    private let target = ScriptedTarget()

    /// An outbox with one epoch of several frames, which a checkpoint holds.
    private func outbox() throws -> Outbox {
        let store = StateStore(directory: "/data/state", files: files)
        _ = try store.recover()
        let outbox = try Outbox(ObjectID(7), directory: "/data/outbox/7", files: files, note: nil)
        let epoch = Epoch(1)
        for id in 1...3 { outbox.append(.drawn("id:bigint; +1 \(id)"), .added, epoch: epoch, openedAtMicros: 1) }
        var checkpoint = Checkpoint(
            position: EpochPosition(epoch: epoch, openedAtMicros: 1, dmlPosition: .zero, offsets: [:]), workers: 1, tables: [], notes: [])
        checkpoint.outboxes = [outbox.seal(epoch, openedAtMicros: 1)]
        try store.write(checkpoint) { _ in false }
        return outbox
    }

    private func run(_ outbox: Outbox) throws(SQLError) -> DeliveryRun {
        let task = SinkTask(
            name: SinkName(String(repeating: "0", count: 32)), incarnation: "first", fields: [Field("id", .int64)], commitEvery: .zero)
        let writer = try target.open(sink: task.name, incarnation: "first")
        let refused = RefusedRowLog(directory: "/data/outbox/7", files: files)
        let run = DeliveryRun(
            outbox, refused, task, writer, Environment(files: files, clock: VirtualClock(), random: SeededSource(1)))
        try run.passOverWhatIsThere()
        return run
    }

    /// PAUSE in the middle of an epoch, and RESUME before anybody looks again.
    @Test(arguments: 1...5) func anEpochOfWhichAPartIsWrittenIsNotCommitted(stop: Int) throws {
        let outbox = try outbox()
        let cut = try run(outbox)
        var looks = 0
        let isAtEnd = try cut.writeDurable {
            looks += 1
            return looks != stop
        }
        try cut.commit()
        let whole = target.state.withLock { ($0.commits, $0.rows.count) }
        if isAtEnd {
            #expect(whole.0 == [1] && whole.1 == 3)
        } else {
            #expect(whole.0.isEmpty)
            let next = try run(outbox)
            #expect(try next.writeDurable { true })
            try next.commit()
            #expect(target.rows.count == 3)
        }
    }
}
