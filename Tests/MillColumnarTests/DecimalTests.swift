import MillBase
import MillColumnar
import Testing

struct DecimalTests {
    private func decimal(_ text: String) throws -> Decimal {
        guard case .decimal(let value) = try TextInput.scalar(text, as: .numeric) else { throw SQLError(.internalError, "not a decimal") }
        return value
    }

    private func text(_ value: Decimal) -> String { Column.constant(.decimal(value), .numeric, count: 1).text(0) ?? "" }

    /// Expectations are PostgreSQL 15's.
    @Test(arguments: [
        ("1", "+", "2.50", "3.50"), ("0.1", "-", "0.10", "0.00"), ("1.5", "*", "2.25", "3.375"), ("1", "/", "3", "0.33333333333333333333"), ("10", "/", "3", "3.3333333333333333"),
        ("2", "/", "3", "0.66666666666666666667"), ("1", "/", "8", "0.12500000000000000000"), ("100000", "/", "7", "14285.714285714286"), ("1.00", "/", "1", "1.00000000000000000000"),
        ("0", "/", "5", "0.00000000000000000000"), ("-7", "/", "2", "-3.5000000000000000"), ("7", "%", "-3", "1"), ("-7.5", "%", "2", "-1.5"), ("12345.678", "/", "0.001", "12345678.000000000000"),
        ("NaN", "+", "1", "NaN"), ("Infinity", "-", "Infinity", "NaN"), ("Infinity", "*", "-2", "-Infinity"), ("1", "/", "Infinity", "0"), ("0", "*", "Infinity", "NaN"),
    ]) func arithmeticHasPostgreSQLsScale(_ a: String, _ symbol: String, _ b: String, _ expected: String) throws {
        let left = try decimal(a)
        let right = try decimal(b)
        let result =
            switch symbol {
            case "+": try Decimal.adding(left, right)
            case "-": try Decimal.subtracting(left, right)
            case "*": try Decimal.multiplying(left, right)
            case "/": try Decimal.dividing(left, right)
            default: try Decimal.remainder(left, right)
            }
        #expect(text(result) == expected)
    }

    @Test func aSumThatNeedsMoreThan128BitsIsRefused() throws {
        let most = try decimal(String(repeating: "9", count: 38))
        #expect(throws: SQLError.self) { try Decimal.adding(most, most) }
        #expect(throws: SQLError.self) { try Decimal.subtracting(most.negated, most) }
        #expect(text(try Decimal.adding(most, most.negated)) == "0")
    }

    @Test func whatDoesNotFitIsRoundedBehindThePointAndRefusedBeforeIt() throws {
        let large = try decimal("99999999999999999999999999999999999999")
        #expect(throws: SQLError.self) { try Decimal.adding(large, Decimal(1)) }
        #expect(throws: SQLError.self) { try Decimal.multiplying(large, Decimal(2)) }
        #expect(text(try Decimal.adding(large, try decimal("0.4"))) == "99999999999999999999999999999999999999")
        #expect(text(try Decimal.multiplying(try decimal("1.2345678901234567890"), try decimal("1.23456789012345678901"))).hasPrefix("1.52415787532388367"))
        #expect(throws: Decimal.divisionByZero) { try Decimal.dividing(large, .zero) }
    }

    @Test func roundingGoesAwayFromZero() throws {
        #expect(text(try decimal("2.5").rounded(to: 0)) == "3")
        #expect(text(try decimal("-2.5").rounded(to: 0)) == "-3")
        #expect(text(try decimal("1234.567").rounded(to: -2)) == "1200")
        #expect(text(try decimal("1.5").rounded(to: 3)) == "1.500")
        #expect(text(try decimal("-1.5").rounded(to: 0, .down)) == "-2")
        #expect(text(try decimal("-1.5").rounded(to: 0, .up)) == "-1")
        #expect(text(try Decimal(0.1 + 0.2, significantDigits: 15)) == "0.3")
        #expect(text(try Decimal(123456789.123456789, significantDigits: 15)) == "123456789.123457")
        #expect(text(try Decimal(1e20, significantDigits: 15)) == "100000000000000000000")
    }

    @Test func randomQuotientsAgreeWithLongDivisionByHand() throws {
        var state: UInt64 = 42
        func next() -> Int64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int64(bitPattern: state) >> Int64(state >> 58 & 47)
        }
        for _ in 0..<2000 {
            let a = next()
            let b = next()
            guard b != 0 else { continue }
            let quotient = try Decimal.dividing(Decimal(a), Decimal(b))
            // |q * b - a| is at most half of b's last digit.
            let back = quotient.unscaled.multipliedReportingOverflow(by: Int128(b))
            guard !back.overflow, quotient.scale < 19 else { continue }
            let error = (back.partialValue - Int128(a) * Decimal.powerOfTen(quotient.scale)).magnitude
            #expect(error * 2 <= Int128(b).magnitude, "\(a) / \(b)")
        }
    }
}
