import MillBase

extension Column {
    /// The values at `rows`, in that order. Strings share this column's heaps.
    package func gather(_ rows: UnsafePointer<UInt32>, count: Int) -> Column {
        let result = Column(type, uninitialized: count)
        switch type.physical.stride {
        case 1: copyValues(UInt8.self, rows, count, to: result)
        case 2: copyValues(UInt16.self, rows, count, to: result)
        case 4: copyValues(UInt32.self, rows, count, to: result)
        case 8: copyValues(UInt64.self, rows, count, to: result)
        case 16: copyValues(StringView.self, rows, count, to: result)
        default: copyValues(Decimal.self, rows, count, to: result)
        }
        if let validity {
            let bitmap = UnsafeMutablePointer<UInt64>.allocate(capacity: max(result.validityWords, 1))
            var missing: UInt64 = 0
            for word in 0..<result.validityWords {
                var bits: UInt64 = 0
                let start = word * 64
                let end = min(start + 64, count)
                for index in start..<end {
                    let row = Int(rows[index])
                    bits |= (validity[row >> 6] &>> UInt64(row & 63) & 1) &<< UInt64(index - start)
                }
                missing |= ~bits & (end - start == 64 ? .max : (1 << UInt64(end - start)) - 1)
                bitmap[word] = bits
            }
            if missing == 0 { bitmap.deallocate() } else { result.adoptValidity(bitmap) }
        }
        result.heaps = heaps
        return result
    }

    @inline(__always)
    private func copyValues<T: BitwiseCopyable>(_: T.Type, _ rows: UnsafePointer<UInt32>, _ count: Int, to result: Column) {
        let source = UnsafePointer(values(T.self))
        let target = result.values(T.self)
        for index in 0..<count { target[index] = source[Int(rows[index])] }
    }
}

extension Column {
    /// The values at `rows`, in that order, with copies of long strings: nothing of this column stays in memory for their sake.
    package func gatherCopying(_ rows: UnsafePointer<UInt32>, count: Int) -> Column {
        let result = gather(rows, count: count)
        guard type.physical == .string else { return result }
        result.heaps = []
        let views = result.values(StringView.self)
        var byteCount = 0
        for row in 0..<count where !views[row].isInline { byteCount += views[row].count }
        guard byteCount > 0 else { return result }
        let heap = StringHeap(firstChunkBytes: byteCount)
        for row in 0..<count where !views[row].isInline { views[row] = heap.view(copying: views[row]) }
        result.keep(heap)
        return result
    }
}

extension DeltaBatch {
    /// The rows at `rows`, in that order.
    package func gather(_ rows: UnsafePointer<UInt32>, count: Int) -> DeltaBatch {
        let columns = columns.map { $0.gather(rows, count: count) }
        guard let weights else { return DeltaBatch(columns: columns, count: count) }
        let picked = Weights(count: count)
        for index in 0..<count { picked.values[index] = weights.values[Int(rows[index])] }
        return DeltaBatch(columns: columns, count: count, weights: picked)
    }
}

extension DeltaBatch {
    /// The rows from `start` up to `end`.
    package func slice(_ start: Int, _ end: Int) -> DeltaBatch {
        var rows = Selection(capacity: end - start)
        for row in start..<end { rows.rows[row - start] = UInt32(truncatingIfNeeded: row) }
        rows.count = end - start
        return gather(rows.rows, count: rows.count)
    }

    /// Calls `body` with the batch, or with its parts when it has more rows than operators have scratch room for.
    @inline(__always) package func forEachPart(_ body: (DeltaBatch) -> Void) {
        guard count > Limits.batchRowsMax else { return body(self) }
        for start in stride(from: 0, to: count, by: Limits.batchRowsMax) { body(slice(start, min(start + Limits.batchRowsMax, count))) }
    }
}
