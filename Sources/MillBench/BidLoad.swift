import MillBase
import MillIO

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Takes records for partition 0 of a topic, whose order they keep. One thread.
protocol BidProducer: AnyObject {
    /// Records in one call of `produce` at most.
    var recordsMax: Int { get }
    /// How often it is worth handing over what is due at an even rate.
    var tickMicros: UInt32 { get }
    /// Hands over `count` records, whose bytes are copied before this returns. Waits while too many are not acknowledged.
    func produce(_ count: Int, record: (Int) -> UnsafeMutableRawBufferPointer) throws
    /// Waits until the broker has acknowledged everything.
    func flush() throws
}

/// Numbered bids into topic `bid` over the Kafka wire: as fast as they are taken, or evenly at a rate. One thread.
final class BidLoad {
    private let bids: NumberedBids
    private let producer: any BidProducer
    private let clock: any Clock
    /// Events handed to the producer so far; the next one's number.
    private(set) var produced = 0

    init(_ servers: String, client: LatencyBench.Client, seed: UInt64, clock: any Clock) throws {
        bids = NumberedBids(seed: seed)
        producer =
            switch client {
            case .wire: try WireProducer(servers, topic: "bid", clock: clock)
            case .librdkafka: try KafkaProducer(servers, topic: "bid", properties: ["linger.ms": "1", "socket.nagle.disable": "true"])
            }
        self.clock = clock
    }

    /// Hands over the next `count` events.
    func produce(_ count: Int) throws {
        var left = count
        while left > 0 {
            let part = min(left, producer.recordsMax)
            try producer.produce(part) { bids.record(produced + $0) }
            produced += part
            left -= part
        }
    }

    /// As fast as they are taken; returns when the broker has acknowledged all.
    func flood(seconds: Double) throws {
        let end = clock.monotonicNanos + UInt64(seconds * 1e9)
        while clock.monotonicNanos < end { try produce(producer.recordsMax) }
        try flush()
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

    /// Waits until the broker has acknowledged everything.
    func flush() throws { try producer.flush() }

    /// Hands over every event up to `end` when it is due. Returns how late the oldest event of each tick had been handed over, with its
    /// tick's others, in microseconds.
    func produce(until end: Int, by schedule: Schedule) throws -> [UInt32] {
        var late: [UInt32] = []
        while produced < end {
            let due = min(end, schedule.end(at: clock.monotonicNanos))
            if due > produced {
                let oldest = schedule.dueNanos(produced)
                try produce(due - produced)
                late.append(UInt32(clamping: (clock.monotonicNanos - oldest) / 1000))
            }
            usleep(producer.tickMicros)
        }
        return late
    }
}
