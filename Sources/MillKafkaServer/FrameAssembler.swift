import MillKafkaWire
import NIOCore

/// Cuts a connection's bytes into requests: a four-byte length, then so many bytes.
///
/// Each request gets a block of its own, in which its records stay until they are written to the log. The block doubles as the
/// request's bytes arrive, up to its length and no further: a length that is only announced reserves next to nothing.
struct FrameAssembler {
    enum Fault: Error, Equatable {
        case impossibleLength(Int32)
    }

    private static let firstBytes = 64 << 10

    private let bytesMax: Int
    private var lengthBytes = 0
    private var length: UInt32 = 0
    private var frame: WireBuffer?

    /// Memory held for the request that is coming in.
    var reservedBytes: Int { frame?.capacity ?? 0 }

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    /// Takes all of `buffer` and calls `body` with each request that it completes.
    mutating func feed(_ buffer: ByteBuffer, _ body: (WireBytes) throws -> Void) throws {
        try buffer.withUnsafeReadableBytes { bytes in
            var rest = bytes
            while !rest.isEmpty {
                if var frame {
                    let count = min(rest.count, Int(length) - frame.count)
                    if frame.capacity - frame.count < count {
                        let larger = WireBuffer(capacity: min(Int(length), max(2 * frame.capacity, frame.count + count)))
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
                    frame = WireBuffer(capacity: min(Int(length), Self.firstBytes))
                }
            }
        }
    }
}
