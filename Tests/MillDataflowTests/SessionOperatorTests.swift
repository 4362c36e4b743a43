import MillBase
import MillColumnar
import MillExpr
import MillPlan
import MillTestKit
import Testing

@testable import MillDataflow

/// What the operators of sessions give out in an epoch, beyond the sum of it.
@Suite struct SessionOperatorTests {
    private static let schema = [Field("k", .int32), Field("t", .timestamp)]
    private static let window = SessionWindow(timeColumn: 1, boundType: .timestamp, gapMicros: 10, partition: [0])
    private let errors = OperatorErrors()

    private static func counting() throws -> SessionAggregateOperator {
        try SessionAggregateOperator(window, keys: [0, 2, 3], calls: [.init(.count, argument: nil, type: .int64)], input: schema)
    }

    /// One epoch over batches of (key, time), all of weight `weight`.
    private func epoch(_ operation: some Operator, _ batches: [[(Int64, Int64)]], weight: Int64 = 1) -> ReferenceCounts {
        var output: [DeltaBatch] = []
        func drain() { while let batch = operation.next(errors: errors) { output.append(batch) } }
        for batch in batches {
            let changes = batch.map { (row: [Scalar.int($0.0), $0.1 == .max ? .null : .int($0.1)], weight: weight) }
            operation.push(RandomRelation.batch(changes[...], Self.schema), input: 0, errors: errors)
            drain()
        }
        operation.closeEpoch(errors: errors)
        drain()
        #expect(operation.checkInvariants().isEmpty)
        // Nothing is given and taken back.
        let rows = output.reduce(0) { $0 + $1.count }
        let counts = DeltaBatch.counts(output)
        #expect(counts.count == rows)
        return counts
    }

    private func row(_ values: Int64?...) -> ReferenceRow { values.map { $0.map { .integer($0) } ?? .null } }

    @Test func aGrowingSessionGivesOneRetractionAndOneInsertionAnEpoch() throws {
        let operation = try Self.counting()
        let first = (0..<3).map { part in (0..<3000).map { (Int64(1), Int64(part * 30_000 + $0 * 10)) } }
        #expect(epoch(operation, first) == [row(1, 0, 90_000, 9000): 1])
        #expect(
            epoch(operation, [[(1, 90_000)], [(1, 90_003), (1, -10), (1, 7)]]) == [
                row(1, 0, 90_000, 9000): -1, row(1, -10, 90_013, 9004): 1,
            ])
        #expect(epoch(operation, [[(2, 5)]]) == [row(2, 5, 15, 1): 1])
    }

    @Test func aLateRowMakesTwoSessionsOne() throws {
        let operation = try Self.counting()
        #expect(epoch(operation, [[(1, 0), (1, 20), (1, 41)]]) == [row(1, 0, 10, 1): 1, row(1, 20, 30, 1): 1, row(1, 41, 51, 1): 1])
        #expect(epoch(operation, [[(1, 10)]]) == [row(1, 0, 10, 1): -1, row(1, 20, 30, 1): -1, row(1, 0, 30, 3): 1])
        #expect(epoch(operation, [[(1, 31)]]) == [row(1, 41, 51, 1): -1, row(1, 31, 51, 2): 1])
    }

    /// Rows of the batch that went to the session which has then become part of another are counted there.
    @Test func sessionsThatBeginAndAreJoinedWithinABatchAreOne() throws {
        let operation = try Self.counting()
        #expect(
            epoch(operation, [[(1, 0), (1, 40), (1, 20), (1, 30), (1, 10), (1, .max)]]) == [row(1, 0, 50, 5): 1, row(1, nil, nil, 1): 1])
        #expect(
            epoch(operation, [[(1, 60), (1, 80), (1, 70), (1, .max)]]) == [
                row(1, 60, 90, 3): 1, row(1, nil, nil, 1): -1, row(1, nil, nil, 2): 1,
            ])
    }

    @Test func aRowThatMovesNoBoundGivesNothingButItself() {
        let operation = SessionWindowOperator(Self.window, input: Self.schema.map(\.type))
        #expect(epoch(operation, [[(1, 0), (1, 10)]]) == [row(1, 0, 0, 20): 1, row(1, 10, 0, 20): 1])
        #expect(epoch(operation, [[(1, 5), (1, 5), (1, .max)]]) == [row(1, 5, 0, 20): 2, row(1, nil, nil, nil): 1])
        #expect(epoch(operation, [[(1, 5)]], weight: -1) == [row(1, 5, 0, 20): -1])
    }

    @Test func aRowThatGoesPartsItsSession() {
        let operation = SessionWindowOperator(Self.window, input: Self.schema.map(\.type))
        #expect(epoch(operation, [[(1, 0), (1, 10), (1, 20)]]).count == 3)
        #expect(
            epoch(operation, [[(1, 10)]], weight: -1) == [
                row(1, 0, 0, 30): -1, row(1, 10, 0, 30): -1, row(1, 20, 0, 30): -1, row(1, 0, 0, 10): 1, row(1, 20, 20, 30): 1,
            ])
    }
}
