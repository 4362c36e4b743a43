import MillColumnar

/// The values of one column of a batch as they are stored, side by side and without NULLs.
///
/// Made for a whole batch, for all columns, before any of it is written: a value that does not fit is found in time. The bytes of long
/// values stay where the batch has them. Used again for every batch.
final class DenseValues {
    private let column: ParquetColumn
    let storage: ColumnStorage
    private let keepsExtremeTimes: Bool
    /// Where values lie that could not stay where they were.
    private var scratch = OutputBytes()
    /// Bytes of values that the batch does not have as they are stored: decimals as bytes, intervals as text.
    private var heap = StringHeap()
    private(set) var values: UnsafeRawPointer
    private(set) var count = 0
    /// Of all values together, when they are bytes.
    private(set) var byteCount = 0
    /// What the values take in a page, written plainly.
    var pageByteCount: Int { storage.isBytes ? byteCount + 4 * count : count * storage.stride }

    init(_ column: ParquetColumn, _ options: ParquetWriterOptions) {
        self.column = column
        storage = ColumnStorage(column, options)
        keepsExtremeTimes = options.keepsExtremeTimes
        values = UnsafeRawPointer(scratch.base)
    }

    func fill(_ source: Column, count: Int) throws(ParquetError) {
        if column.isRequired, let row = (0..<count).first(where: { source.isNull($0) }) {
            throw .valueDoesNotFit(column: column.name, row: row, .missingInRequiredColumn)
        }
        if !keepsExtremeTimes { try checkTimes(source, count) }
        scratch.truncate(to: 0)
        values = UnsafeRawPointer(scratch.room(count * storage.stride))
        self.count = 0
        switch (column.type, storage.form) {
        case (_, .fixed) where column.form == .uuid: try uuids(source, count)
        case (.bytea, .fixed(let length)): try fixedBytes(source, count, length)
        case (.int16, _): convert(source, count, from: Int16.self) { Int32($0) }
        case (.numeric, .int32): try decimals(source, count) { Int32(truncatingIfNeeded: $0) }
        case (.numeric, .int64): try decimals(source, count) { Int64(truncatingIfNeeded: $0) }
        case (.numeric, .fixed(let length)):
            heap = StringHeap(firstChunkBytes: max(count * 16, 64))
            let heap = heap
            try decimals(source, count) { DecimalBytes.view($0, length, heap) }
        case (.interval, _): intervals(source, count)
        case (_, .fixed): convert(source, count, from: Int64.self) { Int96.view(micros: $0) }
        default: keep(source, count)
        }
        if storage.isBytes { try measure(source) }
    }

    /// SQL's infinities are its extreme numbers, and would be years to others; the end of a day is no time of day in the format.
    private func checkTimes(_ source: Column, _ count: Int) throws(ParquetError) {
        switch column.type {
        case .date: try refuse(.infinite, source, count) { (days: Int32) in days == .max || days == .min }
        case .timestamp, .timestamptz: try refuse(.infinite, source, count) { (micros: Int64) in micros == .max || micros == .min }
        case .time: try refuse(.endOfDay, source, count) { (micros: Int64) in micros >= TimeUnits.microsPerDay }
        default: break
        }
    }

    @inline(__always)
    private func refuse<T: BitwiseCopyable>(
        _ reason: UnfitValue, _ source: Column, _ count: Int, _ isUnfit: (T) -> Bool
    ) throws(ParquetError) {
        let values = UnsafePointer(source.values(T.self))
        var isAny = false
        for row in 0..<count where isUnfit(values[row]) { isAny = true }
        guard isAny, let row = (0..<count).first(where: { isUnfit(values[$0]) && !source.isNull($0) }) else { return }
        throw .valueDoesNotFit(column: column.name, row: row, reason)
    }

    /// Values that are stored as the batch has them.
    private func keep(_ source: Column, _ count: Int) {
        guard source.validity != nil else {
            values = UnsafeRawPointer(source.data)
            self.count = count
            return
        }
        switch storage.stride {
        case 1: convert(source, count, from: UInt8.self) { $0 }
        case 4: convert(source, count, from: UInt32.self) { $0 }
        case 8: convert(source, count, from: UInt64.self) { $0 }
        default: convert(source, count, from: StringView.self) { $0 }
        }
    }

    @inline(__always)
    private func convert<From: BitwiseCopyable, To: BitwiseCopyable>(_ source: Column, _ count: Int, from: From.Type, _ one: (From) -> To) {
        let from = UnsafePointer(source.values(From.self))
        let to = scratch.base.assumingMemoryBound(to: To.self)
        var kept = 0
        if let validity = source.validity {
            for row in 0..<count {
                // Always written, kept only when it is there: no branch.
                to[kept] = one(from[row])
                kept &+= Int(validity[row &>> 6] &>> UInt64(row & 63) & 1)
            }
        } else {
            for row in 0..<count { to[row] = one(from[row]) }
            kept = count
        }
        self.count = kept
    }

    private func decimals<To: BitwiseCopyable>(_ source: Column, _ count: Int, _ one: (Int128) -> To) throws(ParquetError) {
        guard let digits = storage.digits else { return }
        let from = UnsafePointer(source.values(Decimal.self))
        let to = scratch.base.assumingMemoryBound(to: To.self)
        let limit = Decimal.powerOfTen(Int32(digits.precision))
        var kept = 0
        for row in 0..<count where !source.isNull(row) {
            let value = from[row]
            guard value.isFinite else { throw .valueDoesNotFit(column: column.name, row: row, .notFinite) }
            guard let unscaled = DecimalBytes.rescaled(value, to: digits.scale), unscaled < limit, unscaled > -limit else {
                throw .valueDoesNotFit(column: column.name, row: row, .tooManyDigits(precision: digits.precision, scale: digits.scale))
            }
            to[kept] = one(unscaled)
            kept += 1
        }
        self.count = kept
    }

    private func uuids(_ source: Column, _ count: Int) throws(ParquetError) {
        let from = UnsafePointer(source.values(StringView.self))
        let to = scratch.base.assumingMemoryBound(to: StringView.self)
        heap = StringHeap()
        var kept = 0
        for row in 0..<count where !source.isNull(row) {
            guard let bytes = from[row].withBytes({ UUIDText.bytes(utf8: $0) }) else {
                throw .valueDoesNotFit(column: column.name, row: row, .notOfType("uuid"))
            }
            to[kept] = bytes.withUnsafeBufferPointer { heap.view(copying: $0) }
            kept += 1
        }
        self.count = kept
    }

    private func fixedBytes(_ source: Column, _ count: Int, _ length: Int) throws(ParquetError) {
        let from = UnsafePointer(source.values(StringView.self))
        for row in 0..<count where !source.isNull(row) && from[row].count != length {
            throw .valueDoesNotFit(column: column.name, row: row, .notOfType("fixed(\(length))"))
        }
        keep(source, count)
    }

    private func intervals(_ source: Column, _ count: Int) {
        let from = UnsafePointer(source.values(Interval.self))
        let to = scratch.base.assumingMemoryBound(to: StringView.self)
        heap = StringHeap()
        var text: [UInt8] = []
        var kept = 0
        for row in 0..<count where !source.isNull(row) {
            text.removeAll(keepingCapacity: true)
            TextOutput.append(from[row], to: &text)
            to[kept] = text.withUnsafeBufferPointer { heap.view(copying: $0) }
            kept += 1
        }
        self.count = kept
    }

    private func measure(_ source: Column) throws(ParquetError) {
        let views = values.assumingMemoryBound(to: StringView.self)
        var sum = 0
        for index in 0..<count { sum &+= views[index].count }
        byteCount = sum
        guard pageByteCount > PageValues.byteCountMax else { return }
        if let index = (0..<count).first(where: { views[$0].count + 4 > PageValues.byteCountMax }) {
            // Its row, when the values before it are of rows that are not NULL.
            var row = -1
            for _ in 0...index { repeat { row += 1 } while source.isNull(row) }
            throw .valueDoesNotFit(column: column.name, row: row, .tooLong(bytes: views[index].count))
        }
        throw .batchTooLarge(column: column.name, bytes: sum)
    }
}

/// Decimals as whole numbers of their last digit.
enum DecimalBytes {
    /// Units of 10^-`scale`; nil when that loses digits, or needs more than there are.
    @inline(__always) static func rescaled(_ value: Decimal, to scale: Int) -> Int128? {
        let missing = scale - Int(value.scale)
        if missing == 0 { return value.unscaled }
        return rescaled(value.unscaled, by: missing)
    }

    private static func rescaled(_ unscaled: Int128, by digits: Int) -> Int128? {
        if digits > 0 {
            guard digits <= 38 else { return unscaled == 0 ? 0 : nil }
            let (result, overflow) = unscaled.multipliedReportingOverflow(by: Decimal.powerOfTen(Int32(digits)))
            return overflow ? nil : result
        }
        let (quotient, remainder) = unscaled.quotientAndRemainder(dividingBy: Decimal.powerOfTen(Int32(-digits)))
        return remainder == 0 ? quotient : nil
    }

    /// The lowest `length` bytes of a number, highest first.
    @inline(__always) static func view(_ unscaled: Int128, _ length: Int, _ heap: StringHeap) -> StringView {
        let bytes = heap.allocate(16)
        let shifted = unscaled << Int128(8 * (16 - length))
        bytes.storeBytes(of: UInt64(truncatingIfNeeded: shifted >> 64).bigEndian, as: UInt64.self)
        bytes.storeBytes(of: UInt64(truncatingIfNeeded: shifted).bigEndian, toByteOffset: 8, as: UInt64.self)
        return StringView(padded: bytes, count: length)
    }
}
