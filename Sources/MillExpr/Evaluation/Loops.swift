import MillBase
import MillColumnar

/// The loops that all kernels are made of.
///
/// Each is inlined with its operation into the kernel that names the types, so that nothing generic is left at run time.
/// Missing rows have zero bytes in every column: operations run over them blindly, and their results are zeroed again.
enum Loops {
    // MARK: Validity

    /// Makes `result` missing where any operand is.
    @inline(__always) static func inheritNulls(_ result: Column, _ a: Column) {
        guard let validity = a.validity, result.count > 0 else { return }
        adopt(result, copy(validity, result.validityWords))
    }

    @inline(__always) static func inheritNulls(_ result: Column, _ a: Column, _ b: Column) {
        guard result.count > 0 else { return }
        guard let left = a.validity else { return inheritNulls(result, b) }
        guard let right = b.validity else { return inheritNulls(result, a) }
        let words = result.validityWords
        let bitmap = UnsafeMutablePointer<UInt64>.allocate(capacity: words)
        for word in 0..<words { bitmap[word] = left[word] & right[word] }
        adopt(result, bitmap)
    }

    static func inheritNulls(_ result: Column, _ columns: [Column]) {
        guard let bitmap = allPresent(columns, result.count) else { return }
        adopt(result, bitmap)
    }

    /// The AND of all bitmaps, nil when there are none.
    static func allPresent(_ columns: [Column], _ count: Int) -> UnsafeMutablePointer<UInt64>? {
        let words = (count + 63) / 64
        var bitmap: UnsafeMutablePointer<UInt64>?
        guard words > 0 else { return nil }
        for column in columns {
            guard let validity = column.validity else { continue }
            if let bitmap {
                for word in 0..<words { bitmap[word] &= validity[word] }
            } else {
                bitmap = copy(validity, words)
            }
        }
        return bitmap
    }

    private static func copy(_ validity: UnsafeMutablePointer<UInt64>, _ words: Int) -> UnsafeMutablePointer<UInt64> {
        let bitmap = UnsafeMutablePointer<UInt64>.allocate(capacity: words)
        bitmap.update(from: validity, count: words)
        return bitmap
    }

    /// Takes the bitmap and zeroes the bytes of missing rows.
    static func adopt(_ result: Column, _ bitmap: UnsafeMutablePointer<UInt64>) {
        result.adoptValidity(bitmap)
        let stride = result.type.physical.stride
        for word in 0..<result.validityWords {
            let rows = min(64, result.count - word * 64)
            var missing = ~bitmap[word] & (rows >= 64 ? .max : (1 << UInt64(rows)) - 1)
            while missing != 0 {
                let row = word * 64 + missing.trailingZeroBitCount
                (result.data + row * stride).initializeMemory(as: UInt8.self, repeating: 0, count: stride)
                missing &= missing - 1
            }
        }
    }

    // MARK: Operations that cannot fail

    @inline(__always)
    static func unary<A, R>(_ a: Column, _ type: SQLType, _ operation: (A) -> R) -> Column {
        let count = a.count
        let result = Column(type, uninitialized: count)
        let left = UnsafePointer(a.values(A.self))
        let out = result.values(R.self)
        for row in 0..<count { out[row] = operation(left[row]) }
        inheritNulls(result, a)
        return result
    }

    @inline(__always)
    static func binary<A, B, R>(_ a: Column, _ b: Column, _ type: SQLType, _ operation: (A, B) -> R) -> Column {
        let count = a.count
        let result = Column(type, uninitialized: count)
        let left = UnsafePointer(a.values(A.self))
        let right = UnsafePointer(b.values(B.self))
        let out = result.values(R.self)
        for row in 0..<count { out[row] = operation(left[row], right[row]) }
        inheritNulls(result, a, b)
        return result
    }

    // MARK: Operations with a flag

    /// `operation` gives a value and whether it failed; the flags are only looked at row by row when any was set.
    @inline(__always)
    static func checkedUnary<A, R>(
        _ a: Column, _ type: SQLType, _ frame: EvaluationFrame, _ operation: (A) -> (R, Bool), _ error: (A) -> SQLError
    ) -> Column {
        let count = a.count
        let result = Column(type, uninitialized: count)
        let left = UnsafePointer(a.values(A.self))
        let out = result.values(R.self)
        var failed: UInt8 = 0
        for row in 0..<count {
            let (value, flag) = operation(left[row])
            out[row] = value
            failed |= unsafeBitCast(flag, to: UInt8.self)
        }
        inheritNulls(result, a)
        if failed != 0 {
            for row in 0..<count where !result.isNull(row) && operation(left[row]).1 {
                frame.errors.add(row, error(left[row]))
                result.setNull(row)
            }
        }
        return result
    }

    @inline(__always)
    static func checkedBinary<A, B, R>(
        _ a: Column, _ b: Column, _ type: SQLType, _ frame: EvaluationFrame, _ operation: (A, B) -> (R, Bool), _ error: (A, B) -> SQLError
    ) -> Column {
        let count = a.count
        let result = Column(type, uninitialized: count)
        let left = UnsafePointer(a.values(A.self))
        let right = UnsafePointer(b.values(B.self))
        let out = result.values(R.self)
        var failed: UInt8 = 0
        for row in 0..<count {
            let (value, flag) = operation(left[row], right[row])
            out[row] = value
            failed |= unsafeBitCast(flag, to: UInt8.self)
        }
        inheritNulls(result, a, b)
        if failed != 0 {
            for row in 0..<count where !result.isNull(row) && operation(left[row], right[row]).1 {
                frame.errors.add(row, error(left[row], right[row]))
                result.setNull(row)
            }
        }
        return result
    }

    // MARK: Operations row by row

    /// Calls `operation` for every row where all operands are present; it throws, gives a value or gives NULL.
    @inline(__always)
    static func rows<R: BitwiseCopyable>(
        _ columns: [Column], _ count: Int, _ type: SQLType, _ frame: EvaluationFrame, _ operation: (Int) throws(SQLError) -> R?
    ) -> Column {
        let result = Column(type, uninitialized: count)
        let out = result.values(R.self)
        inheritNulls(result, columns)
        for row in 0..<count where !result.isNull(row) {
            do throws(SQLError) {
                if let value = try operation(row) { out[row] = value } else { result.setNull(row) }
            } catch {
                frame.errors.add(row, error)
                result.setNull(row)
            }
        }
        return result
    }

    @inline(__always)
    static func tryUnary<A, R: BitwiseCopyable>(
        _ columns: [Column], _ count: Int, _ type: SQLType, _ frame: EvaluationFrame, _ operation: (A) throws(SQLError) -> R?
    ) -> Column {
        let left = UnsafePointer(columns[0].values(A.self))
        return rows(columns, count, type, frame) { row throws(SQLError) in try operation(left[row]) }
    }

    @inline(__always)
    static func tryBinary<A, B, R: BitwiseCopyable>(
        _ columns: [Column], _ count: Int, _ type: SQLType, _ frame: EvaluationFrame, _ operation: (A, B) throws(SQLError) -> R?
    ) -> Column {
        let left = UnsafePointer(columns[0].values(A.self))
        let right = UnsafePointer(columns[1].values(B.self))
        return rows(columns, count, type, frame) { row throws(SQLError) in try operation(left[row], right[row]) }
    }

    /// The same for results that are text: `operation` appends to the buffer, or gives false for NULL. With `strict` false
    /// it is also called for rows with missing operands.
    @inline(__always)
    static func text(
        _ columns: [Column], _ count: Int, _ type: SQLType, _ frame: EvaluationFrame, strict: Bool = true,
        _ operation: (Int, inout [UInt8]) throws(SQLError) -> Bool
    ) -> Column {
        let result = Column(type, uninitialized: count)
        let out = result.values(StringView.self)
        if strict { inheritNulls(result, columns) }
        let heap = result.ownHeap()
        var buffer: [UInt8] = []
        for row in 0..<count where !result.isNull(row) {
            buffer.removeAll(keepingCapacity: true)
            do throws(SQLError) {
                if try operation(row, &buffer) {
                    out[row] = buffer.withUnsafeBufferPointer { heap.view(copying: $0) }
                } else {
                    result.setNull(row)
                }
            } catch {
                frame.errors.add(row, error)
                result.setNull(row)
            }
        }
        return result
    }
}
