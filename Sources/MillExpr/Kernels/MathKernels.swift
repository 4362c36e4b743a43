import MillBase
import MillColumnar

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Rounding and the elementary functions, on double precision and numeric.
enum MathKernels {
    static func make(_ name: String, _ types: [SQLType]) -> Kernel? {
        if name == "pi" { return { _, count, _ in Column.constant(.float(.pi), .float64, count: count) } }
        guard let type = types.first else { return nil }
        if type.isNumeric { return numeric(name, types.count) }
        guard type == .float64, types.allSatisfy({ $0 == .float64 }) else { return nil }
        return types.count == 2 ? binary(name) : plain(name) ?? checked(name)
    }

    private static func numeric(_ name: String, _ count: Int) -> Kernel? {
        let rule: Decimal.Rounding
        switch name {
        case "ceil", "ceiling": rule = .up
        case "floor": rule = .down
        case "round": rule = .halfAwayFromZero
        case "trunc": rule = .towardZero
        case "sign":
            return { columns, _, _ in
                Loops.unary(columns[0], .numeric) { (a: Decimal) in
                    a.isNaN ? a : Decimal(Int64(Decimal.order(a, .zero).signum()))
                }
            }
        default: return nil
        }
        if count == 2 {
            return { columns, count, frame in
                Loops.tryBinary(columns, count, .numeric, frame) { (a: Decimal, digits: Int32) throws(SQLError) in try a.rounded(to: Int(digits), rule) }
            }
        }
        return { columns, count, frame in Loops.tryUnary(columns, count, .numeric, frame) { (a: Decimal) throws(SQLError) in try a.rounded(to: 0, rule) } }
    }

    /// Functions that are defined everywhere.
    private static func plain(_ name: String) -> Kernel? {
        let operation: (Double) -> Double
        switch name {
        case "ceil", "ceiling": operation = { $0.rounded(.up) }
        case "floor": operation = { $0.rounded(.down) }
        case "round": operation = { $0.rounded(.toNearestOrEven) }
        case "trunc": operation = { $0.rounded(.towardZero) }
        case "sign": operation = { $0 > 0 ? 1 : $0 < 0 ? -1 : $0 }
        case "cbrt": operation = { cbrt($0) }
        case "atan": operation = { atan($0) }
        case "degrees": operation = { $0 / (.pi / 180) }
        case "radians": operation = { $0 * (.pi / 180) }
        default: return nil
        }
        return { columns, _, _ in Loops.unary(columns[0], .float64) { (a: Double) in operation(a) } }
    }

    private static let outOfRange = SQLError(.numericValueOutOfRange, "input is out of range")

    private static func checked(_ name: String) -> Kernel? {
        let operation: (Double) throws(SQLError) -> Double
        switch name {
        case "sqrt":
            operation = { (a) throws(SQLError) in
                if a < 0 { throw SQLError(SQLState("2201F"), "cannot take square root of a negative number") }
                return a.squareRoot()
            }
        case "exp":
            operation = { (a) throws(SQLError) in
                let value = exp(a)
                if value.isInfinite && a.isFinite { throw ArithmeticKernels.overflow }
                if value == 0 && a.isFinite { throw ArithmeticKernels.underflow }
                return value
            }
        case "ln", "log", "log10":
            operation = { (a) throws(SQLError) in
                if a == 0 { throw SQLError(SQLState("2201E"), "cannot take logarithm of zero") }
                if a < 0 { throw SQLError(SQLState("2201E"), "cannot take logarithm of a negative number") }
                return name == "ln" ? log(a) : log10(a)
            }
        case "sin", "cos", "tan":
            operation = { (a) throws(SQLError) in
                if a.isInfinite { throw outOfRange }
                return name == "sin" ? sin(a) : name == "cos" ? cos(a) : tan(a)
            }
        case "asin", "acos":
            operation = { (a) throws(SQLError) in
                if a < -1 || a > 1 { throw outOfRange }
                return name == "asin" ? asin(a) : acos(a)
            }
        default: return nil
        }
        return { columns, count, frame in Loops.tryUnary(columns, count, .float64, frame) { (a: Double) throws(SQLError) -> Double? in try operation(a) } }
    }

    private static func binary(_ name: String) -> Kernel? {
        switch name {
        case "atan2": return { columns, _, _ in Loops.binary(columns[0], columns[1], .float64) { (a: Double, b: Double) in atan2(a, b) } }
        case "power", "pow":
            return { columns, count, frame in
                Loops.tryBinary(columns, count, .float64, frame) { (a: Double, b: Double) throws(SQLError) -> Double? in try power(a, b) }
            }
        default: return nil
        }
    }

    private static func power(_ a: Double, _ b: Double) throws(SQLError) -> Double {
        if a == 0 && b < 0 { throw SQLError(SQLState("2201F"), "zero raised to a negative power is undefined") }
        if a < 0 && a.isFinite && b.isFinite && b != b.rounded(.towardZero) {
            throw SQLError(SQLState("2201F"), "a negative number raised to a non-integer power yields a complex result")
        }
        let value = pow(a, b)
        if a.isFinite && b.isFinite {
            if value.isInfinite { throw ArithmeticKernels.overflow }
            if value == 0 && a != 0 { throw ArithmeticKernels.underflow }
        }
        return value
    }
}
