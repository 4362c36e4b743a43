import CZlib

/// The messages of clients from before Kafka 0.11 (formats 0 and 1), to and from record batches of format 2.
///
/// Place in the path: the Kafka server converts what Produce 0 to 2 brings before it is appended, and what Fetch 0 to 3 takes after it
/// was read; the log itself knows format 2 only. Both ways keep offsets' order, keys, values and times; format 0 has no times (-1 here),
/// and neither has headers.
///
/// Byte layout of a message (big-endian; https://kafka.apache.org/documentation/#messageset):
///
///     offset  size  field
///          0     8  offset
///          8     4  size                     bytes after this field
///         12     4  CRC-32 of everything from 16 on
///         16     1  magic, 0 or 1
///         17     1  attributes               bits 0-2 codec, 3 log append time
///         18     8  timestamp, milliseconds  only with magic 1
///                4  key length, -1 null, then the key
///                4  value length, -1 null, then the value
///
/// With a codec set, the value is a compressed run of messages without one. LZ4 in format 0 has a header checksum that covers the
/// frame's magic number too, which no other LZ4 writes; ours is made right before decompression.
package enum MessageSet {
    private static let crcOffset = 12
    private static let magicOffset = 16
    private static let smallestBytes = 26

    /// One message; the pointers go into the set's bytes or the decoder's scratch memory.
    private struct Message {
        var magic: Int8
        var compression: Compression
        var timestamp: Int64
        var key: UnsafeRawBufferPointer?
        var value: UnsafeRawBufferPointer?
    }

    /// Whether bytes that were produced are such messages, by the place where every format has its number.
    package static func isFormat(of bytes: WireBytes) -> Bool {
        bytes.count > magicOffset && (0...1).contains(bytes.integer(at: magicOffset, as: Int8.self))
    }

    // MARK: To a batch

    /// All messages as one batch, compressed by the first codec that was met.
    /// - Throws: `truncated`, `checksumMismatch`, `unsupportedMagic`, what decompressing throws; `decompressedTooLarge` when the messages
    ///   come to more than `bytesMax`.
    package static func batch(from bytes: WireBytes, _ decoder: RecordDecoder, bytesMax: Int) throws(RecordError) -> WireBytes {
        var builder = RecordBatchBuilder()
        var compression = Compression.none
        var rest = bytes.unsafeBytes
        while let message = try next(&rest, Int(builder.recordCount)) {
            if message.compression == .none {
                try append(message, to: &builder, bytesMax)
                continue
            }
            if compression == .none { compression = message.compression }
            guard let packed = message.value else { throw .invalidRecord(index: Int(builder.recordCount)) }
            var inner = try decoder.expand(packed, message.compression, repairsLZ4Header: message.magic == 0)
            while let message = try next(&inner, Int(builder.recordCount)) {
                guard message.compression == .none else { throw .invalidRecord(index: Int(builder.recordCount)) }
                try append(message, to: &builder, bytesMax)
            }
        }
        guard builder.recordCount > 0 else { throw .truncated(needed: smallestBytes, available: bytes.count) }
        defer { withExtendedLifetime(bytes) {} }
        return try builder.finish(compression: compression)
    }

    private static func append(_ message: Message, to builder: inout RecordBatchBuilder, _ bytesMax: Int) throws(RecordError) {
        builder.append(key: message.key, value: message.value, timestamp: message.timestamp)
        guard builder.byteCount <= bytesMax else { throw .decompressedTooLarge(limit: bytesMax) }
    }

    /// The first message of `rest`, which is left behind it; nil at the end.
    private static func next(_ rest: inout UnsafeRawBufferPointer, _ index: Int) throws(RecordError) -> Message? {
        guard !rest.isEmpty else { return nil }
        guard rest.count >= smallestBytes else { throw .truncated(needed: smallestBytes, available: rest.count) }
        let size = Int(rest.bigEndian(at: 8, as: Int32.self))
        guard size >= smallestBytes - crcOffset else { throw .invalidRecord(index: index) }
        guard rest.count - crcOffset >= size else { throw .truncated(needed: crcOffset + size, available: rest.count) }
        let bytes = UnsafeRawBufferPointer(rebasing: rest[..<(crcOffset + size)])
        rest = UnsafeRawBufferPointer(rebasing: rest[(crcOffset + size)...])
        let magic = bytes.bigEndian(at: magicOffset, as: Int8.self)
        guard magic == 0 || magic == 1 else { throw .unsupportedMagic(magic) }
        let expected = bytes.bigEndian(at: crcOffset, as: UInt32.self)
        let found = checksum(bytes)
        guard expected == found else { throw .checksumMismatch(expected: expected, found: found) }
        let code = Int(bytes[magicOffset + 1] & 0x07)
        guard let compression = Compression(rawValue: code), compression != .zstd else { throw .unknownCompression(code) }
        var position = magicOffset + 2
        var timestamp: Int64 = -1
        if magic == 1 {
            guard bytes.count >= position + 16 else { throw .invalidRecord(index: index) }
            timestamp = max(bytes.bigEndian(at: position, as: Int64.self), -1)
            position += 8
        }
        guard let key = field(bytes, &position), let value = field(bytes, &position), position == bytes.count else {
            throw .invalidRecord(index: index)
        }
        return Message(magic: magic, compression: compression, timestamp: timestamp, key: key.bytes, value: value.bytes)
    }

    /// A length and so many bytes; nil when they do not fit.
    private static func field(_ bytes: UnsafeRawBufferPointer, _ position: inout Int) -> (bytes: UnsafeRawBufferPointer?, Void)? {
        guard bytes.count - position >= 4 else { return nil }
        let length = Int(bytes.bigEndian(at: position, as: Int32.self))
        position += 4
        if length == -1 { return (nil, ()) }
        guard length >= 0, length <= bytes.count - position else { return nil }
        defer { position += length }
        return (UnsafeRawBufferPointer(rebasing: bytes[position..<position + length]), ())
    }

    private static func checksum(_ message: UnsafeRawBufferPointer) -> UInt32 {
        let covered = UnsafeRawBufferPointer(rebasing: message[magicOffset...])
        return UInt32(truncatingIfNeeded: crc32(0, covered.baseAddress?.assumingMemoryBound(to: UInt8.self), UInt32(covered.count)))
    }

    // MARK: From batches

    /// The records from `offset` on as uncompressed messages: at least one, then as many as fit in `maxBytes`. Transactions' markers are
    /// left out, so the answer may be empty.
    package static func messages(
        of slice: RecordBatches, from offset: Int64, magic: Int8, maxBytes: Int, _ decoder: RecordDecoder
    ) throws(RecordError) -> WireBytes {
        var batches = slice
        var bytes: [UInt8] = []
        while let batch = try batches.next() {
            if batch.isControl { continue }
            var cursor = try decoder.records(of: batch)
            while let record = try cursor.next() {
                if record.offset < offset { continue }
                let count = smallestBytes + (magic == 1 ? 8 : 0) + (record.key?.count ?? 0) + (record.value?.count ?? 0)
                if !bytes.isEmpty, bytes.count + count > maxBytes { return WireBytes(bytes) }
                append(record, batch.usesLogAppendTime, magic, count, to: &bytes)
            }
        }
        return WireBytes(bytes)
    }

    private static func append(_ record: Record, _ usesLogAppendTime: Bool, _ magic: Int8, _ count: Int, to bytes: inout [UInt8]) {
        let start = bytes.count
        bytes.appendBigEndian(record.offset)
        bytes.appendBigEndian(Int32(count - crcOffset))
        bytes.appendBigEndian(UInt32(0))
        bytes.append(UInt8(bitPattern: magic))
        bytes.append(magic == 1 && usesLogAppendTime ? 0x08 : 0)
        if magic == 1 { bytes.appendBigEndian(record.timestamp) }
        for field in [record.key, record.value] {
            bytes.appendBigEndian(Int32(field?.count ?? -1))
            if let field { bytes.append(contentsOf: field) }
        }
        let crc = bytes.withUnsafeBytes { checksum(UnsafeRawBufferPointer(rebasing: $0[start...])) }
        withUnsafeBytes(of: crc.bigEndian) { bytes.replaceSubrange(start + crcOffset..<start + magicOffset, with: $0) }
    }
}

extension UnsafeRawBufferPointer {
    /// A big-endian integer; the caller has checked the length.
    fileprivate func bigEndian<T: FixedWidthInteger>(at offset: Int, as _: T.Type) -> T {
        T(bigEndian: loadUnaligned(fromByteOffset: offset, as: T.self))
    }
}

extension [UInt8] {
    fileprivate mutating func appendBigEndian(_ value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
    }
}
