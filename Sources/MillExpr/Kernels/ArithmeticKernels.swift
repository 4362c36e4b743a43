import MillBase
import MillColumnar

/// `+ - * / %`, bit operations, negation and absolute value on numbers. Integers of one width are computed in that width;
/// overflow is an error of the row.
enum ArithmeticKernels {
    static func make(_ function: ScalarFunction, _ constants: [Scalar?]) -> (Kernel, takenConstant: Int?)? {
        let types = function.argumentTypes
        guard let type = types.first, type.isNumber, types.dropFirst().allSatisfy(\.isNumber) else { return nil }
        let name = function.name == "mod" ? "modulo" : function.name
        switch type.base {
        case .int16: return integer(name, type, constants, Int16.self)
        case .int32: return integer(name, type, constants, Int32.self)
        case .int64: return integer(name, type, constants, Int64.self)
        case .float32: return float(name, .float32, Float.self)
        case .float64: return float(name, .float64, Double.self)
        default: return decimal(name)
        }
    }

    static func outOfRange(_ type: SQLType) -> SQLError { SQLError(.numericValueOutOfRange, "\(type.name) out of range") }

    // MARK: Integers

    @inline(__always)
    private static func integer<T: FixedWidthInteger & SignedInteger & BitwiseCopyable>(
        _ name: String, _ type: SQLType, _ constants: [Scalar?], _: T.Type
    ) -> (Kernel, takenConstant: Int?)? {
        if let binary = integerBinary(name, type, constants, T.self) { return binary }
        switch name {
        case "negate": return ({ columns, _, frame in Loops.checkedUnary(columns[0], type, frame) { (a: T) in (0 &- a, a == .min) } _: { _ in outOfRange(type) } }, nil)
        case "abs": return ({ columns, _, frame in Loops.checkedUnary(columns[0], type, frame) { (a: T) in (a < 0 ? 0 &- a : a, a == .min) } _: { _ in outOfRange(type) } }, nil)
        case "plus": return ({ columns, _, _ in columns[0] }, nil)
        case "bit_not_of": return ({ columns, _, _ in Loops.unary(columns[0], type) { (a: T) in ~a } }, nil)
        case "bit_and_of": return ({ columns, _, _ in Loops.binary(columns[0], columns[1], type) { (a: T, b: T) in a & b } }, nil)
        case "bit_or_of": return ({ columns, _, _ in Loops.binary(columns[0], columns[1], type) { (a: T, b: T) in a | b } }, nil)
        case "bit_xor_of": return ({ columns, _, _ in Loops.binary(columns[0], columns[1], type) { (a: T, b: T) in a ^ b } }, nil)
        // The count is taken modulo the width, as the C compilers of PostgreSQL's platforms do.
        case "shift_left": return ({ columns, _, _ in Loops.binary(columns[0], columns[1], type) { (a: T, b: Int32) in a &<< T(truncatingIfNeeded: b) } }, nil)
        case "shift_right": return ({ columns, _, _ in Loops.binary(columns[0], columns[1], type) { (a: T, b: Int32) in a &>> T(truncatingIfNeeded: b) } }, nil)
        default: return nil
        }
    }

    @inline(__always)
    private static func integerBinary<T: FixedWidthInteger & SignedInteger & BitwiseCopyable>(
        _ name: String, _ type: SQLType, _ constants: [Scalar?], _: T.Type
    ) -> (Kernel, takenConstant: Int?)? {
        switch name {
        case "add": return checked(type, constants, Adding.self, T.self)
        case "subtract": return checked(type, constants, Subtracting.self, T.self)
        case "multiply": return checked(type, constants, Multiplying.self, T.self)
        case "divide": return checked(type, constants, Dividing.self, T.self)
        case "modulo": return checked(type, constants, TakingModulo.self, T.self)
        default: return nil
        }
    }

    /// An operation on two integers of one width that says whether it failed, and why. A type, not a closure: the loop over a batch is
    /// then compiled with the operation in it.
    private protocol CheckedOperation {
        static func apply<T: FixedWidthInteger & SignedInteger>(_ a: T, _ b: T) -> (T, Bool)
        static func error<T: FixedWidthInteger & SignedInteger>(right: T, _ type: SQLType) -> SQLError
    }

    private enum Adding: CheckedOperation {
        @inline(__always) static func apply<T: FixedWidthInteger & SignedInteger>(_ a: T, _ b: T) -> (T, Bool) { a.addingReportingOverflow(b) }
        static func error<T: FixedWidthInteger & SignedInteger>(right: T, _ type: SQLType) -> SQLError { outOfRange(type) }
    }

    private enum Subtracting: CheckedOperation {
        @inline(__always) static func apply<T: FixedWidthInteger & SignedInteger>(_ a: T, _ b: T) -> (T, Bool) { a.subtractingReportingOverflow(b) }
        static func error<T: FixedWidthInteger & SignedInteger>(right: T, _ type: SQLType) -> SQLError { outOfRange(type) }
    }

    private enum Multiplying: CheckedOperation {
        @inline(__always) static func apply<T: FixedWidthInteger & SignedInteger>(_ a: T, _ b: T) -> (T, Bool) { a.multipliedReportingOverflow(by: b) }
        static func error<T: FixedWidthInteger & SignedInteger>(right: T, _ type: SQLType) -> SQLError { outOfRange(type) }
    }

    private enum Dividing: CheckedOperation {
        @inline(__always) static func apply<T: FixedWidthInteger & SignedInteger>(_ a: T, _ b: T) -> (T, Bool) {
            // Dividing by one instead of zero keeps the loop free of traps; the flag says that it failed.
            let fails = b == 0 || (b == -1 && a == .min)
            return ((fails ? 0 : a) / (fails ? 1 : b), fails)
        }

        static func error<T: FixedWidthInteger & SignedInteger>(right: T, _ type: SQLType) -> SQLError {
            right == 0 ? Decimal.divisionByZero : outOfRange(type)
        }
    }

    private enum TakingModulo: CheckedOperation {
        @inline(__always) static func apply<T: FixedWidthInteger & SignedInteger>(_ a: T, _ b: T) -> (T, Bool) {
            // The smallest value modulo -1 is 0 and no error.
            let unsafe = b == 0 || b == -1
            return (unsafe ? 0 : a % (unsafe ? 1 : b), b == 0)
        }

        static func error<T: FixedWidthInteger & SignedInteger>(right: T, _ type: SQLType) -> SQLError { Decimal.divisionByZero }
    }

    @inline(__always)
    private static func checked<T: FixedWidthInteger & SignedInteger & BitwiseCopyable, O: CheckedOperation>(
        _ type: SQLType, _ constants: [Scalar?], _: O.Type, _: T.Type
    ) -> (Kernel, takenConstant: Int?) {
        if case .int(let value)? = constants[1], let constant = T(exactly: value) {
            return ({ columns, _, frame in
                Loops.checkedUnary(columns[0], type, frame) { (a: T) in O.apply(a, constant) } _: { _ in O.error(right: constant, type) }
            }, 1)
        }
        if case .int(let value)? = constants[0], let constant = T(exactly: value) {
            return ({ columns, _, frame in
                Loops.checkedUnary(columns[0], type, frame) { (b: T) in O.apply(constant, b) } _: { O.error(right: $0, type) }
            }, 0)
        }
        return ({ columns, _, frame in
            Loops.checkedBinary(columns[0], columns[1], type, frame) { (a: T, b: T) in O.apply(a, b) } _: { (_: T, b: T) in O.error(right: b, type) }
        }, nil)
    }

    // MARK: Floats

    static let overflow = SQLError(.numericValueOutOfRange, "value out of range: overflow")
    static let underflow = SQLError(.numericValueOutOfRange, "value out of range: underflow")

    @inline(__always)
    private static func float<T: BinaryFloatingPoint & BitwiseCopyable>(_ name: String, _ type: SQLType, _: T.Type) -> (Kernel, takenConstant: Int?)? {
        switch name {
        case "add":
            return ({ columns, _, frame in
                Loops.checkedBinary(columns[0], columns[1], type, frame) { (a: T, b: T) in
                    let sum = a + b
                    return (sum, sum.isInfinite && a.isFinite && b.isFinite)
                } _: { (_: T, _: T) in overflow }
            }, nil)
        case "subtract":
            return ({ columns, _, frame in
                Loops.checkedBinary(columns[0], columns[1], type, frame) { (a: T, b: T) in
                    let difference = a - b
                    return (difference, difference.isInfinite && a.isFinite && b.isFinite)
                } _: { (_: T, _: T) in overflow }
            }, nil)
        case "multiply":
            return ({ columns, _, frame in
                Loops.checkedBinary(columns[0], columns[1], type, frame) { (a: T, b: T) in
                    let product = a * b
                    return (product, (product.isInfinite && a.isFinite && b.isFinite) || (product == 0 && a != 0 && b != 0))
                } _: { (a: T, b: T) in (a * b).isInfinite ? overflow : underflow }
            }, nil)
        case "divide":
            return ({ columns, _, frame in
                Loops.checkedBinary(columns[0], columns[1], type, frame) { (a: T, b: T) in
                    let quotient = a / b
                    let byZero = b == 0 && !a.isNaN
                    return (quotient, byZero || (quotient.isInfinite && a.isFinite) || (quotient == 0 && a != 0 && b.isFinite))
                } _: { (a: T, b: T) in b == 0 ? Decimal.divisionByZero : (a / b).isInfinite ? overflow : underflow }
            }, nil)
        case "negate": return ({ columns, _, _ in Loops.unary(columns[0], type) { (a: T) in -a } }, nil)
        case "abs": return ({ columns, _, _ in Loops.unary(columns[0], type) { (a: T) in a.magnitude } }, nil)
        case "plus": return ({ columns, _, _ in columns[0] }, nil)
        default: return nil
        }
    }

    // MARK: Numeric

    private static func decimal(_ name: String) -> (Kernel, takenConstant: Int?)? {
        let kernel: Kernel
        switch name {
        case "add": kernel = { columns, count, frame in Loops.tryBinary(columns, count, .numeric, frame) { (a: Decimal, b: Decimal) throws(SQLError) in try Decimal.adding(a, b) } }
        case "subtract": kernel = { columns, count, frame in Loops.tryBinary(columns, count, .numeric, frame) { (a: Decimal, b: Decimal) throws(SQLError) in try Decimal.subtracting(a, b) } }
        case "multiply": kernel = { columns, count, frame in Loops.tryBinary(columns, count, .numeric, frame) { (a: Decimal, b: Decimal) throws(SQLError) in try Decimal.multiplying(a, b) } }
        case "divide": kernel = { columns, count, frame in Loops.tryBinary(columns, count, .numeric, frame) { (a: Decimal, b: Decimal) throws(SQLError) in try Decimal.dividing(a, b) } }
        case "modulo": kernel = { columns, count, frame in Loops.tryBinary(columns, count, .numeric, frame) { (a: Decimal, b: Decimal) throws(SQLError) in try Decimal.remainder(a, b) } }
        case "negate": kernel = { columns, _, _ in Loops.unary(columns[0], .numeric) { (a: Decimal) in a.negated } }
        case "abs": kernel = { columns, _, _ in Loops.unary(columns[0], .numeric) { (a: Decimal) in a.magnitude } }
        case "plus": kernel = { columns, _, _ in columns[0] }
        default: return nil
        }
        return (kernel, nil)
    }
}
