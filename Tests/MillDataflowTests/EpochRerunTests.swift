import MillBase
import MillConnectorKit
import MillStore
import Testing

@testable import MillDataflow

struct EpochRerunTests {
    private let source = ObjectID(1)
    private let key = WatermarkKey(job: ObjectID(2), source: ObjectID(1))
    private let first = SourceSplit(name: "s/0", topic: "s", partition: 0)
    private let found = SourceSplit(name: "replayed", topic: "replayed", partition: -1)

    private func epoch(
        _ number: UInt64, _ offsets: [SourceSplit: SplitOffset] = [:], _ step: WatermarkStep? = nil
    ) -> EpochPosition {
        EpochPosition(
            epoch: Epoch(number), openedAtMicros: Int64(number), dmlPosition: .zero, offsets: offsets.isEmpty ? [:] : [source: offsets],
            watermarks: step.map { [key: $0] } ?? [:])
    }

    /// Where an epoch ended that was run again, what it closed by, and what is closed by after it.
    private typealias Done = (ends: [SourceSplit: SplitOffset], closed: Int64?, now: Int64?)

    /// Reads and closes until nothing is left.
    private func run(_ epochs: [EpochPosition]) -> [Done] {
        var rerun = EpochRerun(epochs)
        rerun.join([key])
        rerun.startOnce(nowNanos: 0)
        var done: [Done] = []
        var closed: Int64?
        while rerun.isActive {
            var report = EpochReport()
            let ends = rerun.ends[source] ?? [:]
            report.offsets = [source: ends]
            let isRead = !rerun.held.isEmpty
            let steps = rerun.note(report, injected: .zero, nowNanos: 0, idleNanos: 1)
            if isRead { closed = steps?[key]?.now } else { done.append((ends, closed, steps?[key]?.now)) }
        }
        return done
    }

    @Test func everyEpochEndsWhereItDid() {
        let done = run([
            epoch(5, [first: SplitOffset(3)]), epoch(6, [first: SplitOffset(4)], WatermarkStep(passed: nil, now: 10)), epoch(7),
            epoch(8, [first: SplitOffset(6)], WatermarkStep(passed: 10, now: 20)), epoch(9, [:], WatermarkStep(passed: 20, now: 20)),
        ])
        #expect(done.map(\.ends) == [[first: SplitOffset(4)], [first: SplitOffset(6)], [first: SplitOffset(6)]])
        #expect(done.map(\.closed) == [nil, 10, 20])
        #expect(done.map(\.now) == [10, 20, 20])
    }

    /// Were more taken for closed than is closed, what an operator gives out would be late for the next one.
    @Test func whatEpochsClosedThatAreMissingIsClosedByTheNextOne() {
        let done = run([epoch(5, [first: SplitOffset(3)]), epoch(9, [first: SplitOffset(6)], WatermarkStep(passed: 20, now: 30))])
        #expect(done.map(\.closed) == [20])
        #expect(done.map(\.now) == [30])
    }

    /// A process that ran epochs again noted a split that it had found, and ended; the next one closes as often as the first did.
    @Test func aSplitThatWasFoundIsNoRecordRead() {
        let done = run([
            epoch(5, [first: SplitOffset(3)]), epoch(6, [first: SplitOffset(4)], WatermarkStep(passed: nil, now: 10)),
            epoch(7, [found: SplitOffset(0)]), epoch(8, [first: SplitOffset(5), found: SplitOffset(1)]),
        ])
        #expect(done.map(\.ends) == [[first: SplitOffset(4)], [first: SplitOffset(5), found: SplitOffset(1)]])
    }
}
