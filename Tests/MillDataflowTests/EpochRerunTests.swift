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

    /// Reads and closes until nothing is left.
    /// - Returns: where each epoch ended that was run again, and what was closed by after it.
    private func run(_ epochs: [EpochPosition]) -> [(ends: [SourceSplit: SplitOffset], now: Int64?)] {
        var rerun = EpochRerun(epochs)
        rerun.join([key])
        rerun.startOnce(nowNanos: 0)
        var done: [(ends: [SourceSplit: SplitOffset], now: Int64?)] = []
        while rerun.isActive {
            var report = EpochReport()
            let ends = rerun.ends[source] ?? [:]
            report.offsets = [source: ends]
            let steps = rerun.note(report, injected: .zero, nowNanos: 0, idleNanos: 1)
            if let steps { done.append((ends, steps[key]?.now)) }
        }
        return done
    }

    @Test func everyEpochEndsWhereItDid() {
        let done = run([
            epoch(5, [first: SplitOffset(3)]), epoch(6, [first: SplitOffset(4)], WatermarkStep(passed: nil, now: 10)), epoch(7),
            epoch(8, [first: SplitOffset(6)], WatermarkStep(passed: 10, now: 20)), epoch(9, [:], WatermarkStep(passed: 20, now: 20)),
        ])
        #expect(done.map(\.ends) == [[first: SplitOffset(4)], [first: SplitOffset(6)], [first: SplitOffset(6)]])
        #expect(done.map(\.now) == [10, 20, 20])
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
