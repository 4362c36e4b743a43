import MillBase
import MillConnectorKit
import Testing

@testable import MillDataflow

/// How splits make a watermark.
@Suite struct WatermarkBookTests {
    private let key = WatermarkKey(job: ObjectID(7), source: ObjectID(3))
    private let first = SourceSplit(name: "0", topic: "t", partition: 0)
    private let second = SourceSplit(name: "1", topic: "t", partition: 1)

    private func progress(_ greatest: Int64?, at offset: Int64, isBehind: Bool = false) -> SplitProgress {
        SplitProgress(greatest: greatest, offset: SplitOffset(offset), isBehind: isBehind)
    }

    @Test func theSlowestSplitDecides() {
        var book = WatermarkBook(idleNanos: 100)
        book.note([key: [first: progress(50, at: 1), second: progress(nil, at: 0)]], nowNanos: 0)
        #expect(book.steps[key] == WatermarkStep())
        book.note([key: [first: progress(50, at: 1), second: progress(20, at: 1)]], nowNanos: 1)
        #expect(book.steps[key] == WatermarkStep(passed: nil, now: 20))
        #expect(book.isPending)
    }

    @Test func openingAnEpochPassesTheWatermark() {
        var book = WatermarkBook(idleNanos: 100)
        book.note([key: [first: progress(50, at: 1)]], nowNanos: 0)
        #expect(book.open() == [key: WatermarkStep(passed: nil, now: 50)])
        #expect(!book.isPending)
        book.note([key: [first: progress(60, at: 2)]], nowNanos: 1)
        #expect(book.open() == [key: WatermarkStep(passed: 50, now: 60)])
    }

    @Test func aWatermarkNeverGoesBack() {
        var book = WatermarkBook(idleNanos: 100)
        book.note([key: [first: progress(50, at: 1)]], nowNanos: 0)
        // A split that is found later.
        book.note([key: [first: progress(50, at: 1), second: progress(10, at: 1)]], nowNanos: 1)
        #expect(book.steps[key]?.now == 50)
    }

    @Test func anIdleSplitHoldsNothingBack() {
        var book = WatermarkBook(idleNanos: 100)
        book.note([key: [first: progress(50, at: 1), second: progress(20, at: 1)]], nowNanos: 0)
        #expect(book.waitsForIdleness)
        book.note([key: [first: progress(70, at: 2), second: progress(20, at: 1)]], nowNanos: 100)
        #expect(book.steps[key]?.now == 70)
        // It comes back with times of its own.
        book.note([key: [first: progress(90, at: 3), second: progress(75, at: 2)]], nowNanos: 101)
        #expect(book.steps[key]?.now == 75)
        // When all are idle nothing is held back.
        book.note([key: [first: progress(90, at: 3), second: progress(75, at: 2)]], nowNanos: 201)
        #expect(book.steps[key]?.now == 90)
        #expect(!book.waitsForIdleness)
    }

    @Test func aSplitWithRecordsLeftIsNotIdle() {
        var book = WatermarkBook(idleNanos: 100)
        for now in [0, 100, 200] as [UInt64] {
            book.note([key: [first: progress(50, at: 1), second: progress(20, at: 1, isBehind: true)]], nowNanos: now)
        }
        #expect(book.steps[key]?.now == 20)
    }
}
