package import MillBase

/// A numeric in PostgreSQL's binary form and as the 128-bit number we compute with.
///
/// Bytes: digit count (int16), weight of the first digit (int16), sign (uint16), display scale (int16), then the digits, each
/// an int16 from 0 to 9999. The value is the sum of `digit[i] * 10000^(weight - i)`. Leading and trailing zero digits are not
/// sent. Source: PostgreSQL's `numeric_send` and `numeric_recv` in numeric.c.
package enum PgNumeric: Hashable, Sendable {
    /// `unscaled * 10^-scale`; scale is 0 or more.
    case finite(unscaled: Int128, scale: Int32)
    case notANumber
    case positiveInfinity
    case negativeInfinity

    private static let positiveSign: UInt16 = 0x0000
    private static let negativeSign: UInt16 = 0x4000
    private static let nanSign: UInt16 = 0xC000
    private static let positiveInfinitySign: UInt16 = 0xD000
    private static let negativeInfinitySign: UInt16 = 0xF000

    /// Appends the binary form, without a length word.
    package func append(to out: inout [UInt8]) {
        switch self {
        case .notANumber: Self.appendHeader(to: &out, count: 0, weight: 0, sign: Self.nanSign, scale: 0)
        case .positiveInfinity: Self.appendHeader(to: &out, count: 0, weight: 0, sign: Self.positiveInfinitySign, scale: 0)
        case .negativeInfinity: Self.appendHeader(to: &out, count: 0, weight: 0, sign: Self.negativeInfinitySign, scale: 0)
        case .finite(let unscaled, let scale):
            Self.appendFinite(unscaled.magnitude, isNegative: unscaled < 0, scale: max(0, min(scale, 1000)), to: &out)
        }
    }

    private static func appendHeader(to out: inout [UInt8], count: Int, weight: Int, sign: UInt16, scale: Int32) {
        out.appendBigEndian(Int16(truncatingIfNeeded: count))
        out.appendBigEndian(Int16(truncatingIfNeeded: weight))
        out.appendBigEndian(sign)
        out.appendBigEndian(Int16(truncatingIfNeeded: scale))
    }

    /// Groups are found from the last one up: the decimal digit at power p of the value is digit p + scale of the unscaled
    /// number, so the lowest group is completed with zeros on its right by the factor `10^(4 * fractionGroups - scale)`.
    private static func appendFinite(_ magnitude: UInt128, isNegative: Bool, scale: Int32, to out: inout [UInt8]) {
        guard magnitude != 0 else {
            appendHeader(to: &out, count: 0, weight: 0, sign: positiveSign, scale: scale)
            return
        }
        let fractionGroups = (Int(scale) + 3) / 4
        let padding = fractionGroups * 4 - Int(scale)
        var rest = magnitude
        var groups = InlineArray<12, Int16>(repeating: 0)
        var count = 0
        if padding > 0 {
            let divisor = powerOfTen(4 - padding)
            let (quotient, remainder) = rest.quotientAndRemainder(dividingBy: UInt128(divisor))
            groups[0] = Int16(Int(remainder) * powerOfTen(padding))
            count = 1
            rest = quotient
        }
        while rest != 0 {
            let (quotient, remainder) = rest.quotientAndRemainder(dividingBy: 10_000)
            groups[count] = Int16(remainder)
            count += 1
            rest = quotient
        }
        var lowest = 0
        while groups[lowest] == 0 { lowest += 1 }
        appendHeader(
            to: &out, count: count - lowest, weight: count - 1 - fractionGroups, sign: isNegative ? negativeSign : positiveSign,
            scale: scale)
        for index in stride(from: count - 1, through: lowest, by: -1) {
            out.appendBigEndian(groups[index])
        }
    }

    private static func powerOfTen(_ exponent: Int) -> Int {
        switch exponent {
        case 0: 1
        case 1: 10
        case 2: 100
        case 3: 1000
        default: 10_000
        }
    }

    /// - Throws: 22P03 for bytes that are no numeric, 22003 for a value over 38 digits.
    package init(decoding bytes: ArraySlice<UInt8>) throws(SQLError) {
        do {
            self = try Self.decode(bytes)
        } catch let error as SQLError {
            throw error
        } catch {
            throw SQLError(.invalidBinaryRepresentation, "invalid length in external \"numeric\" value")
        }
    }

    private static func decode(_ bytes: ArraySlice<UInt8>) throws -> PgNumeric {
        var reader = MessageReader(bytes, type: 0)
        let count = Int(try reader.uint16())
        let weight = Int(try reader.int16())
        let sign = try reader.uint16()
        let scale = Int(try reader.int16())
        guard reader.remaining == count * 2 else {
            throw SQLError(.invalidBinaryRepresentation, "invalid length in external \"numeric\" value")
        }
        switch sign {
        case nanSign: return .notANumber
        case positiveInfinitySign: return .positiveInfinity
        case negativeInfinitySign: return .negativeInfinity
        case positiveSign, negativeSign: break
        default: throw SQLError(.invalidBinaryRepresentation, "invalid sign in external \"numeric\" value")
        }
        guard (0...0x3FFF).contains(scale) else {
            throw SQLError(.invalidBinaryRepresentation, "invalid scale in external \"numeric\" value")
        }
        var unscaled: Int128 = 0
        var overflow = scale > 38
        for index in 0..<count {
            let digit = try reader.int16()
            guard (0...9999).contains(digit) else {
                throw SQLError(.invalidBinaryRepresentation, "invalid digit in external \"numeric\" value")
            }
            if digit == 0 || overflow { continue }
            var term = Int128(digit)
            var exponent = (weight - index) * 4 + scale
            // Digits past the display scale are cut, as numeric_recv does.
            while exponent < 0 && term != 0 {
                term /= 10
                exponent += 1
            }
            while exponent > 0 && !overflow {
                let (product, over) = term.multipliedReportingOverflow(by: 10)
                term = product
                overflow = over
                exponent -= 1
            }
            let (sum, over) = unscaled.addingReportingOverflow(term)
            unscaled = sum
            overflow = overflow || over
        }
        if overflow || unscaled >= digitsBound {
            throw SQLError(.numericValueOutOfRange, "numeric value out of range", detail: "A numeric has at most 38 digits.")
        }
        return .finite(unscaled: sign == negativeSign ? -unscaled : unscaled, scale: Int32(scale))
    }

    /// 10^38.
    private static let digitsBound: Int128 = {
        var bound: Int128 = 1
        for _ in 0..<38 { bound *= 10 }
        return bound
    }()
}
