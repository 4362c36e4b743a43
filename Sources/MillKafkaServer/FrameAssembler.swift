import MillKafkaWire
import NIOCore

/// Cuts a connection's bytes into requests: a four-byte length, then so many bytes.
///
/// Each request is copied once, from the socket's buffer into a block of its own, in which its records stay until they are
/// written to the log.
struct FrameAssembler {
    enum Fault: Error, Equatable {
        case impossibleLength(Int32)
    }

    private let bytesMax: Int
    private var lengthBytes = 0
    private var length: UInt32 = 0
    private var frame: WireBuffer?

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    /// Takes all of `buffer` and calls `body` with each request that it completes.
    mutating func feed(_ buffer: ByteBuffer, _ body: (WireBytes) throws -> Void) throws {
        try buffer.withUnsafeReadableBytes { bytes in
            var rest = bytes
            while !rest.isEmpty {
                if let frame {
                    let count = min(rest.count, frame.capacity - frame.count)
                    frame.append(UnsafeRawBufferPointer(rebasing: rest.prefix(count)))
                    rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
                    guard frame.count == frame.capacity else { continue }
                    self.frame = nil
                    frame.setCount(frame.capacity)
                    try body(frame.bytes)
                } else {
                    length = length << 8 | UInt32(rest[0])
                    lengthBytes += 1
                    rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst())
                    guard lengthBytes == 4 else { continue }
                    // The shortest request is a header without a client id's content.
                    guard length >= 8, length <= bytesMax else { throw Fault.impossibleLength(Int32(bitPattern: length)) }
                    frame = WireBuffer(capacity: Int(length))
                    (length, lengthBytes) = (0, 0)
                }
            }
        }
    }
}
