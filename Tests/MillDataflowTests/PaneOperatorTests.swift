import MillBase
import MillColumnar
import MillPlan
import MillStore
import Testing

@testable import MillDataflow

/// What panes make of rows (key, time in seconds) below windows of 10 seconds that slide by 4: panes are 2 seconds wide.
@Suite struct PaneOperatorTests {
    private static let second: Int64 = 1_000_000
    private static let window = TimeWindow(timeColumn: 1, boundType: .timestamp, slideMicros: 4 * second, sizeMicros: 10 * second)
    private static let columns: [SQLType] = [.int64, .timestamp]

    private let operation = PaneOperator(Self.window, columns: Self.columns)
    private let errors = OperatorErrors()

    private func push(_ rows: [(key: Int64, micros: Int64?, weight: Int64)]) -> [DeltaBatch] {
        let columns = Self.columns.map { Column($0, capacity: rows.count) }
        for row in rows {
            columns[0].append(.int(row.key))
            columns[1].append(row.micros.map { .int($0) } ?? .null)
        }
        operation.push(DeltaBatch(columns: columns, count: rows.count, weights: Weights(rows.map(\.weight))), input: 0, errors: errors)
        return output()
    }

    private func close() -> [DeltaBatch] {
        operation.closeEpoch(errors: errors)
        return output()
    }

    private func output() -> [DeltaBatch] {
        var batches: [DeltaBatch] = []
        while let batch = operation.next(errors: errors) { batches.append(batch) }
        return batches
    }

    private func text(_ batches: [DeltaBatch]) -> [String] {
        batches.flatMap { batch in
            (0..<batch.count).map { "\(batch.weight($0)): \(batch.columns[0].scalar($0)) \(batch.columns[1].scalar($0))" }
        }
    }

    private static func row(_ weight: Int64, _ key: Int64, _ micros: Int64?) -> String {
        "\(weight): \(Scalar.int(key)) \(micros.map { Scalar.int($0) } ?? Scalar.null)"
    }

    @Test func rowsOfAPaneAreOneWithAllTheirWeights() {
        #expect(push([(1, 0, 1), (1, Self.second, 2), (1, 2 * Self.second - 1, -1), (1, 2 * Self.second, 1), (2, 1, 1)]).isEmpty)
        #expect(push([(1, -1, 1)]).isEmpty)
        let pane = 2 * Self.second
        #expect(text(close()) == [Self.row(2, 1, 0), Self.row(1, 1, pane), Self.row(1, 2, 0), Self.row(1, 1, -pane)])
        #expect(close().isEmpty)
        #expect(operation.checkInvariants() == [])
    }

    @Test func whatIsTakenBackInTheSameEpochIsNotSeen() {
        _ = push([(1, 5, 1), (2, 5, 1)])
        _ = push([(1, 7, -1)])
        #expect(text(close()) == [Self.row(1, 2, 0)])
    }

    @Test func missingAndInfiniteTimesStayAsTheyAre() {
        _ = push([(1, nil, 1), (1, .max, 1), (1, .min, 1), (1, nil, 1)])
        #expect(text(close()) == [Self.row(2, 1, nil), Self.row(1, 1, .max), Self.row(1, 1, .min)])
    }

    @Test func lateRowsPassWithTheirOwnTimes() {
        operation.openEpoch([WatermarkStep(passed: 3 * Self.second, now: 9 * Self.second)])
        #expect(text(push([(1, 2 * Self.second + 1, 1), (1, 3 * Self.second, 1), (1, 3 * Self.second + 5, 1)])) == [Self.row(1, 1, 2 * Self.second + 1)])
        #expect(text(close()) == [Self.row(2, 1, 2 * Self.second)])
    }

    @Test func rowsThatHardlyRepeatPassForAWhile() {
        let count = Limits.batchRowsMax
        var given: [DeltaBatch] = []
        for part in 0..<20 { given += push((0..<count).map { (Int64(part * count + $0), 1, 1) }) }
        #expect(given.contains { $0.columns[1].scalar(0) == .int(1) }, "some passed as they were")
        given += close()
        #expect(given.allSatisfy { $0.count <= count })
        #expect(Set(given.flatMap { batch in (0..<batch.count).map { batch.columns[0].scalar($0) } }).count == 20 * count)
        #expect(given.reduce(0) { $0 + $1.count } == 20 * count)
        // Those that are to pass are not for ever.
        for _ in 0..<64 { _ = push((0..<count).map { _ in (1, 1, 1) }) }
        _ = close()
        _ = push([(1, 1, 1), (1, 2, 1)])
        #expect(text(close()) == [Self.row(2, 1, 0)])
    }

    /// What is equal and not the same stays apart: a FILTER or an argument above may read it as text.
    @Test func onlyRowsThatNothingCanTellApartAreOne() {
        let panes = PaneOperator(Self.window, columns: [.numeric, .timestamp, .float64])
        let columns = [Column(.numeric, capacity: 4), Column(.timestamp, capacity: 4), Column(.float64, capacity: 4)]
        for (scale, float) in [(1, 0.0), (2, 0.0), (1, -0.0), (1, 0.0)] {
            columns[0].append(.decimal(Decimal(unscaled: scale == 1 ? 10 : 100, scale: Int32(scale))))
            columns[1].append(.int(1))
            columns[2].append(.float(float))
        }
        panes.push(DeltaBatch(columns: columns, count: 4), input: 0, errors: errors)
        panes.closeEpoch(errors: errors)
        let batch = panes.next(errors: errors)
        #expect(batch.map { batch in (0..<batch.count).map { batch.weight($0) } } == [2, 1, 1])
    }
}
