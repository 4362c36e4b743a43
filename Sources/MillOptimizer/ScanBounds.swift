package import MillBase
import MillColumnar
package import MillConnectorKit
import MillExpr
package import MillPlan

/// What a query asks of the columns of a relation that it reads once: for whoever can pass over what does not match.
///
/// ```
/// filter (day >= '2026-01-01' AND n = 3 AND f(x))        day at least 2026-01-01, n from 3 to 3
///   scan
/// ```
///
/// Only what stands right above the scan and must hold of each row: parts of an AND, each a column compared with a constant of its own
/// type. The filter stays where it is.
package enum ScanBounds {
    /// - Returns: by columns of the relation, not of the scan.
    package static func bounds(of relation: ObjectID, in plan: LogicalPlan) -> [ScanBound] {
        guard case .filter(let filter) = plan, case .scan(let scan) = filter.input, scan.relation.id == relation else {
            return plan.inputs.lazy.map { bounds(of: relation, in: $0) }.first { !$0.isEmpty } ?? []
        }
        return filter.predicate.conjuncts.compactMap { condition in
            guard let (place, kind) = bound(condition), scan.columns.indices.contains(place) else { return nil }
            return ScanBound(scan.columns[place], kind)
        }
    }

    private static func bound(_ condition: BoundExpression) -> (Int, ScanBound.Kind)? {
        switch condition {
        case .call(let function, let sides, _, _) where sides.count == 2:
            if case .column(let place, let type) = sides[0], case .literal(let value, type) = sides[1] {
                return kind(function.name, value).map { (place, $0) }
            }
            if case .column(let place, let type) = sides[1], case .literal(let value, type) = sides[0] {
                return kind(mirrored[function.name] ?? function.name, value).map { (place, $0) }
            }
            return nil
        case .inList(.column(let place, _), let list, negated: false):
            return (place, .oneOf(list.filter { $0 != .null }))
        case .isNull(.column(let place, _)): return (place, .isNull)
        case .not(.isNull(.column(let place, _))): return (place, .isNotNull)
        default: return nil
        }
    }

    private static let mirrored = ["less": "greater", "less_or_equal": "greater_or_equal", "greater": "less", "greater_or_equal": "less_or_equal"]

    private static func kind(_ function: String, _ value: Scalar) -> ScanBound.Kind? {
        guard value != .null else { return nil }
        switch function {
        case "equal": return .between(value, value)
        // One more than it would have to be: bounds of files have no open ends.
        case "less", "less_or_equal": return .between(nil, value)
        case "greater", "greater_or_equal": return .between(value, nil)
        default: return nil
        }
    }
}
