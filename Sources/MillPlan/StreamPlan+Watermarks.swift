package import MillColumnar
import MillExpr

/// Which state goes by a watermark: the rows of which it can be said that no more come.
package struct Closing: Hashable, Sendable, Codable {
    /// For each input the column whose watermark decides. A row of a time before it is late.
    package var columns: [Int]
    /// Whether output waits for the closing, and then comes once (EMIT ON WINDOW CLOSE).
    package var emitsOnClose: Bool
    /// Of a join by a range of time: for each input how much a row's time is above those that it matches, at least, in microseconds. The row
    /// goes when what follows of the other input is above that. nil: by its own time.
    package var reach: [Int64]?

    package init(columns: [Int], emitsOnClose: Bool = false, reach: [Int64]? = nil) {
        self.columns = columns
        self.emitsOnClose = emitsOnClose
        self.reach = reach
    }
}

/// Watermarks of a node's columns, in microseconds since 1970: no row comes any more whose value is below, but for late ones. A
/// column is not there as long as nothing is promised of it.
package typealias Watermarks = [Int: Int64]

/// How watermarks go through a plan. The same rules say at planning which columns have one, and in every epoch what it is: what the
/// sources promise is the same on all workers, and so is all that follows from it.
///
/// An operator that keeps groups, join sides, partitions or sessions closes them at the end of an epoch by the watermark that the epoch opened with
/// (`now`), and takes rows of times from the one before on (`passed`). So in an epoch rows of closed groups come from no operator, also
/// not from one that gives out its groups when it closes them: all are at or above `passed`.
extension StreamNode {
    /// - Parameters:
    ///   - inputs: of each input its watermarks.
    ///   - schemas: of each input its columns.
    package static func watermarks(_ operation: StreamOperation, _ inputs: [Watermarks], _ schemas: [Schema]) -> Watermarks {
        switch operation {
        case .source, .relation, .values: return [:]
        case .filter, .exchange, .materialize, .result, .blackhole, .sink: return inputs[0]
        case .project(let expressions): return inputs[0].remapped { column in expressions.indices.filter { expressions[$0].isColumn(column) } }
        case .timeWindow(let window): return inputs[0].merging(bounds(window, inputs[0], width: schemas[0].count)) { own, _ in own }
        case .panes(let window):
            // Windows begin and end with panes, so they close at the same moment.
            var marks = inputs[0]
            if let mark = marks[window.timeColumn], isFarFromEnds(mark, window) {
                marks[window.timeColumn] = window.paneStart(mark, paneMicros: window.paneMicros)
            }
            return marks
        case .sessionWindow(let window): return inputs[0].filter { window.partition.contains($0.key) }
        case .sessionAggregate(let window, let keys, _):
            var marks = inputs[0].filter { window.partition.contains($0.key) }
            // An open session ends at or after the watermark.
            marks[schemas[0].count + 1] = inputs[0][window.timeColumn]
            return marks.remapped { column in keys.indices.filter { keys[$0] == column } }
        case .aggregate(let keys, _): return inputs[0].remapped { column in keys.indices.filter { keys[$0] == column } }
        case .join(let kind, let leftKeys, let rightKeys, let residual):
            var marks: Watermarks = [:]
            for (left, right) in zip(leftKeys, rightKeys) {
                guard let own = inputs[0][left], let other = inputs[1][right] else { continue }
                marks[left] = min(own, other)
                if kind != .semi, kind != .anti { marks[schemas[0].count + right] = min(own, other) }
            }
            // An old row is shown again with one of the other side that is near enough.
            if marks.isEmpty, kind == .inner,
                let range = JoinTimeRange(residual, leftWidth: schemas[0].count, marked: inputs.map { $0.keys.sorted() }),
                let own = inputs[0][range.columns[0]], let other = inputs[1][range.columns[1]], max(own.magnitude, other.magnitude) < Int64.max / 4
            {
                marks[range.columns[0]] = min(own, other + range.reach[0])
                marks[schemas[0].count + range.columns[1]] = min(other, own + range.reach[1])
            }
            return marks
        case .union:
            return inputs[0].filter { column, _ in inputs.allSatisfy { $0[column] != nil } }
                .reduce(into: [:]) { marks, mark in marks[mark.key] = inputs.compactMap { $0[mark.key] }.min() }
        case .rank(let window, _, _): return inputs[0].filter { window.partition.contains($0.key) }
        }
    }

    /// The earliest window that still gets rows: the first one that begins later than its size before the watermark.
    private static func bounds(_ window: TimeWindow, _ input: Watermarks, width: Int) -> Watermarks {
        guard let mark = input[window.timeColumn], isFarFromEnds(mark, window) else { return [:] }
        let rest = (mark - window.sizeMicros - window.offsetMicros) % window.slideMicros
        let start = mark - window.sizeMicros - (rest < 0 ? rest + window.slideMicros : rest) + window.slideMicros
        return [width: start, width + 1: start + window.sizeMicros]
    }

    /// Whether bounds of windows around a time are surely 64 bits.
    private static func isFarFromEnds(_ mark: Int64, _ window: TimeWindow) -> Bool {
        let limit = Int64.max / 8
        return mark.magnitude < limit.magnitude && window.sizeMicros < limit && window.slideMicros < limit && window.offsetMicros.magnitude < limit.magnitude
    }

    /// What state an operator may let go by its inputs' watermarks; nil when none.
    /// - Parameters:
    ///   - inputs: of each input the columns with a watermark.
    ///   - schemas: of each input its columns.
    package static func closing(_ operation: StreamOperation, _ inputs: [[Int]], _ schemas: [Schema], emitsOnClose: Bool) -> Closing? {
        switch operation {
        case .aggregate(let keys, _):
            return keys.first(where: inputs[0].contains).map { Closing(columns: [$0], emitsOnClose: emitsOnClose) }
        case .panes(let window): return inputs[0].contains(window.timeColumn) ? Closing(columns: [window.timeColumn]) : nil
        case .sessionAggregate(let window, _, _):
            return inputs[0].contains(window.timeColumn) ? Closing(columns: [window.timeColumn], emitsOnClose: emitsOnClose) : nil
        case .join(let kind, let leftKeys, let rightKeys, let residual):
            if let (left, right) = zip(leftKeys, rightKeys).first(where: { inputs[0].contains($0) && inputs[1].contains($1) }) {
                return Closing(columns: [left, right])
            }
            guard kind == .inner, let range = JoinTimeRange(residual, leftWidth: schemas[0].count, marked: inputs) else { return nil }
            return Closing(columns: range.columns, reach: range.reach)
        case .rank(let window, _, _): return window.partition.first(where: inputs[0].contains).map { Closing(columns: [$0]) }
        default: return nil
        }
    }
}

extension StreamPlan {
    /// The watermarks of all nodes in an epoch.
    /// - Parameter input: those of a source or relation: of its own columns with these numbers, which have one.
    package func watermarks(_ input: (RelationReference, _ columns: [Int]) -> Watermarks) -> [Watermarks] {
        var marks: [Watermarks] = []
        marks.reserveCapacity(nodes.count)
        for node in nodes {
            switch node.operation {
            case .source(let relation, let columns), .relation(let relation, let columns):
                let marked = node.properties.watermarks
                let known = marked.isEmpty ? [:] : input(relation, marked.map { columns[$0] })
                marks.append(marked.reduce(into: [:]) { own, place in own[place] = known[columns[place]] })
            default:
                marks.append(StreamNode.watermarks(node.operation, node.inputs.map { marks[$0.number] }, node.inputs.map { self[$0].schema }))
            }
        }
        return marks
    }

    /// Whether some column has a watermark.
    package var hasWatermarks: Bool { nodes.contains { !$0.properties.watermarks.isEmpty } }
}

extension Watermarks {
    /// Under other column numbers; a column may have several, or none.
    fileprivate func remapped(_ places: (Int) -> [Int]) -> Watermarks {
        reduce(into: [:]) { marks, mark in for place in places(mark.key) { marks[place] = mark.value } }
    }
}

extension BoundExpression {
    fileprivate func isColumn(_ index: Int) -> Bool { if case .column(index, _) = self { true } else { false } }
}
