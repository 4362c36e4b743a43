import MillBase
import Testing

@testable import MillPgWire

struct PgNumericTests {
    private func bytes(_ value: PgNumeric) -> [UInt8] {
        var out: [UInt8] = []
        value.append(to: &out)
        return out
    }

    /// What PostgreSQL 15's `numeric_send` gives: digit count, weight, sign, scale, digits.
    @Test func numericsHavePostgresBytes() {
        let cases: [(Int128, Int32, [Int])] = [
            (0, 0, [0, 0, 0, 0]),
            (0, 2, [0, 0, 0, 2]),
            (1, 0, [1, 0, 0, 0, 1]),
            (-12_345, 2, [2, 0, 0x4000, 2, 123, 4500]),
            (10_000, 0, [1, 1, 0, 0, 1]),
            (123_456_789, 4, [3, 1, 0, 4, 1, 2345, 6789]),
            (1, 4, [1, -1, 0, 4, 1]),
            (1, 5, [1, -2, 0, 5, 1000]),
            (5, 10, [1, -3, 0, 10, 500]),
            (1_000_000, 6, [1, 0, 0, 6, 1]),
        ]
        for (unscaled, scale, words) in cases {
            let expected = words.flatMap { word in
                var out: [UInt8] = []
                out.appendBigEndian(Int16(truncatingIfNeeded: word))
                return out
            }
            #expect(bytes(.finite(unscaled: unscaled, scale: scale)) == expected, "\(unscaled) scale \(scale)")
        }
        #expect(bytes(.notANumber) == [0, 0, 0, 0, 0xC0, 0, 0, 0])
        #expect(bytes(.positiveInfinity) == [0, 0, 0, 0, 0xD0, 0, 0, 0])
        #expect(bytes(.negativeInfinity) == [0, 0, 0, 0, 0xF0, 0, 0, 0])
    }

    @Test func numericsSurviveTheRoundTrip() throws {
        var generator = SplitMix(seed: 5)
        var bound: Int128 = 1
        for _ in 0..<38 { bound *= 10 }
        var values: [PgNumeric] = [.notANumber, .positiveInfinity, .negativeInfinity]
        for scale: Int32 in 0...38 {
            values += [.finite(unscaled: bound - 1, scale: scale), .finite(unscaled: 1 - bound, scale: scale)]
            for _ in 0..<50 {
                let digits = Int.random(in: 0...37, using: &generator)
                var limit: Int128 = 1
                for _ in 0..<digits { limit *= 10 }
                values.append(.finite(unscaled: Int128.random(in: -limit...limit, using: &generator), scale: scale))
            }
        }
        for value in values { #expect(try PgNumeric(decoding: bytes(value)[...]) == value) }
    }

    @Test func badNumericsAreRefused() {
        let cases: [[UInt8]] = [
            [], [0, 1, 0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0, 0x27, 0x10], [0, 0, 0, 0, 0x12, 0x34, 0, 0],
            [0, 0, 0, 0, 0, 0, 0xFF, 0xFF], [0, 1, 0x7F, 0xFF, 0, 0, 0, 0, 0, 1], [0, 1, 0, 0, 0, 0, 0, 39, 0, 1],
        ]
        for bytes in cases { #expect(throws: SQLError.self, "\(bytes)") { try PgNumeric(decoding: bytes[...]) } }
    }

    @Test func randomBytesNeverTrap() {
        var generator = SplitMix(seed: 6)
        for _ in 0..<20_000 {
            let count = Int.random(in: 0...5, using: &generator)
            var bytes: [UInt8] = [0, UInt8(count)]
            for _ in 0..<6 + count * 2 { bytes.append(UInt8.random(in: .min ... .max, using: &generator) & 0xCF) }
            _ = try? PgNumeric(decoding: bytes[...])  // Only that it returns matters.
        }
    }
}

struct PgBinaryTests {
    @Test func datesCountFrom2000OnTheWire() throws {
        #expect(PgBinary.wireDate(10_957) == 0)
        #expect(PgBinary.wireDate(.max) == .max)
        #expect(PgBinary.wireDate(.min + 1) == .min)
        #expect(try PgBinary.date([0, 0, 0, 0]) == 10_957)
        #expect(try PgBinary.date([0x7F, 0xFF, 0xFF, 0xFF]) == .max)
        #expect(throws: SQLError.self) { try PgBinary.date([0x7F, 0xFF, 0xFF, 0xFE]) }
    }

    @Test func timestampsCountFrom2000OnTheWire() throws {
        #expect(PgBinary.wireTimestamp(946_684_800_000_001) == 1)
        #expect(PgBinary.wireTimestamp(.min) == .min)
        #expect(try PgBinary.timestamp([0, 0, 0, 0, 0, 0, 0, 1]) == 946_684_800_000_001)
        #expect(try PgBinary.timestamp([0x80, 0, 0, 0, 0, 0, 0, 0]) == .min)
        #expect(throws: SQLError.self) { try PgBinary.timestamp([0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFE]) }
    }

    @Test func fixedWidthValuesMustHaveTheirWidth() throws {
        #expect(try PgBinary.integer(Int16.self, [0xFF, 0xFE]) == -2)
        #expect(try PgBinary.float64([0x3F, 0xF0, 0, 0, 0, 0, 0, 0]) == 1)
        #expect(try PgBinary.boolean([1]))
        #expect(try PgBinary.interval([0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1]) == (1, 2, 3))
        #expect(throws: SQLError.self) { try PgBinary.integer(Int32.self, [1, 2, 3]) }
        #expect(throws: SQLError.self) { try PgBinary.interval([1]) }
        #expect(throws: SQLError.self) { try PgBinary.boolean([]) }
        #expect(throws: SQLError.self) { try PgBinary.time([0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFE]) }
        #expect(throws: SQLError.self) { try PgBinary.jsonb([2, 0x31]) }
        #expect(throws: SQLError.self) { try PgBinary.jsonb([]) }
    }

    @Test func textMustBeUTF8WithoutZeros() throws {
        #expect(try PgBinary.text(Array("é".utf8)[...]) == "é")
        #expect(throws: SQLError.self) { try PgBinary.text([0x61, 0]) }
        #expect(throws: SQLError(.characterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\": 0xc3")) {
            try PgBinary.text([0x61, 0xC3])
        }
    }
}
