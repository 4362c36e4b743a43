/// Bids of the Nexmark benchmark with a number in each: `{"sequence":1000000000000,"auction":...`, about 270 bytes.
///
/// A pool is made once and used round and round, so that making a record costs the digits of its number: what makes load should
/// take little of the machine that it loads. Numbers have 13 digits, so that they lie at one place. Owned by one thread.
final class NumberedBids {
    static let firstNumber: Int64 = 1_000_000_000_000
    static let columns = "sequence BIGINT, " + NexmarkQuery.columns(of: .bid)
    private static let prefix: StaticString = "{\"sequence\":"
    private static let digits = 13

    private let writer = RecordWriter(capacity: 4 << 20)
    /// Where each record starts, and the end of the last.
    private var starts: [Int] = []

    init(seed: UInt64, poolCount: Int = 8192) {
        let generator = NexmarkGenerator(seed: seed, events: poolCount * 2)
        generator.forEach { _, kind, record in
            guard kind == .bid, starts.count < poolCount else { return }
            starts.append(writer.count)
            writer.reserve(NexmarkGenerator.recordBytesMax)
            writer.put(Self.prefix)
            writer.putDigits(0, Self.digits)
            writer.put(byte: UInt8(ascii: ","))
            // Without its opening brace.
            writer.put(record.baseAddress?.advanced(by: 1).assumingMemoryBound(to: UInt8.self), record.count - 1)
        }
        starts.append(writer.count)
    }

    /// The record of event `number`, counted from 0; its bytes are good until the pool comes round to it again.
    func record(_ number: Int) -> UnsafeMutableRawBufferPointer {
        let place = number % (starts.count - 1)
        let start = writer.start + starts[place]
        var left = Self.firstNumber + Int64(number)
        var at = Self.prefix.utf8CodeUnitCount + Self.digits
        while at > Self.prefix.utf8CodeUnitCount {
            at -= 1
            start[at] = 48 + UInt8(truncatingIfNeeded: left % 10)
            left /= 10
        }
        return UnsafeMutableRawBufferPointer(start: start, count: starts[place + 1] - starts[place])
    }
}
