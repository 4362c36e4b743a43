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
        case .bool8: return kernel(comparison, value, ByOperator<UInt8>.self)
        case .int16: return kernel(comparison, value, ByOperator<Int16>.self)
        case .int32: return kernel(comparison, value, ByOperator<Int32>.self)
        case .int64: return kernel(comparison, value, ByOperator<Int64>.self)
        case .float32: return kernel(comparison, value, ByTotalOrder<Float>.self)
        case .float64: return kernel(comparison, value, ByTotalOrder<Double>.self)
        case .decimal: return kernel(comparison, value, ByDecimal.self)
        case .interval: return kernel(comparison, value, ByLength.self)
        case .string: return kernel(comparison, value, ByBytes.self)
        }
    }

    /// How two present values of a type compare. A type, not a closure: the loop over a batch is then compiled with the comparison in it.
    private protocol Order {
        associatedtype Value: BitwiseCopyable
        static func isEqual(_ a: Value, _ b: Value) -> Bool
        static func isLess(_ a: Value, _ b: Value) -> Bool
    }

    /// Types whose own operators are SQL's.
    private enum ByOperator<Value: Comparable & BitwiseCopyable>: Order {
        @inline(__always) static func isEqual(_ a: Value, _ b: Value) -> Bool { a == b }
        @inline(__always) static func isLess(_ a: Value, _ b: Value) -> Bool { a < b }
    }

    /// NaN equals itself and is above everything.
    private enum ByTotalOrder<Value: BinaryFloatingPoint & BitwiseCopyable>: Order {
        @inline(__always) static func isEqual(_ a: Value, _ b: Value) -> Bool { a == b || (a.isNaN && b.isNaN) }
        @inline(__always) static func isLess(_ a: Value, _ b: Value) -> Bool { a < b || (b.isNaN && !a.isNaN) }
    }

    private enum ByDecimal: Order {
        @inline(__always) static func isEqual(_ a: Decimal, _ b: Decimal) -> Bool { Decimal.order(a, b) == 0 }
        @inline(__always) static func isLess(_ a: Decimal, _ b: Decimal) -> Bool { Decimal.order(a, b) < 0 }
    }

    private enum ByLength: Order {
        @inline(__always) static func isEqual(_ a: Interval, _ b: Interval) -> Bool { a.comparable == b.comparable }
        @inline(__always) static func isLess(_ a: Interval, _ b: Interval) -> Bool { a.comparable < b.comparable }
    }

    private enum ByBytes: Order {
        @inline(__always) static func isEqual(_ a: StringView, _ b: StringView) -> Bool { a == b }
        @inline(__always) static func isLess(_ a: StringView, _ b: StringView) -> Bool { StringView.compare(a, b) < 0 }
    }

    @inline(__always) private static func byte(_ flag: Bool) -> UInt8 { unsafeBitCast(flag, to: UInt8.self) }

    @inline(__always)
    private static func kernel<O: Order>(_ comparison: Comparison, _ constant: Column?, _: O.Type) -> Kernel {
        guard let constant else {
            switch comparison {
            case .equal: return { columns, _, _ in Loops.binary(columns[0], columns[1], .boolean) { byte(O.isEqual($0, $1)) } }
            case .notEqual: return { columns, _, _ in Loops.binary(columns[0], columns[1], .boolean) { byte(!O.isEqual($0, $1)) } }
            case .less: return { columns, _, _ in Loops.binary(columns[0], columns[1], .boolean) { byte(O.isLess($0, $1)) } }
            case .lessOrEqual: return { columns, _, _ in Loops.binary(columns[0], columns[1], .boolean) { byte(!O.isLess($1, $0)) } }
            case .greater: return { columns, _, _ in Loops.binary(columns[0], columns[1], .boolean) { byte(O.isLess($1, $0)) } }
            case .greaterOrEqual: return { columns, _, _ in Loops.binary(columns[0], columns[1], .boolean) { byte(!O.isLess($0, $1)) } }
            }
        }
        // The constant's column owns the bytes that a long string points to, so each kernel holds it.
        switch comparison {
        case .equal:
            return { columns, _, _ in
                let value = constant.values(O.Value.self)[0]
                return Loops.unary(columns[0], .boolean) { byte(O.isEqual($0, value)) }
            }
        case .notEqual:
            return { columns, _, _ in
                let value = constant.values(O.Value.self)[0]
                return Loops.unary(columns[0], .boolean) { byte(!O.isEqual($0, value)) }
            }
        case .less:
            return { columns, _, _ in
                let value = constant.values(O.Value.self)[0]
                return Loops.unary(columns[0], .boolean) { byte(O.isLess($0, value)) }
            }
        case .lessOrEqual:
            return { columns, _, _ in
                let value = constant.values(O.Value.self)[0]
                return Loops.unary(columns[0], .boolean) { byte(!O.isLess(value, $0)) }
            }
        case .greater:
            return { columns, _, _ in
                let value = constant.values(O.Value.self)[0]
                return Loops.unary(columns[0], .boolean) { byte(O.isLess(value, $0)) }
            }
        case .greaterOrEqual:
            return { columns, _, _ in
                let value = constant.values(O.Value.self)[0]
                return Loops.unary(columns[0], .boolean) { byte(!O.isLess($0, value)) }
            }
        }
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
