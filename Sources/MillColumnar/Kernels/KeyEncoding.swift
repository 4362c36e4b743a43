/// One column of an order: how its values compare and where missing ones go.
package struct KeyOrder: Hashable, Sendable {
    package var type: SQLType
    package var descending: Bool
    /// Whether missing values come before all others, whatever the direction.
    package var nullsFirst: Bool

    /// PostgreSQL's default: nulls are above every value, so last when ascending and first when descending.
    package init(_ type: SQLType, descending: Bool = false, nullsFirst: Bool? = nil) {
        self.type = type
        self.descending = descending
        self.nullsFirst = nullsFirst ?? descending
    }
}

extension KeyOrder {
    /// Appends the key of one value that lies in memory; nil is a missing one.
    package func encode(_ value: UnsafeRawPointer?, into buffer: inout KeyBuffer) {
        guard let value else { return buffer.append(nullsFirst ? 0 : 2) }
        KeyLane(UnsafeMutableRawPointer(mutating: value), nil, self).encode(0, into: &buffer)
    }
}

/// Turns the values of a row into bytes whose `memcmp` order is the SQL order of the rows.
///
/// Feeds ordered state (`OrderedTable`) and sorting. Two rows have equal bytes exactly when their values are equal as SQL
/// compares them, so an encoded key also serves equality. The bytes are not decoded again: values are stored beside them.
///
/// Invariants: no encoded column is a proper prefix of another encoding of the same column, so columns concatenate and a key
/// over the first k columns is a prefix of exactly the keys that agree on them.
///
/// Layout: per column a marker byte, 0 null that sorts first, 1 present, 2 null that sorts last; after 1 comes the value, all
/// its bytes inverted when descending:
///
///     boolean                 1 byte, 0 or 1
///     int16, 32, 64, dates    big endian, sign bit flipped
///     float32, float64        IEEE bits big endian: negative ones inverted, others with the sign bit set;
///                             -0 as 0, every NaN as one above infinity
///     numeric                 class byte (1 -inf, 2 negative, 3 zero, 4 positive, 5 +inf, 6 NaN); for 2 and 4 the exponent
///                             byte (digits before the point + 64; negative counts zeros after it), then the digits from the
///                             first non-zero one, two a byte as 1 + pair, without trailing zero pairs, and 0; for 2 all
///                             bytes after the class are inverted
///     interval                the comparable length in microseconds, 80 bits big endian, sign bit flipped
///     text, bytea, jsonb      the bytes, 0 as 1 1 and 1 as 1 2, then 0
package struct KeyEncoder: Sendable {
    package let order: [KeyOrder]

    package init(order: [KeyOrder]) { self.order = order }

    /// Appends the key of one row. `columns` go with `order` by position; fewer columns give a prefix.
    package func encode(_ columns: [Column], row: Int, into buffer: inout KeyBuffer) {
        precondition(columns.count <= order.count, "a key has a column for each value")
        for index in columns.indices {
            KeyLane(columns[index], order[index]).encode(row, into: &buffer)
        }
    }

    /// The keys of all `count` rows of a batch, one after the other.
    package func encode(_ columns: [Column], count: Int) -> EncodedKeys {
        var keys = EncodedKeys(capacity: count)
        append(columns, count: count, to: &keys)
        return keys
    }

    /// Appends the keys of `count` rows to those of earlier batches.
    package func append(_ columns: [Column], count: Int, to keys: inout EncodedKeys) {
        let lanes = lanes(columns)
        for row in 0..<count {
            lanes.encode(row, into: &keys.buffer)
            keys.endKey()
        }
    }

    /// A batch's columns prepared for encoding one row after another.
    package func lanes(_ columns: [Column]) -> KeyLanes {
        precondition(columns.count <= order.count, "a key has a column for each value")
        return KeyLanes(columns, lanes: columns.indices.map { KeyLane(columns[$0], order[$0]) })
    }
}

/// The columns of one batch as a `KeyEncoder` reads them.
package struct KeyLanes {
    /// Keeps alive what the lanes point at.
    private let columns: [Column]
    private let lanes: [KeyLane]

    init(_ columns: [Column], lanes: [KeyLane]) {
        self.columns = columns
        self.lanes = lanes
    }

    /// Appends the key of one row.
    @inline(__always) package func encode(_ row: Int, into buffer: inout KeyBuffer) {
        withExtendedLifetime(columns) {
            lanes.withUnsafeBufferPointer { lanes in
                for index in 0..<lanes.count { lanes[index].encode(row, into: &buffer) }
            }
        }
    }
}

/// Many keys side by side: key i lies between two offsets.
package struct EncodedKeys: ~Copyable {
    package var buffer: KeyBuffer
    private var ends: [Int] = []

    package init(capacity: Int) {
        buffer = KeyBuffer(capacity: capacity * 16)
        ends.reserveCapacity(capacity)
    }

    package var count: Int { ends.count }

    package subscript(index: Int) -> UnsafeRawBufferPointer { buffer.slice(index == 0 ? 0 : ends[index - 1], ends[index]) }

    mutating func endKey() { ends.append(buffer.count) }
}

/// A column prepared for encoding: the class's fields in registers, one switch per value.
struct KeyLane {
    let data: UnsafeMutableRawPointer
    let validity: UnsafeMutablePointer<UInt64>?
    let physical: PhysicalType
    let nullMarker: UInt8
    /// All ones when descending.
    let mask: UInt64

    init(_ column: Column, _ order: KeyOrder) {
        precondition(column.type.physical == order.type.physical, "a key column has the order's type")
        self.init(column.data, column.validity, order)
    }

    /// - Parameter data: values of the order's type, for reading only.
    init(_ data: UnsafeMutableRawPointer, _ validity: UnsafeMutablePointer<UInt64>?, _ order: KeyOrder) {
        self.data = data
        self.validity = validity
        physical = order.type.physical
        nullMarker = order.nullsFirst ? 0 : 2
        mask = order.descending ? .max : 0
    }

    @inline(__always) func encode(_ row: Int, into buffer: inout KeyBuffer) {
        if let validity, validity[row &>> 6] & (1 &<< UInt64(row & 63)) == 0 {
            buffer.append(nullMarker)
            return
        }
        let out = buffer.reserve(Self.fixedBytesMax)
        out.storeBytes(of: 1, as: UInt8.self)
        switch physical {
        case .bool8:
            store(value(row, UInt8.self), out)
            buffer.advance(2)
        case .int16:
            store(UInt16(bitPattern: value(row, Int16.self)) ^ 1 << 15, out)
            buffer.advance(3)
        case .int32:
            store(UInt32(bitPattern: value(row, Int32.self)) ^ 1 << 31, out)
            buffer.advance(5)
        case .int64:
            store(UInt64(bitPattern: value(row, Int64.self)) ^ 1 << 63, out)
            buffer.advance(9)
        case .float32:
            store(Self.orderedBits(value(row, Float.self)), out)
            buffer.advance(5)
        case .float64:
            store(Self.orderedBits(value(row, Double.self)), out)
            buffer.advance(9)
        case .interval:
            let length = value(row, Interval.self).comparable
            // Months and days stay below 2^73 microseconds: 80 bits are enough.
            store(UInt16(truncatingIfNeeded: length >> 64) ^ 1 << 15, out)
            store(UInt64(truncatingIfNeeded: length), out + 2)
            buffer.advance(11)
        case .decimal:
            buffer.advance(1)
            encodeDecimal(value(row, Decimal.self), into: &buffer)
        case .string:
            buffer.advance(1)
            encodeString(value(row, StringView.self), into: &buffer)
        }
    }

    /// Bytes that any fixed-width value needs at most, with its marker.
    private static let fixedBytesMax = 16

    @inline(__always) private func value<T: BitwiseCopyable>(_ row: Int, _: T.Type) -> T {
        data.load(fromByteOffset: row &* MemoryLayout<T>.stride, as: T.self)
    }

    /// Writes after the marker, most significant byte first.
    @inline(__always) private func store<T: FixedWidthInteger & BitwiseCopyable>(_ value: T, _ out: UnsafeMutableRawPointer) {
        (out + 1).storeBytes(of: (value ^ T(truncatingIfNeeded: mask)).bigEndian, as: T.self)
    }

    @inline(__always) private static func orderedBits(_ value: Double) -> UInt64 {
        let bits = value == 0 ? 0 : value.isNaN ? 0x7FF8_0000_0000_0000 : value.bitPattern
        return bits >> 63 != 0 ? ~bits : bits | 1 << 63
    }

    @inline(__always) private static func orderedBits(_ value: Float) -> UInt32 {
        let bits = value == 0 ? 0 : value.isNaN ? 0x7FC0_0000 : value.bitPattern
        return bits >> 31 != 0 ? ~bits : bits | 1 << 31
    }
}

/// Values of variable length.
extension KeyLane {
    private func encodeString(_ view: StringView, into buffer: inout KeyBuffer) {
        let mask = mask
        view.withBytes { bytes in
            // Every byte may be escaped into two.
            let out = buffer.reserve(bytes.count * 2 + 9).assumingMemoryBound(to: UInt8.self)
            let flip = UInt8(truncatingIfNeeded: mask)
            var written = 0
            var index = 0
            while index < bytes.count {
                if index &+ 8 <= bytes.count {
                    let word = UnsafeRawPointer(bytes.baseAddress.unsafelyUnwrapped + index).loadUnaligned(as: UInt64.self)
                    // Some byte is 0 or 1 when this is not zero (a borrow may also report a higher byte: then the slow way is taken).
                    if (word &- 0x0202_0202_0202_0202) & ~word & 0x8080_8080_8080_8080 == 0 {
                        UnsafeMutableRawPointer(out + written).storeBytes(of: word ^ mask, as: UInt64.self)
                        written &+= 8
                        index &+= 8
                        continue
                    }
                }
                let byte = bytes[index]
                if byte > 1 {
                    out[written] = byte ^ flip
                    written &+= 1
                } else {
                    out[written] = 1 ^ flip
                    out[written &+ 1] = (byte &+ 1) ^ flip
                    written &+= 2
                }
                index &+= 1
            }
            out[written] = flip
            buffer.advance(written &+ 1)
        }
    }

    private func encodeDecimal(_ value: Decimal, into buffer: inout KeyBuffer) {
        let flip = UInt8(truncatingIfNeeded: mask)
        let unscaled = value.unscaled
        let code: UInt8 =
            switch value.kind {
            case .negativeInfinity: 1
            case .finite: unscaled < 0 ? 2 : unscaled == 0 ? 3 : 4
            case .positiveInfinity: 5
            case .nan: 6
            }
        buffer.append(code ^ flip)
        guard value.isFinite, unscaled != 0 else { return }
        let tail = unscaled < 0 ? ~flip : flip
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 48) { digits in
            let first = Self.writeDigits(unscaled.magnitude, digits)
            let end = 40
            let out = buffer.reserve(32).assumingMemoryBound(to: UInt8.self)
            out[0] = UInt8(truncatingIfNeeded: end - first - Int(value.scale) + 64) ^ tail
            var written = 1
            // The last non-zero digit ends the number; a pair may reach one digit past it.
            var last = end
            while last > first && digits[last - 1] == 0 { last -= 1 }
            digits[end] = 0
            var index = first
            while index < last {
                out[written] = (digits[index] * 10 + digits[index + 1] + 1) ^ tail
                written += 1
                index += 2
            }
            out[written] = tail
            buffer.advance(written + 1)
        }
    }

    /// Writes decimal digits so that the last one is at index 39; returns the index of the first.
    private static func writeDigits(_ magnitude: UInt128, _ digits: UnsafeMutableBufferPointer<UInt8>) -> Int {
        var index = 40
        var wide = magnitude
        while wide > UInt128(UInt64.max) {
            let (quotient, remainder) = wide.quotientAndRemainder(dividingBy: 10_000_000_000_000_000_000)
            wide = quotient
            var part = UInt64(truncatingIfNeeded: remainder)
            for _ in 0..<19 {
                index -= 1
                digits[index] = UInt8(truncatingIfNeeded: part % 10)
                part /= 10
            }
        }
        var narrow = UInt64(truncatingIfNeeded: wide)
        while narrow != 0 {
            index -= 1
            digits[index] = UInt8(truncatingIfNeeded: narrow % 10)
            narrow /= 10
        }
        return index
    }
}
