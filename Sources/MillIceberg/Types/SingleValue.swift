import MillBase
package import MillColumnar

/// One value as bytes: bounds in manifests. Numbers lowest byte first, decimals as two's complement of the fewest bytes with the highest
/// first, texts as UTF-8, UUIDs as their sixteen bytes.
///
/// Source: Iceberg specification, appendix D.
package enum SingleValue {
    /// Nil for NULL, and for what has no such form: nested types, and values that are not of the type.
    package static func encode(_ value: Scalar, _ type: IcebergType) -> [UInt8]? {
        switch (type, value) {
        case (.boolean, .boolean(let value)): return [value ? 1 : 0]
        case (.int, .int(let value)), (.date, .int(let value)): return Int32(exactly: value).map { bytes($0) }
        case (.long, .int(let value)), (.time, .int(let value)), (.timestamp, .int(let value)), (.timestamptz, .int(let value)):
            return bytes(value)
        case (.float, .float(let value)): return bytes(Float(value).bitPattern)
        case (.double, .float(let value)): return bytes(value.bitPattern)
        case (.decimal, .decimal(let value)): return decimalBytes(value.unscaled)
        case (.string, .string(let value)): return Array(value.utf8)
        case (.uuid, .string(let value)): return UUIDText.bytes(value)
        case (.fixed, .bytes(let value)), (.binary, .bytes(let value)): return value
        default: return nil
        }
    }

    /// Nil for bytes that are no value of the type. Bounds from before a column was widened have the narrower type's bytes.
    package static func decode(_ bytes: [UInt8], _ type: IcebergType) -> Scalar? {
        switch type {
        case .boolean: return bytes.count == 1 ? .boolean(bytes[0] != 0) : nil
        case .int, .date: return integer(bytes, 4).map { .int($0) }
        case .long, .time, .timestamp, .timestamptz: return (integer(bytes, 8) ?? integer(bytes, 4)).map { .int($0) }
        case .float: return integer(bytes, 4).map { .float(Double(Float(bitPattern: UInt32(truncatingIfNeeded: $0)))) }
        case .double:
            if let bits = integer(bytes, 8) { return .float(Double(bitPattern: UInt64(bitPattern: bits))) }
            return decode(bytes, .float)
        case .decimal(_, let scale): return decimal(bytes).map { .decimal(Decimal(unscaled: $0, scale: Int32(scale))) }
        case .string: return String(validating: bytes, as: UTF8.self).map { .string($0) }
        case .uuid: return UUIDText.text(bytes).map { .string($0) }
        case .fixed, .binary: return .bytes(bytes)
        default: return nil
        }
    }

    private static func bytes<T: FixedWidthInteger>(_ value: T) -> [UInt8] { withUnsafeBytes(of: value.littleEndian) { Array($0) } }

    /// Sign-extended.
    private static func integer(_ bytes: [UInt8], _ count: Int) -> Int64? {
        guard bytes.count == count else { return nil }
        let value = bytes.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return count == 4 ? Int64(Int32(truncatingIfNeeded: value)) : Int64(bitPattern: value)
    }

    /// Two's complement of the fewest bytes, at least one, highest first.
    package static func decimalBytes(_ unscaled: Int128) -> [UInt8] {
        var result = withUnsafeBytes(of: unscaled.bigEndian) { Array($0) }
        let sign: UInt8 = unscaled < 0 ? 0xFF : 0
        var leading = 0
        while leading < 15, result[leading] == sign, result[leading + 1] & 0x80 == sign & 0x80 { leading += 1 }
        result.removeFirst(leading)
        return result
    }

    /// Nil for none and for more bytes than 38 digits need.
    package static func decimal(_ bytes: [UInt8]) -> Int128? {
        guard let first = bytes.first, bytes.count <= 16 else { return nil }
        return bytes.reduce(first & 0x80 != 0 ? Int128(-1) : 0) { $0 << 8 | Int128($1) }
    }
}
