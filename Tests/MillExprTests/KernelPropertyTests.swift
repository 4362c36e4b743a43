import MillBase
import MillColumnar
import MillExpr
import Testing

/// Vectorised kernels against plain Swift on one row at a time: random columns with nulls, all sizes around a bitmap word,
/// column with column and column with constant.
struct KernelPropertyTests {
    private struct Generator: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &+ 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
            return z ^ z >> 31
        }
    }

    private static let sizes = [0, 1, 63, 64, 65, 200]

    private func integers<T: FixedWidthInteger & BitwiseCopyable>(_ type: SQLType, _: T.Type, _ count: Int, _ random: inout Generator, nulls: Bool) -> Column {
        let column = Column(type, capacity: count)
        let edges: [T] = [.min, .max, 0, 1, .max - 1, T.min + 1]
        for _ in 0..<count {
            switch UInt8.random(in: 0...9, using: &random) {
            case 0 where nulls: column.appendNull()
            case 1, 2: column.append(edges.randomElement(using: &random) ?? 0)
            default: column.append(T(truncatingIfNeeded: Int.random(in: -20...20, using: &random)))
            }
        }
        return column
    }

    private func call(_ symbol: String, _ left: BoundExpression, _ right: BoundExpression) throws -> CompiledExpression {
        try CompiledExpression(FunctionRegistry.resolveOperator(symbol, left: left.type, right: right.type).call([left, right]))
    }

    /// The value and whether it fails, by 128-bit arithmetic.
    private func reference<T: FixedWidthInteger>(_ symbol: String, _ a: T, _ b: T) -> (Int64?, failed: Bool) {
        let x = Int128(a)
        let y = Int128(b)
        let exact: Int128
        switch symbol {
        case "+": exact = x + y
        case "-": exact = x - y
        case "*": exact = x * y
        case "/":
            if y == 0 { return (nil, true) }
            exact = x / y
        case "%":
            if y == 0 { return (nil, true) }
            exact = x % y
        case "=": return (x == y ? 1 : 0, false)
        case "<>": return (x != y ? 1 : 0, false)
        case "<": return (x < y ? 1 : 0, false)
        case "<=": return (x <= y ? 1 : 0, false)
        case ">": return (x > y ? 1 : 0, false)
        default: return (x >= y ? 1 : 0, false)
        }
        guard let value = T(exactly: exact) else { return (nil, true) }
        return (Int64(value), false)
    }

    private func number(_ column: Column, _ row: Int) -> Int64? {
        switch column.scalar(row) {
        case .int(let value): value
        case .boolean(let value): value ? 1 : 0
        default: nil
        }
    }

    private func check<T: FixedWidthInteger & BitwiseCopyable>(_ type: SQLType, _: T.Type, seed: UInt64) throws {
        var random = Generator(state: seed)
        for symbol in ["+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">="] {
            for size in Self.sizes {
                let a = integers(type, T.self, size, &random, nulls: size % 2 == 1)
                let b = integers(type, T.self, size, &random, nulls: size % 3 == 0)
                let constant = T(truncatingIfNeeded: Int.random(in: -3...3, using: &random))
                let batch = DeltaBatch(columns: [a, b], count: size)
                let literal = BoundExpression.literal(.int(Int64(constant)), type)
                let forms: [(CompiledExpression, (Int) -> (T, T))] = [
                    (try call(symbol, .column(0, type), .column(1, type)), { (a.values(T.self)[$0], b.values(T.self)[$0]) }),
                    (try call(symbol, .column(0, type), literal), { (a.values(T.self)[$0], constant) }),
                    (try call(symbol, literal, .column(1, type)), { (constant, b.values(T.self)[$0]) }),
                ]
                for (form, (expression, operands)) in forms.enumerated() {
                    var errors = RowErrors()
                    let result = expression.evaluate(batch, errors: &errors)
                    let failed = Set(errors.entries.map(\.row))
                    for row in 0..<size {
                        let missing = (form != 2 && a.isNull(row)) || (form != 1 && b.isNull(row))
                        let (x, y) = operands(row)
                        let (expected, fails) = missing ? (nil, false) : reference(symbol, x, y)
                        guard number(result, row) == expected, failed.contains(row) == fails else {
                            Issue.record("\(x) \(symbol) \(y) of \(type) gives \(String(describing: number(result, row))), seed \(seed)")
                            return
                        }
                    }
                    #expect(missingBytesAreZero(result))
                }
            }
        }
    }

    private func missingBytesAreZero(_ column: Column) -> Bool {
        let stride = column.type.physical.stride
        for row in 0..<column.count where column.isNull(row) {
            for byte in 0..<stride where (column.data + row * stride + byte).load(as: UInt8.self) != 0 { return false }
        }
        return true
    }

    @Test func integerKernelsAgreeWithWideArithmetic() throws {
        for seed in UInt64(1)...3 {
            try check(.int16, Int16.self, seed: seed)
            try check(.int32, Int32.self, seed: seed)
            try check(.int64, Int64.self, seed: seed)
        }
    }

    @Test func logicHasThreeValues() throws {
        let values: [Bool?] = [true, false, nil]
        let a = Column(.boolean, capacity: 9)
        let b = Column(.boolean, capacity: 9)
        for left in values {
            for right in values {
                a.append(left.map { .boolean($0) } ?? .null)
                b.append(right.map { .boolean($0) } ?? .null)
            }
        }
        let batch = DeltaBatch(columns: [a, b], count: 9)
        var errors = RowErrors()
        let and = try CompiledExpression(.and([.column(0, .boolean), .column(1, .boolean)])).evaluate(batch, errors: &errors)
        let or = try CompiledExpression(.or([.column(0, .boolean), .column(1, .boolean)])).evaluate(batch, errors: &errors)
        let not = try CompiledExpression(.not(.column(0, .boolean))).evaluate(batch, errors: &errors)
        func shown(_ column: Column) -> String { (0..<9).map { column.text($0) ?? "n" }.joined() }
        #expect(shown(and) == "tfnfffnfn")
        #expect(shown(or) == "ttttfntnn")
        #expect(shown(not) == "ffftttnnn")
        for column in [and, or, not] { #expect(missingBytesAreZero(column)) }
    }

    @Test func errorsOfRowsThatDoNotDependOnTheOperandAreDropped() throws {
        let x = Column(.int32, capacity: 4)
        for value in [0, 1, 2] { x.append(Int32(value)) }
        x.appendNull()
        let batch = DeltaBatch(columns: [x], count: 4)
        let column = BoundExpression.column(0, .int32)
        let zero = BoundExpression.literal(.int(0), .int32)
        let one = BoundExpression.literal(.int(1), .int32)
        func op(_ symbol: String, _ a: BoundExpression, _ b: BoundExpression) throws -> BoundExpression {
            try FunctionRegistry.resolveOperator(symbol, left: a.type, right: b.type).call([a, b], at: SourceSpan(3, 8))
        }
        let quotient = try op("/", one, column)
        let nonZero = try op("<>", column, zero)
        let large = try op(">", quotient, zero)
        for conjunction in [[nonZero, large], [large, nonZero]] {
            var errors = RowErrors()
            let result = try CompiledExpression(.and(conjunction)).evaluate(batch, errors: &errors)
            #expect(errors.isEmpty)
            #expect((0..<4).map { result.text($0) } == ["f", "t", "f", nil])
        }
        var errors = RowErrors()
        let guarded = BoundExpression.caseWhen([.init(nonZero, quotient)], otherwise: .literal(.int(-1), .int32), .int32)
        let result = try CompiledExpression(guarded).evaluate(batch, errors: &errors)
        #expect(errors.isEmpty)
        #expect((0..<4).map { result.text($0) } == ["-1", "1", "0", "-1"])
        let bare = try CompiledExpression(.isNull(quotient)).evaluate(batch, errors: &errors)
        #expect(errors.entries.map(\.row) == [0])
        #expect(errors.entries.first?.error == SQLError(.divisionByZero, "division by zero", at: SourceSpan(3, 8)))
        #expect((0..<4).map { bare.text($0) } == [nil, "f", "f", "t"])
        errors.removeAll()
        let first = try CompiledExpression(.coalesce([column, quotient], .int32)).evaluate(batch, errors: &errors)
        #expect(errors.isEmpty)
        #expect(first.isNull(3))
        // A constant that fails does so only for rows that reach it.
        let never = BoundExpression.caseWhen([.init(.isNull(column), try op("/", one, zero))], otherwise: one, .int32)
        _ = try CompiledExpression(never).evaluate(batch, errors: &errors)
        #expect(errors.entries.map(\.row) == [3])
    }

    @Test func tumblingWindowsFloorAndRefuseMonths() throws {
        let times = Column(.timestamptz, capacity: 5)
        for micros in [0, 14_999_999, 15_000_000, -1, Int64.max] as [Int64] { times.append(micros) }
        func start(_ size: Interval) throws -> CompiledExpression {
            let resolved = try FunctionRegistry.resolve(name: "tumble_start", arguments: [.timestamptz, .interval])
            #expect(resolved.type == .timestamptz)
            return try CompiledExpression(resolved.call([.column(0, .timestamptz), .literal(.interval(size), .interval)]))
        }
        let batch = DeltaBatch(columns: [times], count: 5)
        var errors = RowErrors()
        let result = try start(Interval(micros: 15_000_000)).evaluate(batch, errors: &errors)
        #expect((0..<5).map { result.values(Int64.self)[$0] } == [0, 0, 15_000_000, -15_000_000, .max])
        _ = try start(Interval(months: 1)).evaluate(batch, errors: &errors)
        #expect(errors.entries.count == 5)
        #expect(errors.entries.first?.error.sqlState == .invalidParameterValue)
    }

    @Test func membershipFollowsNulls() throws {
        let names = Column(.varchar, capacity: 5)
        for name in ["red", "a name of more than twelve bytes", "a name of more than twelve bytez", ""] { names.append(name) }
        names.appendNull()
        let batch = DeltaBatch(columns: [names], count: 5)
        let few: [Scalar] = [.string("red"), .string("a name of more than twelve bytes")]
        let many = few + (0..<10).map { .string("other \($0)") }
        for list in [few, many] {
            for hasNull in [false, true] {
                var errors = RowErrors()
                let values = hasNull ? list + [.null] : list
                let result = try CompiledExpression(.inList(.column(0, .varchar), values, negated: false)).evaluate(batch, errors: &errors)
                let miss = hasNull ? nil : "f"
                #expect((0..<5).map { result.text($0) } == ["t", "t", miss, miss, nil])
            }
        }
    }

    @Test func everyOverloadHasAKernel() throws {
        for name in FunctionRegistry.names {
            for overload in FunctionRegistry.signatures(of: name) {
                let arguments = overload.argumentTypes.enumerated().map { BoundExpression.column($0.offset, $0.element) }
                let columns = overload.argumentTypes.map { type in
                    let column = Column(type, capacity: 2)
                    column.appendNull()
                    column.appendNull()
                    return column
                }
                var errors = RowErrors()
                let compiled = try CompiledExpression(overload.call(arguments))
                let result = compiled.evaluate(DeltaBatch(columns: columns, count: 2), errors: &errors)
                // An object's key may not be NULL.
                let mayFail = name.hasSuffix("_build_object")
                #expect(
                    result.count == 2 && result.type.physical == overload.type.physical && (mayFail || errors.isEmpty),
                    "\(name) \(overload.argumentTypes)")
            }
        }
    }
}
