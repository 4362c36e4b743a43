import MillIO
import Testing

@testable import MillBench

@Suite struct GeneratorTests {
    private func records(_ generator: NexmarkGenerator) -> [(NexmarkGenerator.Kind, String)] {
        var found: [(NexmarkGenerator.Kind, String)] = []
        generator.forEach { _, kind, record in found.append((kind, String(decoding: record, as: UTF8.self))) }
        return found
    }

    @Test func theSameSeedGivesTheSameBytesAndAnotherDoesNot() {
        let one = records(NexmarkGenerator(seed: 7, events: 500)).map(\.1)
        #expect(one == records(NexmarkGenerator(seed: 7, events: 500)).map(\.1))
        #expect(one != records(NexmarkGenerator(seed: 8, events: 500)).map(\.1))
        // An event does not depend on how many follow it.
        #expect(Array(one[..<100]) == records(NexmarkGenerator(seed: 7, events: 100)).map(\.1))
    }

    @Test func personsAuctionsAndBidsAreOneToThreeTo46() {
        for events in [0, 1, 3, 49, 50, 1234] {
            let generator = NexmarkGenerator(events: events)
            let found = records(generator)
            for kind in NexmarkGenerator.Kind.allCases { #expect(found.count { $0.0 == kind } == generator.count(of: kind), "\(events) \(kind)") }
        }
        let generator = NexmarkGenerator(events: 5000)
        #expect(NexmarkGenerator.Kind.allCases.map(generator.count) == [100, 300, 4600])
    }

    @Test func recordsHaveNexmarksFieldsAndTimes() {
        let found = records(NexmarkGenerator(seed: 1, events: 100, rate: 1000))
        #expect(found[0].1.hasPrefix("{\"id\":1000,\"name\":\""))
        for name in ["email_address", "credit_card", "city", "state", "date_time", "extra"] { #expect(found[0].1.contains("\",\"\(name)\":\"")) }
        #expect(found[1].1.hasPrefix("{\"id\":1000,\"item_name\":\""))
        for name in ["description", "initial_bid", "reserve", "date_time", "expires", "seller", "category", "extra"] { #expect(found[1].1.contains(",\"\(name)\":")) }
        #expect(found[4].1.hasPrefix("{\"auction\":1"))
        for name in ["bidder", "price", "channel", "url", "date_time", "extra"] { #expect(found[4].1.contains(",\"\(name)\":")) }
        #expect(found[7].1.contains("\"date_time\":\"2026-01-01T00:00:00.007\""))
        #expect(found.map(\.1.utf8.count).max()! < NexmarkGenerator.recordBytesMax)
    }

    @Test func filesHoldAllRecordsInOrderWhateverTheParts() throws {
        let files = MemoryFiles()
        let generator = NexmarkGenerator(seed: 3, events: 2000)
        try generator.writeFiles(to: "one", files: files)
        try generator.writeFiles(to: "three", parts: 3, files: files)
        let all = records(generator)
        for kind in NexmarkGenerator.Kind.allCases {
            let expected = all.filter { $0.0 == kind }.map(\.1)
            #expect(files.lines("one/\(kind.name).jsonl") == expected)
            let parts = (0..<3).map { files.lines("three/\(kind.name)/part-\($0).jsonl") }
            #expect(parts.flatMap { $0 }.sorted() == expected.sorted())
            #expect(parts.allSatisfy { !$0.isEmpty })
        }
    }

    @Test func balloonPopsAreSeededAndPayTheFavouriteTwice() {
        let one = BalloonGenerator(seed: 5, rate: 10)
        let two = BalloonGenerator(seed: 5, rate: 10)
        var points: [String: Int] = [:]
        var favourites: [String: String] = [:]
        var last = Int64.min
        for _ in 0..<2000 {
            let pop = one.next()
            #expect(String(decoding: two.nextRecord().record, as: UTF8.self).contains("\"player\":\"\(pop.player)\",\"balloon_color\":\"\(pop.color)\",\"score\":\(pop.score),"))
            #expect(pop.micros >= last)
            last = pop.micros
            let base = pop.isFavorite ? pop.score / 2 : pop.score
            #expect(points[pop.color, default: base] == base)
            points[pop.color] = base
            if pop.isFavorite {
                #expect(favourites[pop.player, default: pop.color] == pop.color)
                favourites[pop.player] = pop.color
            }
        }
        #expect(last - 1_767_225_600_000_000 < 201_000_000)
        let three = BalloonGenerator(seed: 5, players: 1)
        let record = String(decoding: three.nextRecord().record, as: UTF8.self)
        #expect(record.contains("\"event_ts\":\"2026-01-01T00:00:00.0"))
        #expect(record.hasSuffix("Z\"}"))
    }
}
