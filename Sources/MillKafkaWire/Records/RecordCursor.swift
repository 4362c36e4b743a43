/// One record of a batch. The pointers go into the batch's bytes, or into the decoder's scratch memory when it was
/// compressed; at least `WireBuffer.slackBytes` bytes after each are readable.
package struct Record {
    package var offset: Int64
    /// Milliseconds since 1970, or -1.
    package var timestamp: Int64
    /// Nil is null, which is not empty.
    package var key: UnsafeRawBufferPointer?
    package var value: UnsafeRawBufferPointer?
    package var headerCount: Int
    /// All headers as they were sent.
    var headerBytes: UnsafeRawBufferPointer
}

/// Walks a batch's records without allocating. Every length is checked against the batch, so hostile bytes end in an
/// error. Valid as long as the batch and until its decoder decodes the next one.
///
/// Record layout, all integers zigzag varints: length, attributes (one byte), timestamp delta, offset delta, key length
/// (-1 null), key, value length (-1 null), value, header count, headers (key length, key, value length, value).
package struct RecordCursor {
    private var position: UnsafeRawPointer
    private let end: UnsafeRawPointer
    private let baseOffset: Int64
    private let baseTimestamp: Int64
    /// Set when the broker's clock replaces the producer's.
    private let appendTimestamp: Int64?
    private let count: Int
    private var index = 0

    init(batch: RecordBatch, records: UnsafeRawBufferPointer) {
        position = records.baseAddress ?? UnsafeRawPointer(bitPattern: 1)!  // never dereferenced when there are no bytes
        end = position + records.count
        baseOffset = batch.baseOffset
        baseTimestamp = batch.baseTimestamp
        appendTimestamp = batch.usesLogAppendTime ? batch.maxTimestamp : nil
        count = Int(batch.recordCount)
    }

    /// The last record has been given.
    package var isAtEnd: Bool { index == count }

    /// The next record, or nil after the last.
    /// - Throws: `invalidRecord`, also when bytes are left over after the last record.
    @inline(__always)
    package mutating func next() throws(RecordError) -> Record? {
        guard index < count else {
            if position != end { throw .invalidRecord(index: index) }
            return nil
        }
        guard let length = Varint.read(&position, end), length >= 0, length <= end - position else { throw .invalidRecord(index: index) }
        let recordEnd = position + Int(length)
        guard position < recordEnd else { throw .invalidRecord(index: index) }
        position += 1
        guard let timestampDelta = Varint.read(&position, recordEnd),
            let offsetDelta = Varint.read(&position, recordEnd), offsetDelta >= 0, offsetDelta <= Int64(Int32.max),
            let key = Varint.readBytes(&position, recordEnd),
            let value = Varint.readBytes(&position, recordEnd),
            let headerCount = Varint.read(&position, recordEnd), headerCount >= 0, headerCount <= recordEnd - position
        else { throw .invalidRecord(index: index) }
        let record = Record(
            offset: baseOffset &+ offsetDelta, timestamp: appendTimestamp ?? (baseTimestamp &+ timestampDelta), key: key.bytes,
            value: value.bytes, headerCount: Int(headerCount), headerBytes: UnsafeRawBufferPointer(start: position, count: recordEnd - position))
        position = recordEnd
        index += 1
        return record
    }
}

extension Record {
    /// Calls `body` with each header's key and value; false when the headers are malformed.
    @discardableResult
    package func forEachHeader(_ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer?) -> Void) -> Bool {
        guard headerCount > 0, var position = headerBytes.baseAddress else { return headerCount == 0 && headerBytes.isEmpty }
        let end = position + headerBytes.count
        for _ in 0..<headerCount {
            guard let key = Varint.readBytes(&position, end)?.bytes, let value = Varint.readBytes(&position, end) else { return false }
            body(key, value.bytes)
        }
        return position == end
    }
}

/// Signed integers of up to 64 bits in zigzag form, seven bits to a byte, lowest first.
enum Varint {
    /// Nil when the bytes end first or the integer does not.
    @inline(__always)
    static func read(_ position: inout UnsafeRawPointer, _ end: UnsafeRawPointer) -> Int64? {
        guard position < end else { return nil }
        let first = position.load(as: UInt8.self)
        if first < 0x80 {
            position += 1
            return Int64(first >> 1) ^ -Int64(first & 1)
        }
        return readLong(&position, end)
    }

    private static func readLong(_ position: inout UnsafeRawPointer, _ end: UnsafeRawPointer) -> Int64? {
        var raw: UInt64 = 0
        var shift: UInt64 = 0
        while position < end, shift < 70 {
            let byte = position.load(as: UInt8.self)
            position += 1
            raw |= UInt64(byte & 0x7F) &<< (shift & 63)
            if shift == 63, byte > 1 { return nil }
            if byte < 0x80 { return Int64(bitPattern: raw >> 1) ^ -Int64(bitPattern: raw & 1) }
            shift += 7
        }
        return nil
    }

    /// A length and so many bytes; -1 is null.
    @inline(__always)
    static func readBytes(_ position: inout UnsafeRawPointer, _ end: UnsafeRawPointer) -> (bytes: UnsafeRawBufferPointer?, Void)? {
        guard let length = read(&position, end) else { return nil }
        if length == -1 { return (nil, ()) }
        guard length >= 0, length <= end - position else { return nil }
        defer { position += Int(length) }
        return (UnsafeRawBufferPointer(start: position, count: Int(length)), ())
    }

    private static func zigzag(_ value: Int64) -> UInt64 { UInt64(bitPattern: (value << 1) ^ (value >> 63)) }

    /// Bytes that `append` writes.
    static func byteCount(_ value: Int64) -> Int { max(70 - zigzag(value).leadingZeroBitCount, 7) / 7 }

    static func append(_ value: Int64, to bytes: inout [UInt8]) {
        var raw = zigzag(value)
        while raw >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: raw) | 0x80)
            raw >>= 7
        }
        bytes.append(UInt8(raw))
    }
}
