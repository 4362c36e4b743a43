import MillBase
import MillColumnar
import MillState

/// sum and avg over numeric, exact: any order of rows and any retraction gives the batch answer, with its digits after the point.
///
/// Payload:
/// ```
/// offset  size  meaning
/// 0       40    the sum of the finite values, a `WideInteger` in units of 10^-unit
/// 40      8     how many values are present
/// 48      24    how many of them are NaN, infinity, -infinity
/// 72      4     unit: the largest scale that was ever added; it only grows
/// 76      2     scale: the largest of the values that are present, as of the last `refresh`
/// 78      2     1: the values are of several scales, and `scaleCounts` knows how many are of each
/// ```
/// Almost always all values of a group have one scale; then it is `scale`, and how many have it is the count of finite values.
/// With the first of another scale the group gets counts per scale; `refresh` drops them when one scale is left.
final class DecimalSumAccumulator: MergeableAccumulator {
    let byteCount = 80
    private let result: SumResult
    /// By group, the sums of weights by scale.
    private let scaleCounts = OrderedTable(payloadBytes: scalesMax * 8)

    /// Scales go from 0 to 38.
    private static let scalesMax = 39

    private static let countWord = 5
    private static let specialsWord = 6
    private static let unitOffset = 72
    private static let scaleOffset = 76
    private static let mixedOffset = 78

    init(_ result: SumResult) { self.result = result }

    var outsideByteCount: Int { scaleCounts.byteCount }

    var tables: [any DurableTable] { [scaleCounts] }

    func update(_ groups: GroupRows, values: Column?, weights: UnsafePointer<Int64>?) {
        guard let values else { return }
        let decimals = UnsafePointer(values.values(Decimal.self))
        for index in 0..<groups.count where !values.isNull(index) {
            let weight = weights?[index] ?? 1
            guard weight != 0 else { continue }
            let state = groups.pointer(index, UInt64.self)
            let value = decimals[index]
            if value.kind == .finite {
                let unit = groups.pointer(index, Int32.self, at: Self.unitOffset)
                noteScale(Int(value.scale), weight, groups.numbers[index], state)
                if value.scale == unit.pointee {
                    WideInteger.add(value, times: weight, to: state)
                } else {
                    addScaled(value, weight, state, unit)
                }
            } else {
                let place = Self.specialsWord + value.kind.specialIndex
                state[place] = state[place] &+ UInt64(bitPattern: weight)
            }
            state[Self.countWord] = state[Self.countWord] &+ UInt64(bitPattern: weight)
        }
    }

    /// Another scale than the sum's unit: the coarser of the two is brought to the finer.
    private func addScaled(_ value: Decimal, _ weight: Int64, _ state: UnsafeMutablePointer<UInt64>, _ unit: UnsafeMutablePointer<Int32>) {
        if value.scale > unit.pointee {
            var sum = WideInteger(loadingFrom: state)
            sum.multiply(byPowerOfTen: value.scale - unit.pointee)
            sum.store(to: state)
            unit.pointee = value.scale
            WideInteger.add(value, times: weight, to: state)
        } else {
            var addend = WideInteger(value.unscaled)
            addend.multiply(byPowerOfTen: unit.pointee - value.scale)
            addend.multiply(byWeight: weight)
            addend.add(WideInteger(loadingFrom: state))
            addend.store(to: state)
        }
    }

    func merge(_ source: GroupState, into target: GroupState) {
        let from = source.state.assumingMemoryBound(to: UInt64.self)
        let to = target.state.assumingMemoryBound(to: UInt64.self)
        for (scale, count) in scales(source) where count != 0 {
            noteScale(scale, count, target.number, to)
            to[Self.countWord] &+= UInt64(bitPattern: count)
        }
        var specials: UInt64 = 0
        for place in Self.specialsWord..<Self.specialsWord + 3 {
            to[place] &+= from[place]
            specials &+= from[place]
        }
        to[Self.countWord] &+= specials
        addSum(source, to: target)
    }

    /// How many finite values a group has of each scale.
    private func scales(_ group: GroupState) -> [(scale: Int, count: Int64)] {
        if group.state.load(fromByteOffset: Self.mixedOffset, as: Int16.self) != 0, let counts = counts(of: group.number) {
            return (0..<Self.scalesMax).map { ($0, counts[$0]) }
        }
        let scale = group.state.load(fromByteOffset: Self.scaleOffset, as: Int16.self)
        return [(Int(scale), Self.finiteCount(group.state.assumingMemoryBound(to: UInt64.self)))]
    }

    /// Adds the wide sums, the coarser brought to the finer's unit.
    private func addSum(_ source: GroupState, to target: GroupState) {
        var sum = WideInteger(loadingFrom: target.state.assumingMemoryBound(to: UInt64.self))
        var addend = WideInteger(loadingFrom: source.state.assumingMemoryBound(to: UInt64.self))
        let unit = target.state.load(fromByteOffset: Self.unitOffset, as: Int32.self)
        let other = source.state.load(fromByteOffset: Self.unitOffset, as: Int32.self)
        if other > unit { sum.multiply(byPowerOfTen: other - unit) } else { addend.multiply(byPowerOfTen: unit - other) }
        sum.add(addend)
        sum.store(to: target.state.assumingMemoryBound(to: UInt64.self))
        target.state.storeBytes(of: max(unit, other), toByteOffset: Self.unitOffset, as: Int32.self)
    }

    // MARK: Scales

    /// Before the value is counted as present.
    @inline(__always)
    private func noteScale(_ scale: Int, _ weight: Int64, _ group: UInt32, _ state: UnsafeMutablePointer<UInt64>) {
        let place = UnsafeMutableRawPointer(state)
        let known = place.load(fromByteOffset: Self.scaleOffset, as: Int16.self)
        if place.load(fromByteOffset: Self.mixedOffset, as: Int16.self) == 0, Int(known) == scale { return }
        noteOtherScale(scale, weight, group, state)
    }

    private func noteOtherScale(_ scale: Int, _ weight: Int64, _ group: UInt32, _ state: UnsafeMutablePointer<UInt64>) {
        let place = UnsafeMutableRawPointer(state)
        if place.load(fromByteOffset: Self.mixedOffset, as: Int16.self) == 0 {
            let finite = Self.finiteCount(state)
            guard finite != 0 else {
                place.storeBytes(of: Int16(scale), toByteOffset: Self.scaleOffset, as: Int16.self)
                return
            }
            writableCounts(of: group)[Int(place.load(fromByteOffset: Self.scaleOffset, as: Int16.self))] = finite
            place.storeBytes(of: 1, toByteOffset: Self.mixedOffset, as: Int16.self)
        }
        writableCounts(of: group)[scale] &+= weight
    }

    private func counts(of group: UInt32) -> UnsafePointer<Int64>? {
        withUnsafeBytes(of: group.bigEndian) { scaleCounts.find($0) }?.assumingMemoryBound(to: Int64.self)
    }

    private func writableCounts(of group: UInt32) -> UnsafeMutablePointer<Int64> {
        withUnsafeBytes(of: group.bigEndian) { scaleCounts.findOrInsert($0) }.payload.assumingMemoryBound(to: Int64.self)
    }

    private func removeCounts(of group: UInt32) { _ = withUnsafeBytes(of: group.bigEndian) { scaleCounts.remove($0) } }

    private static func finiteCount(_ state: UnsafePointer<UInt64>) -> Int64 {
        Int64(bitPattern: state[countWord] &- state[specialsWord] &- state[specialsWord + 1] &- state[specialsWord + 2])
    }

    func refresh(_ groups: GroupRows) {
        guard scaleCounts.count > 0 else { return }
        for index in 0..<groups.count {
            let state = groups.payloads[index] + groups.offset
            guard state.load(fromByteOffset: Self.mixedOffset, as: Int16.self) != 0, let counts = counts(of: groups.numbers[index]) else { continue }
            let scale = (0..<Self.scalesMax).last { counts[$0] != 0 } ?? 0
            state.storeBytes(of: Int16(scale), toByteOffset: Self.scaleOffset, as: Int16.self)
            if (0..<Self.scalesMax).first(where: { counts[$0] != 0 }) ?? 0 == scale {
                removeCounts(of: groups.numbers[index])
                state.storeBytes(of: 0, toByteOffset: Self.mixedOffset, as: Int16.self)
            }
        }
    }

    func release(_ group: UInt32, _ state: UnsafeMutableRawPointer) {
        if state.load(fromByteOffset: Self.mixedOffset, as: Int16.self) != 0 { removeCounts(of: group) }
    }

    func adopt(_ groups: [GroupMove], from other: DecimalSumAccumulator) {
        for group in groups where group.to.state.load(fromByteOffset: Self.mixedOffset, as: Int16.self) != 0 {
            guard let counts = other.counts(of: group.from.number) else { continue }
            writableCounts(of: group.to.number).update(from: counts, count: Self.scalesMax)
        }
    }

    // MARK: Output

    func output(_ payloads: [UnsafeMutableRawPointer], offset: Int, errors: inout [(Int, SQLError)]) -> Column {
        let column = Column(result.type, uninitialized: payloads.count)
        for (index, payload) in payloads.enumerated() {
            let state = (payload + offset).assumingMemoryBound(to: UInt64.self)
            let count = Int64(bitPattern: state[Self.countWord])
            if count == 0 {
                column.setNull(index)
            } else if let sum = Self.special(state) ?? Self.sum(payload + offset) {
                result.store(sum, count: count, in: column, index, &errors)
            } else {
                result.store(SQLError(.numericValueOutOfRange, "value overflows numeric format"), in: column, index, &errors)
            }
        }
        return column
    }

    private static func special(_ state: UnsafePointer<UInt64>) -> Decimal? {
        let (nan, positive, negative) = (state[specialsWord], state[specialsWord + 1], state[specialsWord + 2])
        if nan != 0 || (positive != 0 && negative != 0) { return Decimal(.nan) }
        return positive != 0 ? Decimal(.positiveInfinity) : negative != 0 ? Decimal(.negativeInfinity) : nil
    }

    private static func sum(_ place: UnsafeMutableRawPointer) -> Decimal? {
        WideInteger(loadingFrom: UnsafePointer(place.assumingMemoryBound(to: UInt64.self))).decimal(
            unit: place.load(fromByteOffset: unitOffset, as: Int32.self),
            scale: Int32(place.load(fromByteOffset: scaleOffset, as: Int16.self)))
    }
}

extension Decimal.Kind {
    /// Place among NaN, infinity, -infinity.
    fileprivate var specialIndex: Int {
        switch self {
        case .nan: 0
        case .positiveInfinity: 1
        case .negativeInfinity: 2
        case .finite: preconditionFailure("a finite value is not special")
        }
    }
}
