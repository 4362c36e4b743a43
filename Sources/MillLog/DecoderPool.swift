package import MillKafkaWire
import Synchronization

/// Decoders that no thread is using.
package final class DecoderPool: Sendable {
    /// Sendable because a decoder is in the list or with one thread, never both.
    private struct Box: @unchecked Sendable { var decoder: RecordDecoder }
    private let free = Mutex<[Box]>([])

    package init() {}

    /// `limit` is the most that a batch may decompress to; it is the same for all users of a pool.
    package func with<R>(limit: Int, _ body: (RecordDecoder) throws(RecordError) -> R) throws(RecordError) -> R {
        let box = free.withLock { $0.popLast() } ?? Box(decoder: RecordDecoder(decompressedBytesMax: limit))
        defer { free.withLock { if $0.count < 4 { $0.append(box) } } }
        return try body(box.decoder)
    }
}
