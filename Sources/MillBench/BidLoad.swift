import MillBase
import MillIO

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Numbered bids into topic `bid` over the Kafka wire: as fast as they are taken, or evenly at a rate. One thread.
final class BidLoad {
    private let bids: NumberedBids
    private let producer: KafkaProducer
    private let clock: any Clock
    /// Events handed to the producer so far; the next one's number.
    private(set) var produced = 0

    /// At an even rate it looks this often what is due.
    private static let tickMicros: UInt32 = 500

    init(_ servers: String, seed: UInt64, clock: any Clock) throws {
        bids = NumberedBids(seed: seed)
        producer = try KafkaProducer(servers, topic: "bid", properties: ["linger.ms": "1", "socket.nagle.disable": "true"])
        self.clock = clock
    }

    /// Hands over the next `count` events.
    func produce(_ count: Int) throws {
        var left = count
        while left > 0 {
            let part = min(left, KafkaProducer.recordsMax)
            try producer.produce(part) { bids.record(produced + $0) }
            produced += part
            left -= part
        }
    }

    /// As fast as they are taken; returns when the broker has acknowledged all.
    func flood(seconds: Double) throws {
        let end = clock.monotonicNanos + UInt64(seconds * 1e9)
        while clock.monotonicNanos < end { try produce(KafkaProducer.recordsMax) }
        try producer.flush()
    }

    /// When the events of an even load are due.
    struct Schedule {
        let startNanos: UInt64
        /// Number of the first event.
        let first: Int
        let rate: Int

        /// Monotonic nanoseconds.
        func dueNanos(_ event: Int) -> UInt64 { startNanos + UInt64(Double(event - first) * 1e9 / Double(rate)) }
        /// The event after the last one that is due.
        func end(at nanos: UInt64) -> Int { first + Int(Double(nanos - startNanos) * Double(rate) / 1e9) + 1 }
    }

    /// A schedule that begins now with the next event.
    func schedule(rate: Int) -> Schedule { Schedule(startNanos: clock.monotonicNanos, first: produced, rate: rate) }

    /// Hands over every event up to `end` when it is due. Returns how late the oldest event of each tick was, in microseconds.
    func produce(until end: Int, by schedule: Schedule) throws -> [UInt32] {
        var late: [UInt32] = []
        while produced < end {
            let now = clock.monotonicNanos
            let due = min(end, schedule.end(at: now))
            if due > produced {
                late.append(UInt32(clamping: (now - schedule.dueNanos(produced)) / 1000))
                try produce(due - produced)
            }
            usleep(Self.tickMicros)
        }
        return late
    }
}
