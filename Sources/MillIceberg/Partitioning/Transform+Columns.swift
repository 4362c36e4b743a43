import MillBase
package import MillColumnar

/// Partition values of whole batches. NULL goes to NULL.
///
/// Source: Iceberg specification, partition transforms and appendix B.
extension Transform {
    /// The values of a column under the transform, as a column of `resultType(of: type)`.
    ///
    /// - Parameter type: of the table's column, which `column` is stored as.
    /// - Returns: nil where the transform is not for the type, or unknown.
    package func applied(to column: Column, of type: IcebergType, count: Int) -> Column? {
        guard let result = resultType(of: type), let sqlType = result.sqlType else { return nil }
        var column = column
        if case .decimal(_, let scale) = type {
            // A numeric has a scale of its own in every value; hashes and multiples are of the column's.
            column = Self.each(column, column.type, count) { (value: Decimal) in value.rescaled(to: Int32(scale)) }
        }
        switch self {
        case .identity: return column
        case .void: return .constant(.null, sqlType, count: count)
        case .bucket(let buckets): return Self.bucket(column, type, Int32(clamping: buckets), count)
        case .truncate(let width): return Self.truncate(column, type, width, count)
        case .year: return Self.dates(column, type, count) { Int32(truncatingIfNeeded: CivilDate(days: $0).year - 1970) }
        case .month:
            return Self.dates(column, type, count) { days in
                let date = CivilDate(days: days)
                return Int32(truncatingIfNeeded: (date.year - 1970) * 12 + date.month - 1)
            }
        case .day:
            let days = Self.dates(column, type, count) { Int32(truncatingIfNeeded: $0) }
            return days?.relabelled(.date)
        case .hour:
            guard type != .date else { return nil }
            return Self.each(column, .int32, count) { (micros: Int64) in Int32(clamping: micros.flooredQuotient(TimeUnits.microsPerHour)) }
        case .unknown: return nil
        }
    }

    private static func dates(_ column: Column, _ type: IcebergType, _ count: Int, _ convert: (Int) -> Int32) -> Column? {
        if type == .date { return each(column, .int32, count) { (days: Int32) in convert(Int(days)) } }
        return each(column, .int32, count) { (micros: Int64) in convert(Int(micros.flooredQuotient(TimeUnits.microsPerDay))) }
    }

    @inline(__always)
    private static func each<From: BitwiseCopyable, To: BitwiseCopyable>(
        _ column: Column, _ type: SQLType, _ count: Int, _ convert: (From) -> To
    ) -> Column {
        precondition(
            column.type.physical.stride == MemoryLayout<From>.stride && type.physical.stride == MemoryLayout<To>.stride,
            "the closure's types are those of the columns")
        let result = Column(type, uninitialized: count)
        let from = UnsafePointer(column.values(From.self))
        let to = result.values(To.self)
        for row in 0..<count { to[row] = convert(from[row]) }
        result.copyNulls(of: column, count: count)
        return result
    }

    // MARK: bucket

    private static func bucket(_ column: Column, _ type: IcebergType, _ buckets: Int32, _ count: Int) -> Column? {
        func place(_ hash: Int32) -> Int32 { (hash & .max) % buckets }
        switch type {
        case .int, .date: return each(column, .int32, count) { (value: Int32) in place(Murmur3.hash(Int64(value))) }
        case .long, .time, .timestamp, .timestamptz: return each(column, .int32, count) { (value: Int64) in place(Murmur3.hash(value)) }
        case .decimal:
            return each(column, .int32, count) { (value: Decimal) in
                place(SingleValue.decimalBytes(value.unscaled).withUnsafeBufferPointer { Murmur3.hash($0) })
            }
        case .string, .binary, .fixed:
            return each(column, .int32, count) { (view: StringView) in place(view.withBytes { Murmur3.hash($0) }) }
        case .uuid:
            return each(column, .int32, count) { (view: StringView) in
                place((UUIDText.bytes(String(view)) ?? []).withUnsafeBufferPointer { Murmur3.hash($0) })
            }
        default: return nil
        }
    }

    // MARK: truncate

    private static func truncate(_ column: Column, _ type: IcebergType, _ width: Int, _ count: Int) -> Column? {
        switch type {
        case .int: return each(column, column.type, count) { (value: Int32) in Int32(truncatingIfNeeded: down(Int64(value), Int64(width))) }
        case .long: return each(column, column.type, count) { (value: Int64) in down(value, Int64(width)) }
        case .decimal:
            return each(column, column.type, count) { (value: Decimal) in
                Decimal(unscaled: down(value.unscaled, Int128(width)), scale: value.scale)
            }
        case .string, .binary:
            let isText = type == .string
            let result: Column = each(column, column.type, count) { (view: StringView) in
                view.withBytes { bytes in
                    let kept = isText ? byteCount(of: bytes, characters: width) : min(width, bytes.count)
                    guard kept < bytes.count, kept > 0, let base = bytes.baseAddress else { return kept == 0 ? .empty : view }
                    // Of an inline view the bytes go away with it, and so few are inline again.
                    return StringView(base, count: kept)
                }
            }
            result.keep(column.heaps)
            return result
        default: return nil
        }
    }

    /// The multiple of the width at or below a value; at the type's very end, which has none, it wraps as the reference implementation
    /// does.
    private static func down<T: FixedWidthInteger>(_ value: T, _ width: T) -> T {
        let rest = value % width
        return value &- (rest < 0 ? rest + width : rest)
    }

    private static func byteCount(of text: UnsafeBufferPointer<UInt8>, characters: Int) -> Int {
        var found = 0
        for (index, byte) in text.enumerated() where byte & 0xC0 != 0x80 {
            if found == characters { return index }
            found += 1
        }
        return text.count
    }
}

extension Decimal {
    /// The same number with so many digits after the point; digits that it would lose are cut off. One too large for that stays as it is.
    func rescaled(to scale: Int32) -> Decimal {
        guard isFinite, scale != self.scale else { return self }
        if scale < self.scale { return Decimal(unscaled: unscaled / Self.powerOfTen(self.scale - scale), scale: scale) }
        let (product, overflow) = unscaled.multipliedReportingOverflow(by: Self.powerOfTen(scale - self.scale))
        return overflow ? self : Decimal(unscaled: product, scale: scale)
    }
}

extension Column {
    /// The same values under another type of the same layout.
    func relabelled(_ type: SQLType) -> Column {
        precondition(type.physical == self.type.physical, "a label does not change the layout")
        let result = Column(type, uninitialized: count)
        result.data.copyMemory(from: data, byteCount: count * type.physical.stride)
        result.copyNulls(of: self, count: count)
        result.keep(heaps)
        return result
    }
}
