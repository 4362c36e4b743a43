import MillColumnar
import MillExpr
import MillPlan

/// Aggregates with few groups, in two steps.
extension StreamPlanner {
    /// Goal: an aggregate whose groups are few is the work of all workers, not of the few that own the groups.
    ///
    ///     Aggregate { keys }          Project { counts and sums as their types, averages }
    ///       input               ->      Aggregate { keys, over the parts }
    ///                                     Exchange { keys }
    ///                                       Aggregate { keys }, each worker over its own rows
    ///                                         input
    ///
    /// Groups are known to be few when there are no keys, or only bounds of a time window. Each worker then keeps a part of each of them,
    /// and sends one row for it and epoch.
    ///
    /// Not when the input takes rows back, as another worker than the one that has the row in its part could be told; not when a call's
    /// parts do not make the whole exactly: DISTINCT, sums of floats (rounded in each part), averages of numeric (whose digits depend on
    /// how the sum is written). Law: sums, counts and extrema of a union are those of the parts'.
    ///
    /// - Parameter keys: columns of the input.
    /// - Returns: nil when it must not fire.
    mutating func aggregateOfParts(_ input: NodeIndex, keys: [Int], calls: [AggregateCall], schema: Schema) -> NodeIndex? {
        let properties = builder[input].properties
        guard splitsAggregates, properties.appendOnly, !properties.distribution.fits(keys), !calls.isEmpty, areFew(keys, of: input) else { return nil }
        var parts: [AggregateCall] = []
        var wholes: [AggregateCall] = []
        var results: [BoundExpression] = keys.indices.map { .column($0, schema[$0].type) }

        /// A call over the input and the one over its parts; gives the latter's column.
        func add(_ part: AggregateCall, _ whole: AggregateFunction) -> BoundExpression {
            let type: SQLType = whole == .sum ? .numeric : part.type
            parts.append(part)
            wholes.append(AggregateCall(whole, argument: .column(keys.count + parts.count - 1, part.type), type: type))
            return .column(keys.count + wholes.count - 1, type)
        }
        for call in calls {
            guard call.hasParts else { return nil }
            var sum = call
            (sum.function, sum.type) = (.sum, .numeric)
            var count = call
            (count.function, count.type) = (.count, .int64)
            switch call.function {
            case .count: results.append(.cast(add(count, .sum), .int64, nil))
            case .sum where call.type == .numeric: results.append(add(sum, .sum))
            case .sum: results.append(.cast(add(sum, .sum), call.type, nil))
            case .avg:
                let division = ScalarFunction(name: "divide", argumentTypes: [.numeric, .numeric])
                results.append(.call(division, [add(sum, .sum), add(count, .sum)], .numeric, nil))
            default: results.append(add(call, call.function))
            }
        }

        let keyFields = Array(schema.prefix(keys.count))
        func fields(_ calls: [AggregateCall]) -> Schema { keyFields + calls.map { Field($0.function.rawValue, $0.type) } }
        let partial = builder.add(
            .aggregate(keys: keys, calls: parts), [input], fields(parts), StreamProperties(appendOnly: false, distribution: .any))
        let places = Array(keys.indices)
        let placed = builder.distributing(partial, by: places)
        let distribution = builder[placed].properties.distribution
        let whole = builder.add(
            .aggregate(keys: places, calls: wholes), [placed], fields(wholes),
            StreamProperties(uniqueKey: places, appendOnly: false, distribution: distribution))
        return builder.project(whole, results, names: schema.map(\.name))
    }

    /// Whether at any time few different values of these columns come in.
    private func areFew(_ columns: [Int], of input: NodeIndex) -> Bool {
        guard !columns.isEmpty else { return true }
        let node = builder[input]
        switch node.operation {
        case .timeWindow: return columns.allSatisfy { $0 >= builder[node.inputs[0]].schema.count }
        case .filter: return areFew(columns, of: node.inputs[0])
        case .project(let expressions):
            let below = columns.compactMap { if case .column(let column, _) = expressions[$0] { column } else { nil } }
            return below.count == columns.count && areFew(below, of: node.inputs[0])
        default: return false
        }
    }
}

extension AggregateCall {
    /// Whether what the call gives for the parts of a group is enough to know what it gives for the whole.
    fileprivate var hasParts: Bool {
        guard !distinct else { return false }
        let type = argument?.type ?? .int64
        return switch function {
        case .count, .min, .max, .boolAnd, .boolOr: true
        case .sum: !type.isFloat
        case .avg: !type.isFloat && !type.isNumeric
        case .singleValue: false
        }
    }
}
