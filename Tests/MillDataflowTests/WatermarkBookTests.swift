import MillBase
import MillConnectorKit
import MillStore
import Testing

@testable import MillDataflow

/// How splits make a watermark.
@Suite struct WatermarkBookTests {
    private let key = WatermarkKey(job: ObjectID(7), source: ObjectID(3))
    private let first = SourceSplit(name: "0", topic: "t", partition: 0)
    private let second = SourceSplit(name: "1", topic: "t", partition: 1)

    private func progress(_ greatest: Int64?, at offset: Int64, _ state: SplitProgress.State = .atEnd) -> SplitProgress {
        SplitProgress(greatest: greatest, offset: SplitOffset(offset), state: state)
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

    /// It has records left, cannot be read, or is paused.
    @Test func aSplitThatIsBehindIsNotIdle() {
        var book = WatermarkBook(idleNanos: 100)
        for nanos in [0, 100, 200] as [UInt64] {
            book.note([key: [first: progress(50, at: 1), second: progress(20, at: 1, .behind)]], nowNanos: nanos)
        }
        #expect(book.steps[key]?.now == 20)
    }

    @Test func aFinishedSplitHoldsNothingBack() {
        var book = WatermarkBook(idleNanos: 100)
        book.note([key: [first: progress(50, at: 1), second: progress(20, at: 1, .finished)]], nowNanos: 0)
        #expect(book.steps[key]?.now == 50)
        book.note([key: [first: progress(60, at: 2, .finished), second: progress(20, at: 1, .finished)]], nowNanos: 1)
        #expect(book.steps[key]?.now == 60)
        #expect(!book.waitsForIdleness)
    }

    /// An epoch of an earlier process: rows are judged by what it had passed, and what it closed by comes when it is said.
    @Test func whatIsHeldClosesWhenItIsSaid() {
        var book = WatermarkBook(idleNanos: 100)
        book.note([key: [first: progress(50, at: 1)]], nowNanos: 0)
        #expect(book.open(holding: [key]) == [key: WatermarkStep()])
        book.note([key: [first: progress(90, at: 2)]], nowNanos: 1, holding: [key])
        #expect(book.open() == [key: WatermarkStep(passed: nil, now: 50)])
        book.note([key: [first: progress(90, at: 2)]], nowNanos: 2, holding: [key])
        book.set([key: WatermarkStep(passed: 50, now: 70)])
        #expect(book.open(holding: [key]) == [key: WatermarkStep(passed: 50, now: 50)])
        #expect(book.open() == [key: WatermarkStep(passed: 50, now: 70)])
        book.note([key: [first: progress(90, at: 2)]], nowNanos: 3)
        #expect(book.steps[key] == WatermarkStep(passed: 70, now: 90))
    }
}
