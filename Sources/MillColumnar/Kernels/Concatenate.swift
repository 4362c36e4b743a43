import MillBase

/// Collects rows of many batches into batches of at most `rowsMax` rows: the output side of exchanges and operators.
///
/// Values are copied column by column; long strings are shared by keeping the source's heaps, not copied, until a column
/// would keep more than `heapsMax` of them. Weights stay nil while every row has weight +1. Rows come out in the order in
/// which they were appended. Owned by one thread.
package struct BatchBuilder: ~Copyable {
    package let types: [SQLType]
    private let rowsMax: Int
    private var columns: [ColumnBuilder] = []
    private var count = 0
    /// Rows for which every column has room.
    private var capacity = 0
    private var weights: Weights?
    private var finished: [DeltaBatch] = []

    /// Columns start with room for so many rows.
    private static let capacityMin = 64
    /// A source with fewer rows is copied rather than passed on as it is.
    private static let passedOnRowsMin = 1024

    package init(_ types: [SQLType], rowsMax: Int = Limits.batchRowsMax) {
        precondition(rowsMax > 0 && rowsMax <= Limits.batchRowsMax, "a batch has at least one row and keeps the limit")
        self.types = types
        self.rowsMax = rowsMax
    }

    /// Rows appended and not yet in a finished batch.
    package var openCount: Int { count }

    /// Whether `take` would give nothing.
    package var isEmpty: Bool { count == 0 && finished.isEmpty }

    /// Appends the rows at `rows`, with `newWeights` (one per entry of `rows`) in place of their own when given.
    package mutating func append(
        _ batch: DeltaBatch, rows: UnsafePointer<UInt32>, count total: Int, weights newWeights: UnsafePointer<Int64>? = nil
    ) {
        var done = 0
        while done < total {
            let step = prepare(total - done)
            for index in columns.indices { columns[index].append(batch.columns[index], rows + done, step, at: count) }
            if let newWeights {
                for index in 0..<step { setWeight(newWeights[done + index], at: count + index) }
            } else if let source = batch.weights {
                for index in 0..<step { setWeight(source.values[Int(rows[done + index])], at: count + index) }
            }
            advance(step)
            done += step
        }
    }

    /// Appends the selected rows.
    package mutating func append(_ batch: DeltaBatch, _ selection: borrowing Selection) {
        append(batch, rows: selection.rows, count: selection.count)
    }

    /// Appends the rows of a range.
    package mutating func append(_ batch: DeltaBatch, range: Range<Int>) {
        precondition(range.lowerBound >= 0 && range.upperBound <= batch.count, "a range lies in its batch")
        var start = range.lowerBound
        while start < range.upperBound {
            let step = prepare(range.upperBound - start)
            for index in columns.indices { columns[index].append(batch.columns[index], from: start, step, at: count) }
            if let source = batch.weights {
                for index in 0..<step { setWeight(source.values[start + index], at: count + index) }
            }
            advance(step)
            start += step
        }
    }

    /// Appends a whole batch; a large one that starts a new batch is passed on without copying.
    package mutating func append(_ batch: DeltaBatch) {
        if count == 0, batch.count >= min(Self.passedOnRowsMin, rowsMax), batch.count <= rowsMax {
            finished.append(batch)
        } else {
            append(batch, range: 0..<batch.count)
        }
    }

    /// Appends one row, with `weight` in place of its own when given.
    package mutating func append(_ batch: DeltaBatch, row: Int, weight: Int64? = nil) {
        append(batch.columns, row: row, weight: weight ?? batch.weight(row))
    }

    /// Appends one row of columns that need not be in a batch yet.
    package mutating func append(_ source: [Column], row: Int, weight: Int64) {
        precondition(source.count == types.count, "a row has the builder's columns")
        _ = prepare(1)
        for index in columns.indices { columns[index].append(source[index], row: row, at: count) }
        setWeight(weight, at: count)
        advance(1)
    }

    /// The finished batches and, as the last one, the open rows; the builder is empty afterwards.
    package mutating func take() -> [DeltaBatch] {
        close()
        let result = finished
        finished = []
        return result
    }

    /// Only the batches that are full; open rows stay.
    package mutating func takeFull() -> [DeltaBatch] {
        let result = finished
        finished = []
        return result
    }

    /// Makes room and says how many of `wanted` rows may be written now.
    private mutating func prepare(_ wanted: Int) -> Int {
        if columns.isEmpty { columns = types.map(ColumnBuilder.init) }
        let step = min(wanted, rowsMax - count)
        if count + step > capacity {
            capacity = min(rowsMax, max(count + step, capacity * 4, Self.capacityMin))
            for index in columns.indices { columns[index].grow(to: capacity, filled: count) }
        }
        return step
    }

    private mutating func advance(_ step: Int) {
        count += step
        if count == rowsMax { close() }
    }

    @inline(__always) private mutating func setWeight(_ weight: Int64, at row: Int) {
        if weights == nil {
            if weight == 1 { return }
            let made = Weights(count: rowsMax)
            made.values.update(repeating: 1, count: rowsMax)
            weights = made
        }
        weights.unsafelyUnwrapped.values[row] = weight
    }

    private mutating func close() {
        guard count > 0 else { return }
        let rows = count
        let done = columns.map { $0.finish(rows) }
        if let all = weights, rows < all.count {
            let used = Weights(count: rows)
            used.values.update(from: all.values, count: rows)
            weights = used
        }
        finished.append(DeltaBatch(columns: done, count: rows, weights: weights))
        columns = []
        weights = nil
        count = 0
        capacity = 0
    }
}

/// One column of a builder: starts small, so that an epoch of few rows costs little, and grows to the batch's limit.
struct ColumnBuilder {
    private let type: SQLType
    private var column: Column
    /// The source whose heaps were kept last.
    private var lastSource: Column?
    private var copiesStrings = false

    /// Heaps of other batches that a column keeps at most; beyond, long strings are copied: a batch of a few rows from each
    /// of many sources must not hold all their memory.
    static let heapsMax = 64

    init(_ type: SQLType) {
        self.type = type
        column = Column(type, capacity: 0)
    }

    func finish(_ count: Int) -> Column {
        column.count = count
        if let bits = column.validity, Bitmap.isFull(bits, count) { column.adoptValidity(nil) }
        return column
    }

    mutating func grow(to capacity: Int, filled: Int) {
        column = column.grown(to: capacity, filled: filled)
    }

    mutating func append(_ source: Column, _ rows: UnsafePointer<UInt32>, _ count: Int, at start: Int) {
        precondition(source.type.physical == type.physical, "a column keeps its type")
        switch type.physical.stride {
        case 1: copy(UInt8.self, source, rows, count, start)
        case 2: copy(UInt16.self, source, rows, count, start)
        case 4: copy(UInt32.self, source, rows, count, start)
        case 8: copy(UInt64.self, source, rows, count, start)
        case 16: copy(StringView.self, source, rows, count, start)
        default: copy(Decimal.self, source, rows, count, start)
        }
        if let from = source.validity {
            let to = column.ensureValidity()
            for index in 0..<count {
                let row = Int(rows[index])
                Bitmap.set(to, start &+ index, from[row &>> 6] &>> UInt64(row & 63) & 1)
            }
        } else if let to = column.validity {
            Bitmap.fill(to, start, count)
        }
        if type.physical == .string { shareStrings(source, count, at: start) }
    }

    mutating func append(_ source: Column, row: Int, at target: Int) {
        precondition(source.type.physical == type.physical, "a column keeps its type")
        switch type.physical.stride {
        case 1: column.values(UInt8.self)[target] = source.values(UInt8.self)[row]
        case 2: column.values(UInt16.self)[target] = source.values(UInt16.self)[row]
        case 4: column.values(UInt32.self)[target] = source.values(UInt32.self)[row]
        case 8: column.values(UInt64.self)[target] = source.values(UInt64.self)[row]
        case 16: column.values(StringView.self)[target] = source.values(StringView.self)[row]
        default: column.values(Decimal.self)[target] = source.values(Decimal.self)[row]
        }
        if source.validity != nil || column.validity != nil {
            Bitmap.set(column.ensureValidity(), target, source.isNull(row) ? 0 : 1)
        }
        if type.physical == .string && !source.values(StringView.self)[row].isInline { shareStrings(source, 1, at: target) }
    }

    mutating func append(_ source: Column, from row: Int, _ count: Int, at start: Int) {
        precondition(source.type.physical == type.physical, "a column keeps its type")
        let stride = type.physical.stride
        (column.data + start &* stride).copyMemory(from: source.data + row &* stride, byteCount: count &* stride)
        if let from = source.validity {
            Bitmap.copy(from, row, to: column.ensureValidity(), start, count)
        } else if let to = column.validity {
            Bitmap.fill(to, start, count)
        }
        if type.physical == .string { shareStrings(source, count, at: start) }
    }

    @inline(__always)
    private func copy<T: BitwiseCopyable>(_: T.Type, _ source: Column, _ rows: UnsafePointer<UInt32>, _ count: Int, _ start: Int) {
        let from = UnsafePointer(source.values(T.self))
        let to = column.values(T.self) + start
        for index in 0..<count { to[index] = from[Int(rows[index])] }
    }

    private mutating func shareStrings(_ source: Column, _ count: Int, at start: Int) {
        if !copiesStrings {
            if source === lastSource { return }
            if column.heaps.count + source.heaps.count <= Self.heapsMax || column.heaps.isEmpty {
                column.keep(source.heaps)
                lastSource = source
                return
            }
            copiesStrings = true
            lastSource = nil
        }
        let heap = column.ownHeap()
        let views = column.values(StringView.self) + start
        for index in 0..<count where !views[index].isInline { views[index] = heap.view(copying: views[index]) }
    }
}

extension DeltaBatch {
    /// The rows of `batches` in order, in as few batches as the limit allows.
    package static func concatenate(_ batches: [DeltaBatch]) -> [DeltaBatch] {
        guard let first = batches.first, batches.count > 1 else { return batches.filter { $0.count > 0 } }
        var builder = BatchBuilder(first.columns.map(\.type))
        for batch in batches { builder.append(batch) }
        return builder.take()
    }
}
