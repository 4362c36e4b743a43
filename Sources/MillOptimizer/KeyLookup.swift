package import MillBase
package import MillColumnar
import MillExpr
package import MillPlan

/// Finds queries that want only some rows of a table, by its key: those are looked up instead of reading all.
///
/// Before: `Filter { id = 5 AND x > 0 }` over `Scan { t }`, t's key being `id`. Then only the row under 5 needs to be given to the scan; the filter
/// stays. Each column of the key must be compared with a constant of its own type; a key of one column also by IN.
///
/// Not where the relation is scanned a second time: that scan may want other rows.
package enum KeyLookup {
    /// Keys that an IN may list; beyond, reading all is as good.
    private static let keysMax = 1000

    /// The keys of the only rows of a relation that a query can see, each in the order of `key`; nil when it may see all.
    package static func keys(of relation: ObjectID, key: [Int], in plan: LogicalPlan) -> [[Scalar]]? {
        guard !key.isEmpty, scans(of: relation, in: plan) == 1 else { return nil }
        return filtered(relation, key, plan)
    }

    private static func scans(of relation: ObjectID, in plan: LogicalPlan) -> Int {
        if case .scan(let scan) = plan { return scan.relation.id == relation ? 1 : 0 }
        return plan.inputs.reduce(0) { $0 + scans(of: relation, in: $1) }
    }

    private static func filtered(_ relation: ObjectID, _ key: [Int], _ plan: LogicalPlan) -> [[Scalar]]? {
        guard case .filter(let filter) = plan, case .scan(let scan) = filter.input, scan.relation.id == relation else {
            return plan.inputs.lazy.compactMap { filtered(relation, key, $0) }.first
        }
        let conjuncts = filter.predicate.conjuncts
        var values: [[Scalar]] = []
        for column in key {
            guard let place = scan.columns.firstIndex(of: column) else { return nil }
            guard let found = conjuncts.lazy.compactMap({ constants($0, column: place, scan.schema[place].type) }).first else { return nil }
            values.append(found)
        }
        if values.count == 1 { return values[0].map { [$0] } }
        return values.allSatisfy { $0.count == 1 } ? [values.map { $0[0] }] : nil
    }

    /// The only values that a condition leaves a column; nil when it leaves others.
    private static func constants(_ condition: BoundExpression, column: Int, _ type: SQLType) -> [Scalar]? {
        switch condition {
        case .call(let function, let sides, _, _) where function.name == "equal" && sides.count == 2:
            for (side, other) in [(sides[0], sides[1]), (sides[1], sides[0])] {
                if case .column(column, type) = side, case .literal(let value, type) = other, value != .null { return [value] }
            }
            return nil
        case .inList(.column(column, type), let list, negated: false) where list.count <= keysMax && !list.contains(.null): return list
        default: return nil
        }
    }
}
