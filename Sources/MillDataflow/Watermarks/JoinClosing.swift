import MillPlan
import MillStore

/// What a join lets go of by the watermarks of its sides.
///
/// By a key column: the keys whose time is before both watermarks, with their rows, and a row of such a time is late. Where rows stay that
/// have no whole key, as in an outer join, these go one by one.
///
/// By a range of time, where the condition says that a row's time is at least `reach` above those that it matches: a row goes when its time is
/// before the other side's watermark plus that, since then nothing that it could match comes any more. A row of a time before its own
/// side's watermark is late: what it would match may be gone. One at or after it finds all that it matches, as these are in reach of the
/// watermark.
package struct JoinClosing {
    private let filters: [LateFilter]
    private let reach: [Int64]?

    /// - Parameter reach: for each side, in microseconds; nil: rows of equal times match.
    init(filters: [LateFilter], reach: [Int64]?) {
        self.filters = filters
        self.reach = reach
    }

    /// What a side's table closes.
    /// - Parameter keepsBroken: rows with a NULL in their key are kept.
    func side(_ side: Int, _ keys: [Int], keepsBroken: Bool) -> (keys: KeyClosing, ofRows: Bool)? {
        let column = filters[side].column
        if reach != nil || keepsBroken && keys.count > 1 { return (KeyClosing(filter: filters[side], key: column), true) }
        return keys.firstIndex(of: column).map { (KeyClosing(filter: filters[side], key: $0), false) }
    }

    /// A side's columns that must not be NULL for a row to match.
    func timeColumns(_ side: Int) -> [Int] { reach == nil ? [] : [filters[side].column] }

    /// For each side what is late and what goes, of the watermarks of both.
    func steps(_ watermarks: [WatermarkStep]) -> [WatermarkStep] {
        func least(_ times: [Int64?]) -> Int64? { times.contains(nil) ? nil : times.compactMap { $0 }.min() }
        guard let reach else {
            let both = WatermarkStep(passed: least(watermarks.map(\.passed)), now: least(watermarks.map(\.now)))
            return [both, both]
        }
        return [0, 1].map { side in
            let limit = watermarks[1 - side].now?.addingReportingOverflow(reach[side])
            return WatermarkStep(passed: watermarks[side].passed, now: limit.flatMap { $0.overflow ? nil : $0.partialValue })
        }
    }
}
