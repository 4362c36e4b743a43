/// Appending a value at a time: for tests, literals, system tables and other small input. An event's path writes `data`.
extension Column {
    package func appendNull() {
        count += 1
        setNull(count - 1)
    }

    package func append<T: BitwiseCopyable>(_ value: T) {
        precondition(count < capacity, "a column does not grow")
        precondition(MemoryLayout<T>.stride == type.physical.stride, "a value must have the column's width")
        data.storeBytes(of: value, toByteOffset: count * MemoryLayout<T>.stride, as: T.self)
        count += 1
    }

    package func append(_ string: String) { append(ownHeap().view(copying: string)) }

    package func append(bytes: UnsafeBufferPointer<UInt8>) { append(ownHeap().view(copying: bytes)) }

    /// Appends a scalar of this column's type, or a null.
    package func append(_ scalar: Scalar) {
        switch scalar {
        case .null: appendNull()
        case .boolean(let value): append(UInt8(value ? 1 : 0))
        case .int(let value):
            switch type.physical {
            case .int16: append(Int16(truncatingIfNeeded: value))
            case .int32: append(Int32(truncatingIfNeeded: value))
            default: append(value)
            }
        case .float(let value):
            if type == .float32 { append(Float(value)) } else { append(value) }
        case .decimal(let value): append(value)
        case .string(let value): append(value)
        case .bytes(let value): value.withUnsafeBufferPointer { append(bytes: $0) }
        case .interval(let value): append(value)
        }
    }

    /// The first `filled` values in a column with more room, which takes this one's place: they share what new strings go to.
    package func grown(to capacity: Int, filled: Int) -> Column {
        let larger = Column(type, capacity: capacity)
        larger.data.copyMemory(from: data, byteCount: filled * type.physical.stride)
        if let bits = validity { larger.ensureValidity().update(from: bits, count: (filled + 63) / 64) }
        larger.heaps = heaps
        larger.own = own
        larger.count = filled
        return larger
    }

    /// The value at a row. Slow: one switch and, for strings, a copy per call.
    package func scalar(_ row: Int) -> Scalar {
        if isNull(row) { return .null }
        switch type.physical {
        case .bool8: return .boolean(values(UInt8.self)[row] != 0)
        case .int16: return .int(Int64(values(Int16.self)[row]))
        case .int32: return .int(Int64(values(Int32.self)[row]))
        case .int64: return .int(values(Int64.self)[row])
        case .float32: return .float(Double(values(Float.self)[row]))
        case .float64: return .float(values(Double.self)[row])
        case .decimal: return .decimal(values(Decimal.self)[row])
        case .interval: return .interval(values(Interval.self)[row])
        case .string:
            let view = values(StringView.self)[row]
            return type == .bytea ? .bytes(view.withBytes { Array($0) }) : .string(String(view))
        }
    }

    /// `count` copies of one value.
    package static func constant(_ scalar: Scalar, _ type: SQLType, count: Int) -> Column {
        let column = Column(type, uninitialized: count)
        guard count > 0 else { return column }
        if case .null = scalar {
            column.data.initializeMemory(as: UInt8.self, repeating: 0, count: count * type.physical.stride)
            column.ensureValidity().update(repeating: 0, count: column.validityWords)
            return column
        }
        column.count = 0
        column.append(scalar)
        column.count = count
        let stride = type.physical.stride
        var filled = 1
        while filled < count {
            let step = min(filled, count - filled)
            (column.data + filled * stride).copyMemory(from: column.data, byteCount: step * stride)
            filled += step
        }
        return column
    }

    /// `count` rows of which the first `count` values of `data` are already written; for builders that fill `data`.
    package func setCount(_ count: Int) {
        precondition(count <= capacity, "a column does not grow")
        self.count = count
    }
}
