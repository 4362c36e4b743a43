import MillBase
import MillColumnar
import MillState

/// sum and avg over floats, exact: any order of rows and any retraction gives the batch answer, rounded once.
///
/// Payload: number of the exact sum in `sums` plus 1, present count, and after `refresh` the cached result.
final class FloatSumAccumulator: MergeableAccumulator {
    let byteCount = 24
    private let type: SQLType
    private let isAverage: Bool
    /// Exact sums, which are too large for a group's payload.
    private let sums = StateTable(columns: [], payloadBytes: MemoryLayout<ExactFloatSum>.stride, indexed: false)

    init(type: SQLType, isAverage: Bool) {
        self.type = type
        self.isAverage = isAverage
    }

    var outsideByteCount: Int { sums.byteCount }

    var tables: [any DurableTable] { [sums] }

    @inline(__always) private func writableSum(_ place: Int64) -> UnsafeMutablePointer<ExactFloatSum> {
        sums.writablePayload(RowNumber(truncatingIfNeeded: place - 1)).assumingMemoryBound(to: ExactFloatSum.self)
    }

    @inline(__always) private func sum(_ place: Int64) -> UnsafePointer<ExactFloatSum> {
        sums.payload(RowNumber(truncatingIfNeeded: place - 1)).assumingMemoryBound(to: ExactFloatSum.self)
    }

    func update(_ groups: GroupRows, values: Column?, weights: UnsafePointer<Int64>?) {
        guard let values else { return }
        let isSingle = values.type == .float32
        for index in 0..<groups.count where !values.isNull(index) {
            let weight = weights?[index] ?? 1
            let state = groups.pointer(index, Int64.self)
            if state[0] == 0 { takePlace(state) }
            let value = isSingle ? Double(values.values(Float.self)[index]) : values.values(Double.self)[index]
            writableSum(state[0]).pointee.add(value, weight: weight)
            state[1] &+= weight
        }
    }

    private func takePlace(_ state: UnsafeMutablePointer<Int64>) {
        state[0] = Int64(sums.append(hash: 1)) + 1
    }

    func merge(_ source: GroupState, into target: GroupState) {
        let from = source.state.assumingMemoryBound(to: Int64.self)
        let state = target.state.assumingMemoryBound(to: Int64.self)
        guard from[0] != 0 else { return }
        if state[0] == 0 { takePlace(state) }
        writableSum(state[0]).pointee.add(sum(from[0]).pointee)
        state[1] &+= from[1]
    }

    func refresh(_ groups: GroupRows) {
        for index in 0..<groups.count {
            let state = groups.pointer(index, Int64.self)
            guard state[0] != 0 else { continue }
            let sum = sum(state[0]).pointee.rounded
            groups.pointer(index, Double.self)[2] = isAverage && state[1] != 0 ? sum / Double(state[1]) : sum
        }
    }

    func release(_ group: UInt32, _ state: UnsafeMutableRawPointer) {
        let place = state.load(as: Int64.self)
        if place > 0 { sums.remove(RowNumber(truncatingIfNeeded: place - 1)) }
    }

    func adopt(_ groups: [GroupMove], from other: FloatSumAccumulator) {
        for group in groups {
            let state = group.to.state.assumingMemoryBound(to: Int64.self)
            guard state[0] != 0 else { continue }
            let sum = other.sum(state[0]).pointee
            takePlace(state)
            writableSum(state[0]).pointee = sum
        }
    }

    func output(_ payloads: [UnsafeMutableRawPointer], offset: Int, errors: inout [(Int, SQLError)]) -> Column {
        let column = Column(type, uninitialized: payloads.count)
        for (index, payload) in payloads.enumerated() {
            guard payload.load(fromByteOffset: offset + 8, as: Int64.self) != 0 else {
                column.setNull(index)
                continue
            }
            let value = payload.load(fromByteOffset: offset + 16, as: Double.self)
            if type == .float32 { column.values(Float.self)[index] = Float(value) } else { column.values(Double.self)[index] = value }
        }
        return column
    }
}

/// A sum of doubles without rounding: a fixed-point number wide enough for every double, kept in 32-bit digits with room for
/// carries, and counts of what is not a number.
///
/// Digit d holds units of 2^(32 d - 1074). A double is a 53-bit integer times a power of two, so it touches at most three
/// digits. Digits take 2^31 additions before they must be carried; `rounded` carries a copy.
/// Source: U. Kulisch, "Computer Arithmetic and Validity", the long accumulator.
struct ExactFloatSum: BitwiseCopyable {
    static let limbCount = 68

    private var limbs = InlineArray<68, Int64>(repeating: 0)
    private var additions = 0
    private var nanCount: Int64 = 0
    private var positiveInfinityCount: Int64 = 0
    private var negativeInfinityCount: Int64 = 0

    mutating func add(_ value: Double, weight: Int64) {
        guard value.isFinite else {
            if value.isNaN { nanCount &+= weight } else if value > 0 { positiveInfinityCount &+= weight } else { negativeInfinityCount &+= weight }
            return
        }
        guard value != 0, weight != 0 else { return }
        let exponentBits = Int(value.exponentBitPattern)
        let mantissa = exponentBits == 0 ? value.significandBitPattern : value.significandBitPattern | 1 << 52
        let exponent = max(exponentBits, 1) - 1  // units of 2^-1074
        var remaining = weight.magnitude
        let negative = (value < 0) != (weight < 0)
        // Weights are small in practice: digits of the weight keep each product within 64 bits plus carry room.
        var shift = exponent
        while remaining != 0 {
            addProduct(mantissa, UInt64(remaining & 0xFF), shift: shift, negative: negative)
            remaining >>= 8
            shift += 8
        }
    }

    mutating func add(_ other: ExactFloatSum) {
        var other = other
        carry()
        other.carry()
        for index in limbs.indices { limbs[index] &+= other.limbs[index] }
        additions = 2
        nanCount &+= other.nanCount
        positiveInfinityCount &+= other.positiveInfinityCount
        negativeInfinityCount &+= other.negativeInfinityCount
    }

    /// Adds mantissa (53 bits) * factor (8 bits) * 2^shift.
    private mutating func addProduct(_ mantissa: UInt64, _ factor: UInt64, shift: Int, negative: Bool) {
        guard factor != 0 else { return }
        let product = mantissa * factor
        let limb = shift / 32
        let bits = UInt64(shift % 32)
        let low = product << bits
        let high = bits == 0 ? 0 : product >> (64 - bits)
        // The largest double times any weight ends in the last digit but one, plus headroom.
        let sign: Int64 = negative ? -1 : 1
        limbs[limb] &+= Int64(low & 0xFFFF_FFFF) &* sign
        limbs[limb + 1] &+= Int64(low >> 32) &* sign
        if high != 0 { limbs[limb + 2] &+= Int64(high) &* sign }
        additions += 1
        if additions >= 1 << 30 { carry() }
    }

    private mutating func carry() {
        additions = 0
        for index in 0..<Self.limbCount - 1 {
            let carry = limbs[index] >> 32
            limbs[index] -= carry << 32
            limbs[index + 1] += carry
        }
    }

    /// The sum rounded to the nearest double, ties to even.
    var rounded: Double {
        if nanCount != 0 || (positiveInfinityCount != 0 && negativeInfinityCount != 0) { return .nan }
        if positiveInfinityCount != 0 { return .infinity }
        if negativeInfinityCount != 0 { return -.infinity }
        var copy = self
        copy.carry()
        // The sign is that of the top digit; digits below it are now within 0 ..< 2^32.
        let negative = copy.limbs[Self.limbCount - 1] < 0
        if negative {
            for index in 0..<Self.limbCount { copy.limbs[index] = -copy.limbs[index] }
            copy.carry()
        }
        guard let top = copy.limbs.indices.last(where: { copy.limbs[$0] != 0 }) else { return 0 }
        // 96 bits from the top hold the 53 that count and the rounding bit; what lies below only matters as "not zero".
        let word: UInt64 = UInt64(copy.limbs[top]) << 32 | (top >= 1 ? UInt64(copy.limbs[top - 1]) : 0)
        let next: UInt64 = top >= 2 ? UInt64(copy.limbs[top - 2]) : 0
        let leading = word.leadingZeroBitCount
        var significand = word << UInt64(leading)
        if leading > 0 { significand |= leading <= 32 ? next >> UInt64(32 - leading) : next << UInt64(leading - 32) }
        var sticky = leading < 32 ? next << UInt64(32 + leading) != 0 : false
        if !sticky, top >= 3 { sticky = (0..<(top - 2)).contains { copy.limbs[$0] != 0 } }
        if sticky { significand |= 1 }
        // Bit 63 of the significand is worth 2^(32 * top + 31 - leading) units of 2^-1074.
        let scale = 32 * (top - 1) - leading - 1074
        return Self.scaled(significand, by: scale, negative: negative)
    }

    /// significand * 2^scale with one rounding, also for subnormal results.
    private static func scaled(_ significand: UInt64, by scale: Int, negative: Bool) -> Double {
        let topExponent = scale + 63
        if topExponent > 1023 { return negative ? -.infinity : .infinity }
        // Bits to drop so that 53 stay, or fewer when the result is subnormal.
        let dropped = max(11, -1074 - scale)
        if dropped > 64 { return negative ? -0.0 : 0 }
        let kept = dropped == 64 ? 0 : significand >> UInt64(dropped)
        let rest = dropped == 64 ? significand : significand & ((1 << UInt64(dropped)) - 1)
        let half = UInt64(1) << UInt64(dropped - 1)
        let up = rest > half || (rest == half && kept & 1 == 1)
        let result = Double(sign: .plus, exponent: scale + dropped, significand: Double(kept + (up ? 1 : 0)))
        return negative ? -result : result
    }
}
