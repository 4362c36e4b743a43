/// Writes the primitive types of the Kafka protocol.
///
/// Small fields go to one growing array. Large byte fields (fetched records) are not copied into it: they are kept as
/// slices with their place, and `forEachChunk` gives everything back in order, so that record bytes are copied once, by
/// whoever fills the socket's buffer.
package struct WireWriter {
    /// From this size on, a byte field is kept as a slice.
    private static let sliceBytesMin = 4096

    private var bytes: [UInt8] = []
    private var slices: [(at: Int, bytes: WireBytes)] = []
    private var sliceBytes = 0

    package init() { bytes.reserveCapacity(256) }

    /// Bytes written so far, slices included.
    package var count: Int { bytes.count + sliceBytes }

    private mutating func integer<T: FixedWidthInteger>(_ value: T) {
        withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
    }

    package mutating func int8(_ value: Int8) { bytes.append(UInt8(bitPattern: value)) }
    package mutating func int16(_ value: Int16) { integer(value) }
    package mutating func uint16(_ value: UInt16) { integer(value) }
    package mutating func int32(_ value: Int32) { integer(value) }
    package mutating func uint32(_ value: UInt32) { integer(value) }
    package mutating func int64(_ value: Int64) { integer(value) }
    package mutating func float64(_ value: Double) { integer(value.bitPattern) }
    package mutating func bool(_ value: Bool) { bytes.append(value ? 1 : 0) }

    package mutating func uuid(_ value: WireUUID) {
        integer(value.high)
        integer(value.low)
    }

    package mutating func unsignedVarint(_ value: UInt32) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    private mutating func length(_ count: Int?, flexible: Bool, short: Bool) {
        if flexible {
            unsignedVarint(count.map { UInt32($0) + 1 } ?? 0)
        } else if short {
            int16(count.map { Int16($0) } ?? -1)
        } else {
            int32(count.map { Int32($0) } ?? -1)
        }
    }

    /// Text over 32767 bytes is cut (only error messages can be that long), on a character's border.
    package mutating func nullableString(_ value: String?, flexible: Bool) {
        guard var text = value else { return length(nil, flexible: flexible, short: true) }
        while text.utf8.count > Int(Int16.max) { text = String(text.prefix(min(text.count - 1, Int(Int16.max)))) }
        length(text.utf8.count, flexible: flexible, short: true)
        bytes.append(contentsOf: text.utf8)
    }

    package mutating func string(_ value: String, flexible: Bool) { nullableString(value, flexible: flexible) }

    package mutating func nullableBytes(_ value: WireBytes?, flexible: Bool) {
        length(value?.count, flexible: flexible, short: false)
        if let value { raw(value) }
    }

    package mutating func bytes(_ value: WireBytes, flexible: Bool) { nullableBytes(value, flexible: flexible) }

    /// Bytes without a length.
    package mutating func raw(_ value: WireBytes) {
        if value.count >= Self.sliceBytesMin {
            slices.append((bytes.count, value))
            sliceBytes += value.count
        } else {
            value.withUnsafeBytes { bytes.append(contentsOf: $0) }
        }
    }

    package mutating func nullableArray<T>(_ elements: [T]?, flexible: Bool, _ write: (inout WireWriter, T) -> Void) {
        length(elements?.count, flexible: flexible, short: false)
        for element in elements ?? [] { write(&self, element) }
    }

    package mutating func array<T>(_ elements: [T], flexible: Bool, _ write: (inout WireWriter, T) -> Void) {
        nullableArray(elements, flexible: flexible, write)
    }

    package mutating func noTaggedFields() { bytes.append(0) }

    package mutating func taggedFields(_ fields: TaggedFields) {
        unsignedVarint(UInt32(fields.entries.count))
        for (tag, content) in fields.entries {
            unsignedVarint(tag)
            unsignedVarint(UInt32(content.count))
            content.forEachChunk { bytes.append(contentsOf: $0) }
        }
    }

    /// Everything written, in order.
    package func forEachChunk(_ body: (UnsafeRawBufferPointer) -> Void) {
        bytes.withUnsafeBytes { all in
            var done = 0
            for slice in slices {
                if slice.at > done { body(UnsafeRawBufferPointer(rebasing: all[done..<slice.at])) }
                done = slice.at
                slice.bytes.withUnsafeBytes(body)
            }
            if all.count > done { body(UnsafeRawBufferPointer(rebasing: all[done...])) }
        }
    }

    /// Everything written, copied into one buffer.
    package func finish() -> WireBytes {
        let buffer = WireBuffer(capacity: count)
        forEachChunk { buffer.append($0) }
        return buffer.bytes
    }
}

/// The optional fields at the end of a flexible struct, ascending by tag.
package struct TaggedFields {
    fileprivate(set) var entries: [(tag: UInt32, content: WireWriter)] = []

    package init() {}

    package mutating func add(_ tag: UInt32, _ write: (inout WireWriter) -> Void) {
        var writer = WireWriter()
        write(&writer)
        entries.append((tag, writer))
    }
}
