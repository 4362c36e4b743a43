import MillKafkaWire
import NIOCore

/// Cuts a connection's bytes into requests: a four-byte length, then so many bytes.
///
/// Each request gets a block of its own, in which its records stay until they are written to the log and no reader keeps up with them any
/// more. The block doubles as the request's bytes arrive, up to its length: a length that is only announced reserves next to nothing.
/// Blocks that earlier requests have left are used again.
struct FrameAssembler {
    enum Fault: Error, Equatable {
        case impossibleLength(Int32)
    }

    private static let firstBytes = 64 << 10

    private let bytesMax: Int
    private let pool: WireBufferPool
    private var lengthBytes = 0
    private var length: UInt32 = 0
    private var frame: WireBuffer?

    /// Memory held for the request that is coming in.
    var reservedBytes: Int { frame?.capacity ?? 0 }

    init(bytesMax: Int, pool: WireBufferPool) {
        self.bytesMax = bytesMax
        self.pool = pool
    }

    /// Takes all of `buffer` and calls `body` with each request that it completes.
    mutating func feed(_ buffer: ByteBuffer, _ body: (WireBytes) throws -> Void) throws {
        try buffer.withUnsafeReadableBytes { bytes in
            var rest = bytes
            while !rest.isEmpty {
                if var frame {
                    let count = min(rest.count, Int(length) - frame.count)
                    if frame.capacity - frame.count < count {
                        let larger = pool.buffer(capacity: min(Int(length), max(2 * frame.capacity, frame.count + count)))
                        frame.bytes.withUnsafeBytes { larger.append($0) }
                        frame = larger
                        self.frame = larger
                    }
                    frame.append(UnsafeRawBufferPointer(rebasing: rest.prefix(count)))
                    rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
                    guard frame.count == Int(length) else { continue }
                    self.frame = nil
                    (length, lengthBytes) = (0, 0)
                    frame.setCount(frame.count)
                    try body(frame.bytes)
                } else {
                    length = length << 8 | UInt32(rest[0])
                    lengthBytes += 1
                    rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst())
                    guard lengthBytes == 4 else { continue }
                    // The shortest request is a header without a client id's content.
                    guard length >= 8, length <= bytesMax else { throw Fault.impossibleLength(Int32(bitPattern: length)) }
                    frame = pool.kept(capacity: Int(length)) ?? pool.buffer(capacity: min(Int(length), Self.firstBytes))
                }
            }
        }
    }
}
