import MillColumnar

/// `= <> < <= > >=` on every type, between columns or against a constant, and GREATEST and LEAST.
enum ComparisonKernels {
    enum Comparison: String {
        case equal
        case notEqual = "not_equal"
        case less
        case lessOrEqual = "less_or_equal"
        case greater
        case greaterOrEqual = "greater_or_equal"

        /// What holds for (b, a) when this holds for (a, b).
        var mirrored: Comparison {
            switch self {
            case .equal, .notEqual: self
            case .less: .greater
            case .lessOrEqual: .greaterOrEqual
            case .greater: .less
            case .greaterOrEqual: .lessOrEqual
            }
        }
    }

    static func make(_ function: ScalarFunction, _ constants: [Scalar?]) -> (Kernel, takenConstant: Int?)? {
        if function.name == "greatest" || function.name == "least" { return (extreme(function.argumentTypes[0], greatest: function.name == "greatest"), nil) }
        guard let comparison = Comparison(rawValue: function.name), function.argumentTypes.count == 2 else { return nil }
        let type = function.argumentTypes[0]
        if let constant = constants[1], !constant.isNull { return (kernel(type, comparison, constant), 1) }
        if let constant = constants[0], !constant.isNull { return (kernel(type, comparison.mirrored, constant), 0) }
        return (kernel(type, comparison, nil), nil)
    }

    private static func kernel(_ type: SQLType, _ comparison: Comparison, _ constant: Scalar?) -> Kernel {
        let value = constant.map { Column.constant($0, type, count: 1) }
        switch type.physical {
        case .bool8: return comparable(comparison, value, UInt8.self)
        case .int16: return comparable(comparison, value, Int16.self)
        case .int32: return comparable(comparison, value, Int32.self)
        case .int64: return comparable(comparison, value, Int64.self)
        case .float32: return ordered(comparison, value, Float.self) { order($0, $1) }
        case .float64: return ordered(comparison, value, Double.self) { order($0, $1) }
        case .decimal: return ordered(comparison, value, Decimal.self) { Decimal.order($0, $1) }
        case .interval: return ordered(comparison, value, Interval.self) { order($0.comparable, $1.comparable) }
        case .string: return strings(comparison, value)
        }
    }

    @inline(__always) private static func byte(_ flag: Bool) -> UInt8 { unsafeBitCast(flag, to: UInt8.self) }

    @inline(__always) private static func order<T: Comparable>(_ a: T, _ b: T) -> Int { a < b ? -1 : a > b ? 1 : 0 }

    /// NaN equals itself and is above everything.
    @inline(__always) private static func order<T: BinaryFloatingPoint>(_ a: T, _ b: T) -> Int {
        if a < b { return -1 }
        if a > b { return 1 }
        return a == b ? 0 : (a.isNaN ? 1 : 0) - (b.isNaN ? 1 : 0)
    }

    /// Types whose own operators are SQL's.
    @inline(__always)
    private static func comparable<T: Comparable & BitwiseCopyable>(_ comparison: Comparison, _ constant: Column?, _: T.Type) -> Kernel {
        switch comparison {
        case .equal: make(constant) { (a: T, b: T) in a == b }
        case .notEqual: make(constant) { (a: T, b: T) in a != b }
        case .less: make(constant) { (a: T, b: T) in a < b }
        case .lessOrEqual: make(constant) { (a: T, b: T) in a <= b }
        case .greater: make(constant) { (a: T, b: T) in a > b }
        case .greaterOrEqual: make(constant) { (a: T, b: T) in a >= b }
        }
    }

    @inline(__always)
    private static func ordered<T: BitwiseCopyable>(_ comparison: Comparison, _ constant: Column?, _: T.Type, _ order: @escaping (T, T) -> Int) -> Kernel {
        switch comparison {
        case .equal: make(constant) { (a: T, b: T) in order(a, b) == 0 }
        case .notEqual: make(constant) { (a: T, b: T) in order(a, b) != 0 }
        case .less: make(constant) { (a: T, b: T) in order(a, b) < 0 }
        case .lessOrEqual: make(constant) { (a: T, b: T) in order(a, b) <= 0 }
        case .greater: make(constant) { (a: T, b: T) in order(a, b) > 0 }
        case .greaterOrEqual: make(constant) { (a: T, b: T) in order(a, b) >= 0 }
        }
    }

    private static func strings(_ comparison: Comparison, _ constant: Column?) -> Kernel {
        switch comparison {
        case .equal: make(constant) { (a: StringView, b: StringView) in a == b }
        case .notEqual: make(constant) { (a: StringView, b: StringView) in !(a == b) }
        case .less: make(constant) { (a: StringView, b: StringView) in StringView.compare(a, b) < 0 }
        case .lessOrEqual: make(constant) { (a: StringView, b: StringView) in StringView.compare(a, b) <= 0 }
        case .greater: make(constant) { (a: StringView, b: StringView) in StringView.compare(a, b) > 0 }
        case .greaterOrEqual: make(constant) { (a: StringView, b: StringView) in StringView.compare(a, b) >= 0 }
        }
    }

    @inline(__always)
    private static func make<T: BitwiseCopyable>(_ constant: Column?, _ test: @escaping (T, T) -> Bool) -> Kernel {
        if let constant {
            return { columns, _, _ in
                // The constant's column owns the bytes that a long string points to.
                withExtendedLifetime(constant) {
                    let value = constant.values(T.self)[0]
                    return Loops.unary(columns[0], .boolean) { (a: T) in byte(test(a, value)) }
                }
            }
        }
        return { columns, _, _ in Loops.binary(columns[0], columns[1], .boolean) { (a: T, b: T) in byte(test(a, b)) } }
    }

    /// Missing values are skipped; only when all are missing is the result.
    private static func extreme(_ type: SQLType, greatest: Bool) -> Kernel {
        { columns, count, _ in
            let result = Column(type, capacity: count)
            for column in columns { result.keep(column.heaps) }
            let stride = type.physical.stride
            for row in 0..<count {
                var best: Column?
                for column in columns where !column.isNull(row) {
                    guard let current = best else {
                        best = column
                        continue
                    }
                    let order = column.compare(row, to: current, row)
                    if greatest ? order > 0 : order < 0 { best = column }
                }
                if let best {
                    (result.data + row * stride).copyMemory(from: best.data + row * stride, byteCount: stride)
                    result.setCount(row + 1)
                } else {
                    result.appendNull()
                }
            }
            return result
        }
    }
}
