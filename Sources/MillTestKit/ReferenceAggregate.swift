import MillBase
import MillColumnar
import MillExpr

/// One aggregate over all rows of one group.
enum ReferenceAggregate {
    static func value(_ call: AggregateCall, _ rows: [ReferenceRow]) -> ReferenceValue {
        let counted = rows.filter { row in call.filter.map { ReferenceExpression.evaluate($0, row).isTrue } ?? true }
        guard let argument = call.argument else { return .integer(Int64(counted.count)) }
        let all = counted.map { ReferenceExpression.evaluate(argument, $0) }
        if call.function == .singleValue { return all.count == 1 ? all[0] : .null }
        var present = all.filter { !$0.isNull }
        if call.distinct {
            var seen = Set<ReferenceValue>()
            present = present.filter { seen.insert($0.key).inserted }
        }
        if call.function == .count { return .integer(Int64(present.count)) }
        guard !present.isEmpty else { return .null }
        switch call.function {
        case .min: return present.min(by: ReferenceValue.precedes)!  // Not empty.
        case .max: return present.max(by: ReferenceValue.precedes)!  // Not empty.
        case .boolAnd: return .boolean(present.allSatisfy(\.isTrue))
        case .boolOr: return .boolean(present.contains(where: \.isTrue))
        case .sum, .avg: return sum(call, argument.type, present)
        case .count, .singleValue: preconditionFailure("handled above")
        }
    }

    private static func sum(_ call: AggregateCall, _ type: SQLType, _ present: [ReferenceValue]) -> ReferenceValue {
        let isAverage = call.function == .avg
        if type.isFloat {
            let total = exactSum(present.map { value in if case .float(let bits) = value { Double(bitPattern: bits) } else { .nan } }) + 0
            // A sum of zeros is 0.0, whatever their signs.
            let result = isAverage ? total / Double(present.count) : total
            return ReferenceValue(call.type == .float32 ? Double(Float(result)) : result)
        }
        guard let total = exactDecimal(present) else { return .null }
        if call.type == .int64 {
            guard total.scale == 0, let value = Int64(exactly: total.unscaled) else { return .null }
            return .integer(value)
        }
        guard isAverage else { return ReferenceValue(total) }
        do throws(SQLError) {
            return ReferenceValue(try Decimal.dividing(total.normalized, Decimal(unscaled: Int128(present.count), scale: 0)))
        } catch { return .null }
    }

    /// nil: the whole part does not fit.
    private static func exactDecimal(_ values: [ReferenceValue]) -> Decimal? {
        var specials = Set<Int32>()
        var finite: [ReferenceDecimal] = []
        for value in values {
            switch value {
            case .integer(let number): finite.append(ReferenceDecimal(Decimal(number)))
            case .decimal(let decimal): finite.append(decimal)
            case .specialDecimal(let kind): specials.insert(kind)
            default: preconditionFailure("sums are over numbers")
            }
        }
        if specials.contains(2) || specials.count > 1 { return Decimal(.nan) }
        if let special = specials.first { return Decimal(special < 0 ? .negativeInfinity : .positiveInfinity) }
        return ReferenceDecimal.sum(finite).decimal
    }

    /// Shewchuk's sum: partial sums that do not overlap, then one rounding. Values stay far from overflow.
    static func exactSum(_ values: [Double]) -> Double {
        let special = values.filter { !$0.isFinite }
        if !special.isEmpty { return special.reduce(0, +) }
        var partials: [Double] = []
        for value in values {
            var rest = value
            var kept: [Double] = []
            for partial in partials {
                let (large, small) = abs(rest) < abs(partial) ? (partial, rest) : (rest, partial)
                let high = large + small
                let low = small - (high - large)
                if low != 0 { kept.append(low) }
                rest = high
            }
            partials = kept + [rest]
        }
        guard var high = partials.popLast() else { return 0 }
        var low = 0.0
        while let next = partials.popLast() {
            let before = high
            high = before + next
            low = next - (high - before)
            if low != 0 { break }
        }
        // A tie that a smaller partial breaks.
        if let next = partials.last, (low < 0 && next < 0) || (low > 0 && next > 0) {
            let doubled = low * 2
            let moved = high + doubled
            if doubled == moved - high { high = moved }
        }
        return high
    }
}
