import MillColumnar
import MillExpr
import MillPlan

extension StreamProperties {
    /// The same properties in other column numbers, without what depended on columns that are gone.
    func remapped(_ map: (Int) -> Int?) -> StreamProperties {
        var key = uniqueKey?.compactMap(map)
        if key?.count != uniqueKey?.count { key = nil }
        return StreamProperties(
            uniqueKey: key, appendOnly: appendOnly, distribution: distribution.remapped(map), watermarks: watermarks.compactMap(map).sorted())
    }

    /// What numbered rows have: one row of a partition is known by it, several by their row numbers, if these are there.
    static func rank(_ node: LogicalRank, input: StreamProperties, width: Int) -> StreamProperties {
        var key = input.uniqueKey
        if let cut = node.cut, cut.function == .rowNumber, cut.limit == 1 {
            key = node.window.partition
        } else if key == nil, let number = node.functions.firstIndex(of: .rowNumber) {
            key = node.window.partition + [width + number]
        }
        return StreamProperties(uniqueKey: key, appendOnly: false, distribution: input.distribution)
    }

    /// What a join's output has.
    ///
    /// - Unique: if each row of one side meets at most one row of the other (whose key the join's keys contain), the
    ///   first side's key is enough; else both keys together.
    /// - Append-only: an inner or semi join of append-only sides; outer and anti joins take unmatched rows back.
    /// - Distribution: the left side's. A full join's rows without a left side are elsewhere.
    static func join(
        _ kind: JoinKind, _ left: StreamProperties, _ leftKeys: [Int], _ right: StreamProperties, _ rightKeys: [Int], leftWidth: Int
    ) -> StreamProperties {
        let rightIsOne = right.uniqueKey.map { $0.allSatisfy(rightKeys.contains) } ?? false
        let leftIsOne = left.uniqueKey.map { $0.allSatisfy(leftKeys.contains) } ?? false
        let shifted = right.uniqueKey?.map { $0 + leftWidth }
        let both: [Int]? = if let leftKey = left.uniqueKey, let shifted { leftKey + shifted } else { nil }
        let key: [Int]? =
            switch kind {
            case .semi, .anti: left.uniqueKey
            case .inner: rightIsOne && left.uniqueKey != nil ? left.uniqueKey : leftIsOne && shifted != nil ? shifted : both
            case .left: rightIsOne && left.uniqueKey != nil ? left.uniqueKey : both
            case .right, .full: both
            }
        let distribution: Distribution = kind == .full && left.distribution != .single ? .any : left.distribution
        let appendOnly = (kind == .inner || kind == .semi) && left.appendOnly && right.appendOnly
        return StreamProperties(uniqueKey: key, appendOnly: appendOnly, distribution: distribution)
    }
}

extension BoundExpression {
    /// Without its places in the statement, which mean nothing in a plan that outlives it and would keep equal parts apart.
    var withoutSpans: BoundExpression {
        rewriting { part in
            switch part {
            case .call(let function, let arguments, let type, _): .call(function, arguments, type, nil)
            case .cast(let operand, let type, _): .cast(operand, type, nil)
            default: part
            }
        }
    }
}

extension AggregateCall {
    var withoutSpans: AggregateCall {
        var call = self
        call.argument = argument?.withoutSpans
        call.filter = filter?.withoutSpans
        return call
    }

    var columnsUsed: Set<Int> { (argument?.columnsUsed ?? []).union(filter?.columnsUsed ?? []) }

    func remapped(_ map: (Int) -> Int) -> AggregateCall {
        var call = self
        call.argument = argument?.remapped(map)
        call.filter = filter?.remapped(map)
        return call
    }
}
