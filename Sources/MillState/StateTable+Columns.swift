import CMemory
package import MillColumnar

/// Moving values between columns and rows, one column at a time: a type switch per call, none per row.
extension StateTable {
    /// Writes the values of `batchRows` into column `index` of the rows that `rows` gives for them.
    func write(_ column: Column, to index: Int, batchRows: borrowing Selection, rows: UnsafePointer<RowNumber>) {
        let offset = layout.offsets[index]
        switch column.type.physical {
        case .bool8: copy(UInt8.self, column, offset, batchRows, rows)
        case .int16: copy(UInt16.self, column, offset, batchRows, rows)
        case .int32, .float32: copy(UInt32.self, column, offset, batchRows, rows)
        case .int64, .float64: copy(UInt64.self, column, offset, batchRows, rows)
        case .decimal: copy(Decimal.self, column, offset, batchRows, rows)
        case .interval: copy(Interval.self, column, offset, batchRows, rows)
        case .string:
            let source = UnsafePointer(column.values(StringView.self))
            let heap = heap
            var bytes = 0
            // Bytes that another worker wrote are in the other core's cache.
            let ahead = 8
            for position in 0..<batchRows.count {
                let batchRow = Int(batchRows.rows[position])
                let view = source[batchRow]
                if position &+ ahead < batchRows.count {
                    let next = source[Int(batchRows.rows[position &+ ahead])]
                    if !next.isInline {
                        mill_prefetch_read(next.pointer)
                        mill_prefetch_read(next.pointer + (next.count &- 1))
                    }
                }
                if !view.isInline { bytes &+= view.count }
                row(rows[batchRow]).storeBytes(of: heap.view(copying: view), toByteOffset: offset, as: StringView.self)
            }
            noteHeapBytes(bytes)
        }
        guard column.validity != nil else { return }
        hasNulls[index] = true
        let nullOffset = RowLayout.nullOffset + index / 64 * 8
        let bit = UInt64(1) << UInt64(index % 64)
        for position in 0..<batchRows.count {
            let batchRow = Int(batchRows.rows[position])
            guard column.isNull(batchRow) else { continue }
            let word = row(rows[batchRow]) + nullOffset
            word.storeBytes(of: word.load(as: UInt64.self) | bit, as: UInt64.self)
        }
    }

    @inline(__always)
    private func copy<T: BitwiseCopyable>(
        _: T.Type, _ column: Column, _ offset: Int, _ batchRows: borrowing Selection, _ rows: UnsafePointer<RowNumber>
    ) {
        let source = UnsafePointer(column.values(T.self))
        for position in 0..<batchRows.count {
            let batchRow = Int(batchRows.rows[position])
            row(rows[batchRow]).storeBytes(of: source[batchRow], toByteOffset: offset, as: T.self)
        }
    }

    /// Collects the batch rows that differ from the row found for them.
    func verify(_ columns: [Column], count: Int, rows: UnsafePointer<RowNumber>, differing: inout Selection) {
        let flags = clearedFlags(count: count)
        let places = places(of: rows, count: count)
        let isByValue = equality == .values
        for (index, column) in columns.enumerated() {
            let offset = layout.offsets[index]
            switch column.type.physical {
            case .bool8: compare(UInt8.self, column, offset, count, places, flags) { $0 == $1 }
            case .int16: compare(UInt16.self, column, offset, count, places, flags) { $0 == $1 }
            case .int32: compare(UInt32.self, column, offset, count, places, flags) { $0 == $1 }
            case .int64: compare(UInt64.self, column, offset, count, places, flags) { $0 == $1 }
            case .float32 where isByValue: compare(Float.self, column, offset, count, places, flags) { $0 == $1 || ($0.isNaN && $1.isNaN) }
            case .float32: compare(Float.self, column, offset, count, places, flags) { $0.isIdentical(to: $1) }
            case .float64 where isByValue: compare(Double.self, column, offset, count, places, flags) { $0 == $1 || ($0.isNaN && $1.isNaN) }
            case .float64: compare(Double.self, column, offset, count, places, flags) { $0.isIdentical(to: $1) }
            case .decimal where isByValue: compare(Decimal.self, column, offset, count, places, flags) { Decimal.order($0, $1) == 0 }
            case .decimal: compare(Decimal.self, column, offset, count, places, flags) { $0.isIdentical(to: $1) }
            case .interval where isByValue: compare(Interval.self, column, offset, count, places, flags) { $0.comparable == $1.comparable }
            case .interval: compare(Interval.self, column, offset, count, places, flags) { $0 == $1 }
            case .string: compare(StringView.self, column, offset, count, places, flags) { $0 == $1 }
            }
            // A missing value is zero on both sides; only its bit tells it from a zero.
            let nullOffset = RowLayout.nullOffset + index / 64 * 8
            let shift = UInt64(index % 64)
            if let validity = column.validity {
                for row in 0..<count {
                    let missing = ~(validity[row >> 6] &>> UInt64(row & 63)) & 1
                    let stored = places[row].load(fromByteOffset: nullOffset, as: UInt64.self) &>> shift & 1
                    flags[row] |= UInt8(truncatingIfNeeded: missing ^ stored)
                }
            } else if hasNulls[index] {
                for row in 0..<count {
                    flags[row] |= UInt8(truncatingIfNeeded: places[row].load(fromByteOffset: nullOffset, as: UInt64.self) &>> shift & 1)
                }
            }
        }
        differing.count = 0
        for row in 0..<count where flags[row] != 0 {
            differing.append(row)
        }
    }

    @inline(__always)
    private func compare<T: BitwiseCopyable>(
        _: T.Type, _ column: Column, _ offset: Int, _ count: Int, _ places: UnsafePointer<UnsafeMutableRawPointer>, _ flags: UnsafeMutablePointer<UInt8>,
        _ equal: (T, T) -> Bool
    ) {
        let source = UnsafePointer(column.values(T.self))
        for batchRow in 0..<count {
            let same = equal(source[batchRow], places[batchRow].load(fromByteOffset: offset, as: T.self))
            flags[batchRow] |= unsafeBitCast(same, to: UInt8.self) ^ 1
        }
    }

    /// Whether a stored row is the same as one batch row in all columns, in the table's sense of equality.
    func equals(_ number: RowNumber, _ columns: [Column], _ batchRow: Int) -> Bool {
        for (index, column) in columns.enumerated() where !equals(number, index, column, batchRow, by: equality) { return false }
        return true
    }

    /// Whether column `index` of a stored row equals one value of a batch ("is not distinct from", whatever the table's equality).
    package func equals(_ number: RowNumber, _ index: Int, _ column: Column, _ batchRow: Int) -> Bool {
        equals(number, index, column, batchRow, by: .values)
    }

    private func equals(_ number: RowNumber, _ index: Int, _ column: Column, _ batchRow: Int, by equality: RowEquality) -> Bool {
        guard let place = value(number, index), !column.isNull(batchRow) else { return value(number, index) == nil && column.isNull(batchRow) }
        let isByValue = equality == .values
        switch column.type.physical {
        case .bool8: return place.load(as: UInt8.self) == column.values(UInt8.self)[batchRow]
        case .int16: return place.load(as: UInt16.self) == column.values(UInt16.self)[batchRow]
        case .int32: return place.load(as: UInt32.self) == column.values(UInt32.self)[batchRow]
        case .int64: return place.load(as: UInt64.self) == column.values(UInt64.self)[batchRow]
        case .float32:
            let (left, right) = (place.load(as: Float.self), column.values(Float.self)[batchRow])
            return left.isIdentical(to: right) || (isByValue && left == right)
        case .float64:
            let (left, right) = (place.load(as: Double.self), column.values(Double.self)[batchRow])
            return left.isIdentical(to: right) || (isByValue && left == right)
        case .decimal:
            let (left, right) = (place.load(as: Decimal.self), column.values(Decimal.self)[batchRow])
            return isByValue ? Decimal.order(left, right) == 0 : left.isIdentical(to: right)
        case .interval:
            let (left, right) = (place.load(as: Interval.self), column.values(Interval.self)[batchRow])
            return isByValue ? left.comparable == right.comparable : left == right
        case .string: return place.load(as: StringView.self) == column.values(StringView.self)[batchRow]
        }
    }

    /// Where the value of column `index` lies in a stored row, until the row is changed; nil when it is missing.
    @inline(__always) package func value(_ number: RowNumber, _ index: Int) -> UnsafeRawPointer? {
        let row = row(number)
        let word = row.load(fromByteOffset: RowLayout.nullOffset + index / 64 * 8, as: UInt64.self)
        return word >> UInt64(index % 64) & 1 != 0 ? nil : UnsafeRawPointer(row + layout.offsets[index])
    }

    /// The values of column `index` at `rows`. Strings point into the table's heap, which the column keeps alive.
    package func gather(_ index: Int, rows: UnsafePointer<RowNumber>, count: Int) -> Column {
        RowReader(layout: layout, heap: heap).gather(index, count: count) { row(rows[$0]) }
    }

    /// All columns at `rows`.
    package func gather(rows: UnsafePointer<RowNumber>, count: Int) -> [Column] {
        layout.columns.indices.map { gather($0, rows: rows, count: count) }
    }
}

/// Rows back to columns, for a table and for a snapshot of one.
struct RowReader {
    let layout: RowLayout
    let heap: StringHeap

    @inline(__always)
    func gather(_ index: Int, count: Int, _ row: (Int) -> UnsafeMutableRawPointer) -> Column {
        let type = layout.columns[index]
        let result = Column(type, uninitialized: count)
        let offset = layout.offsets[index]
        switch type.physical {
        case .bool8: copy(UInt8.self, to: result, offset, count, row)
        case .int16: copy(UInt16.self, to: result, offset, count, row)
        case .int32, .float32: copy(UInt32.self, to: result, offset, count, row)
        case .int64, .float64: copy(UInt64.self, to: result, offset, count, row)
        case .decimal: copy(Decimal.self, to: result, offset, count, row)
        case .interval: copy(Interval.self, to: result, offset, count, row)
        case .string:
            copy(StringView.self, to: result, offset, count, row)
            result.keep(heap)
        }
        let nullOffset = RowLayout.nullOffset + index / 64 * 8
        let shift = UInt64(index % 64)
        var any: UInt64 = 0
        for position in 0..<count { any |= row(position).load(fromByteOffset: nullOffset, as: UInt64.self) &>> shift & 1 }
        guard any != 0 else { return result }
        let bitmap = result.ensureValidity()
        for position in 0..<count where row(position).load(fromByteOffset: nullOffset, as: UInt64.self) &>> shift & 1 != 0 {
            bitmap[position >> 6] &= ~(1 << UInt64(position & 63))
        }
        return result
    }

    @inline(__always)
    private func copy<T: BitwiseCopyable>(_: T.Type, to result: Column, _ offset: Int, _ count: Int, _ row: (Int) -> UnsafeMutableRawPointer) {
        let target = result.values(T.self)
        for position in 0..<count { target[position] = row(position).load(fromByteOffset: offset, as: T.self) }
    }
}
