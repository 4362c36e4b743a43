import MillBase
import MillColumnar
import MillExpr
import MillPlan
import MillState
import MillTestKit
import Testing

@testable import MillDataflow

/// What an aggregate gives out in an epoch, beyond the sum of it.
@Suite struct HashAggregateOperatorTests {
    private let errors = OperatorErrors()

    private func epoch(_ operation: HashAggregateOperator, _ batches: [DeltaBatch]) -> [DeltaBatch] {
        for batch in batches {
            operation.push(batch, input: 0, errors: errors)
            #expect(operation.next(errors: errors) == nil)
        }
        operation.closeEpoch(errors: errors)
        var output: [DeltaBatch] = []
        while let batch = operation.next(errors: errors) { output.append(batch) }
        return output
    }

    private func rows(_ changes: [([Scalar], Int64)], _ schema: Schema) -> DeltaBatch {
        RandomRelation.batch(changes.map { (row: $0.0, weight: $0.1) }[...], schema)
    }

    @Test func atMostOneRetractionAndOneInsertionPerKeyAndEpoch() throws {
        for seed in LawSettings(runs: 300).seeds {
            var random = SeededGenerator(seed: seed)
            let schema = [Field("k", .int16), Field("v", .numeric)]
            var relation = RandomRelation(schema, using: &random)
            let value = BoundExpression.column(1, .numeric)
            let operation = try HashAggregateOperator(
                keys: [0],
                calls: [.init(.max, argument: value, type: .numeric), .init(.avg, argument: value, distinct: true, type: .numeric)],
                input: schema, isAppendOnly: false, ownsGlobalGroup: true)
            var total: ReferenceCounts = [:]
            for _ in 0..<6 {
                let output = epoch(operation, RandomRelation.batches(relation.change(40, using: &random), schema, using: &random))
                var retracted: Set<ReferenceValue> = []
                var inserted: Set<ReferenceValue> = []
                for batch in output {
                    for row in 0..<batch.count {
                        let key = ReferenceValue(batch.columns[0].scalar(row))
                        let isNew = batch.weight(row) == 1 ? inserted.insert(key).inserted : retracted.insert(key).inserted
                        #expect(isNew && abs(batch.weight(row)) == 1, "MILLRACE_SEED=\(seed)")
                    }
                }
                for (row, weight) in DeltaBatch.counts(output) {
                    let sum = total[row, default: 0] + weight
                    total[row] = sum == 0 ? nil : sum
                }
                #expect(total.values.allSatisfy { $0 == 1 }, "MILLRACE_SEED=\(seed)")
            }
        }
    }

    @Test func aChangeThatLeavesTheOutputAsItIsGivesNothing() throws {
        let schema = [Field("k", .int32), Field("v", .int32), Field("b", .boolean), Field("f", .float64)]
        let value = BoundExpression.column(1, .int32)
        let operation = try HashAggregateOperator(
            keys: [0],
            calls: [
                .init(.max, argument: value, type: .int32), .init(.boolOr, argument: .column(2, .boolean), type: .boolean),
                .init(.avg, argument: value, type: .numeric), .init(.sum, argument: .column(3, .float64), type: .float64),
            ],
            input: schema, isAppendOnly: false, ownsGlobalGroup: true)
        let row: [Scalar] = [.int(1), .int(5), .boolean(true), .null]
        #expect(epoch(operation, [rows([(row, 1)], schema)]).count == 1)
        let passing: [Scalar] = [.int(1), .int(5), .boolean(true), .float(2)]
        #expect(epoch(operation, [rows([(passing, 1), (passing, -1)], schema)]).isEmpty)
        // Another group appears and goes within the epoch.
        let other: [Scalar] = [.int(2), .int(5), .null, .null]
        #expect(epoch(operation, [rows([(other, -1)], schema), rows([(other, 1)], schema)]).isEmpty)
        let maximum = try HashAggregateOperator(
            keys: [0], calls: [.init(.max, argument: value, type: .int32), .init(.boolOr, argument: .column(2, .boolean), type: .boolean)],
            input: schema, isAppendOnly: false, ownsGlobalGroup: true)
        #expect(epoch(maximum, [rows([(row, 1)], schema)]).count == 1)
        #expect(epoch(maximum, [rows([([.int(1), .int(4), .boolean(false), .null], 1)], schema)]).isEmpty)
        #expect(DeltaBatch.counts(epoch(maximum, [rows([(row, -1)], schema)])).count == 2)
    }

    @Test func rowsThatAFilterLeavesOutHaveNoErrors() {
        let column = Column(.int32, capacity: 1)
        column.append(Scalar.int(0))
        errors.report(
            SQLError(.divisionByZero, "division by zero"), operatorName: "sum",
            batch: DeltaBatch(columns: [column], count: 1, weights: Weights([0])), row: 0)
        #expect(errors.entries.isEmpty)
        #expect(errors.takeFirst() == nil)
    }

    /// Of a worker that does not own the group: it is there while it has rows.
    @Test func theGroupWithoutKeysHasTheWeightOfItsRows() throws {
        let schema = [Field("v", .int32)]
        let operation = try HashAggregateOperator(
            keys: [], calls: [.init(.count, argument: .column(0, .int32), type: .int64), .init(.max, argument: .column(0, .int32), type: .int32)], input: schema, isAppendOnly: false,
            ownsGlobalGroup: false)
        operation.begin()
        #expect(epoch(operation, []).isEmpty)
        #expect(DeltaBatch.counts(epoch(operation, [rows([([.int(1)], 2), ([.int(2)], 1), ([.int(3)], 1)], schema)])) == [[.integer(4), .integer(3)]: 1])
        #expect(DeltaBatch.counts(epoch(operation, [rows([([.int(3)], -1), ([.int(1)], -1)], schema)])) == [[.integer(4), .integer(3)]: -1, [.integer(2), .integer(2)]: 1])
        #expect(DeltaBatch.counts(epoch(operation, [rows([([.int(1)], -1), ([.int(2)], -1)], schema)])) == [[.integer(2), .integer(2)]: -1])
        #expect(epoch(operation, [rows([([.int(1)], 3), ([.int(2)], 1), ([.int(1)], -3), ([.int(2)], -1)], schema)]).isEmpty)
        #expect(DeltaBatch.counts(epoch(operation, [rows([([.int(7)], 1)], schema)])) == [[.integer(1), .integer(7)]: 1])
    }

    @Test func moreThanOneRowForOneValueIsAnErrorThatGoesAgain() throws {
        let schema = [Field("v", .int32)]
        let operation = try HashAggregateOperator(
            keys: [], calls: [.init(.singleValue, argument: .column(0, .int32), type: .int32)], input: schema, isAppendOnly: false,
            ownsGlobalGroup: true)
        operation.begin()
        #expect(DeltaBatch.counts(epoch(operation, [])) == [[.null]: 1])
        _ = epoch(operation, [rows([([.int(1)], 1), ([.int(2)], 1)], schema)])
        #expect(errors.entries.values.reduce(0, +) == 1)
        #expect(DeltaBatch.counts(epoch(operation, [rows([([.int(1)], -1)], schema)])) == [[.null]: -1, [.integer(2)]: 1])
        #expect(errors.entries.isEmpty)
    }

    @Test func aCheckpointOfADroppedViewHasItsLongTextsStill() throws {
        let schema = [Field("k", .int32), Field("v", .varchar)]
        let long = String(repeating: "long ", count: 40)
        for isAppendOnly in [true, false] {
            var operation: HashAggregateOperator? = try HashAggregateOperator(
                keys: [0], calls: [.init(.max, argument: .column(1, .varchar), type: .varchar)], input: schema, isAppendOnly: isAppendOnly,
                ownsGlobalGroup: true)
            var tables = try #require(operation?.tables)
            for table in tables { table.track() }
            if let operation { _ = epoch(operation, [rows([([.int(1), .string(long)], 1)], schema)]) }
            let seals = tables.compactMap { $0.seal(table: 7, rewriting: []) }
            tables = []
            operation = nil
            // What was given back is another's now.
            let others = (0..<64).map { _ in
                let heap = StringHeap()
                for _ in 0..<80 { _ = heap.view(copying: String(repeating: "other", count: 40)) }
                return heap
            }
            for seal in seals {
                var bytes: [UInt8] = []
                for index in 0..<seal.count { seal.write(index, to: &bytes) }
                #expect(String(decoding: bytes, as: UTF8.self).contains(long), "append only: \(isAppendOnly)")
            }
            #expect(others.count == 64)
        }
    }
}
