import Testing

@testable import MillBench

@Suite struct LatencyTests {
    @Test func percentilesAreTheSmallestThatSoLargeAShareDoesNotExceed() {
        let hundred = Percentiles(micros: (1...100).map { $0 * 1000 }.shuffled())
        #expect(hundred.median == 50 && hundred.p99 == 99 && hundred.p999 == 100 && hundred.worst == 100)
        let one = Percentiles(micros: [1500])
        #expect(one.median == 1.5 && one.p99 == 1.5 && one.worst == 1.5)
        #expect(Percentiles(micros: []).worst == 0)
    }

    @Test func numberedBidsAreBidsWithTheirNumberWhicheverTurnOfThePoolItIs() {
        let bids = NumberedBids(seed: 7, poolCount: 10)
        let first = String(decoding: bids.record(3), as: UTF8.self)
        #expect(first.hasPrefix("{\"sequence\":1000000000003,\"auction\":"))
        #expect(first.hasSuffix("\"}"))
        let again = String(decoding: bids.record(1_234_567_893), as: UTF8.self)
        #expect(again == first.replacing("1000000000003", with: "1001234567893"))
        #expect(String(decoding: bids.record(4), as: UTF8.self).hasPrefix("{\"sequence\":1000000000004,"))
    }

    @Test func aScheduleSaysWhatIsDue() {
        let schedule = BidLoad.Schedule(startNanos: 1_000_000_000, first: 50, rate: 1000)
        #expect(schedule.dueNanos(50) == 1_000_000_000)
        #expect(schedule.dueNanos(1050) == 2_000_000_000)
        #expect(schedule.end(at: 1_000_000_000) == 51)
        #expect(schedule.end(at: 1_000_999_999) == 51)
        #expect(schedule.end(at: 1_001_000_000) == 52)
    }
}
