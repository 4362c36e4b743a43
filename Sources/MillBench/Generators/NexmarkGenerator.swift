#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Events of the Nexmark benchmark (Tucker, Tufte, Papadimos, Maier 2002, with the fields and proportions that Beam, Flink and
/// RisingWave use): of 50 events one is a person, three are auctions, 46 are bids.
///
/// Event `n` is a function of the seed and `n` alone; its time is the start plus `n` / rate. The usual skew: half of the bids go to
/// the current hot auction (one in a hundred), three quarters come from the current hot bidder, three quarters of the auctions are by
/// the current hot seller; 100 auctions are open, 1000 people active; prices run log-uniformly from 100 to 100,000,000; half of the
/// bids come over one of four hot channels, the rest over one of 10,000. Records have about 200 (person), 500 (auction) and 100 (bid)
/// bytes of fields before names and quotes.
///
/// Every record is one flat JSON object with Nexmark's field names; times are ISO 8601 in milliseconds without a zone.
package struct NexmarkGenerator: Sendable {
    package enum Kind: Int, CaseIterable, Sendable, Hashable {
        case person, auction, bid

        package var name: String {
            switch self {
            case .person: "person"
            case .auction: "auction"
            case .bid: "bid"
            }
        }
    }

    package let seed: UInt64
    package let events: Int
    /// Events a second of event time.
    package let rate: Double
    /// Time of event 0, microseconds since 1970.
    package let startMicros: Int64
    let strings: NexmarkStrings

    static let personProportion = 1
    static let auctionProportion = 3
    static let totalProportion = 50
    static let firstID = 1000
    static let hotSpan = 100
    static let auctionsInFlight = 100
    static let activePeople = 1000
    /// Ids may lead the newest one by this: a bid may come before its auction.
    static let idLead = 10
    static let firstCategory = 10
    static let categories = 5
    /// No record is longer.
    static let recordBytesMax = 2048

    /// - Parameter startMicros: 2026-01-01 unless told otherwise.
    package init(seed: UInt64 = 42, events: Int, rate: Double = 10_000, startMicros: Int64 = 1_767_225_600_000_000) {
        self.seed = seed
        self.events = events
        self.rate = rate > 0 ? rate : 10_000
        self.startMicros = startMicros
        strings = NexmarkStrings(seed: seed)
    }

    package func kind(of event: Int) -> Kind {
        let offset = event % Self.totalProportion
        if offset < Self.personProportion { return .person }
        return offset < Self.personProportion + Self.auctionProportion ? .auction : .bid
    }

    /// Microseconds since 1970, whole milliseconds.
    package func time(of event: Int) -> Int64 {
        let millis = Int64(Double(event) * 1000 / rate)
        return startMicros + millis * 1000
    }

    /// How many of the events are of a kind.
    package func count(of kind: Kind) -> Int {
        let (rounds, rest) = events.quotientAndRemainder(dividingBy: Self.totalProportion)
        let person = rounds * Self.personProportion + min(rest, Self.personProportion)
        let auction = rounds * Self.auctionProportion + min(max(rest - Self.personProportion, 0), Self.auctionProportion)
        return switch kind {
        case .person: person
        case .auction: auction
        case .bid: events - person - auction
        }
    }

    /// Calls `body` with every record in order, without a newline; the bytes are valid during the call.
    package func forEach(_ body: (_ event: Int, _ kind: Kind, _ record: UnsafeRawBufferPointer) throws -> Void) rethrows {
        let writer = RecordWriter()
        for event in 0..<max(events, 0) {
            writer.removeAll()
            let kind = write(event, to: writer)
            try body(event, kind, writer.bytes)
        }
    }

    // MARK: Ids

    /// The newest person when `event` happens, from 0.
    static func lastPerson(_ event: Int) -> Int {
        let (round, offset) = event.quotientAndRemainder(dividingBy: totalProportion)
        return round * personProportion + min(offset, personProportion - 1)
    }

    /// The newest auction, from 0; -1 before the first.
    static func lastAuction(_ event: Int) -> Int {
        let (round, offset) = event.quotientAndRemainder(dividingBy: totalProportion)
        if offset < personProportion { return round * auctionProportion - 1 }
        return round * auctionProportion + min(offset - personProportion, auctionProportion - 1)
    }

    /// One of the people active now, or of the next few.
    static func somePerson(_ event: Int, _ random: inout SeededRandom) -> Int {
        let people = lastPerson(event) + 1
        let active = min(people, activePeople)
        return people - active + random.below(active + idLead)
    }

    /// One of the auctions open now, or of the next few.
    static func someAuction(_ event: Int, _ random: inout SeededRandom) -> Int {
        let last = max(lastAuction(event), 0)
        let first = max(last - auctionsInFlight, 0)
        return first + random.below(last - first + 1 + idLead)
    }

    static func price(_ random: inout SeededRandom) -> Int { Int((pow(10, random.unit() * 6) * 100).rounded()) }
}
