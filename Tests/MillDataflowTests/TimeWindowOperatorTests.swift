import MillBase
import MillColumnar
import MillPlan
import Testing

@testable import MillDataflow

@Suite struct TimeWindowOperatorTests {
    private static func run(_ window: TimeWindow, _ times: [Scalar], _ type: SQLType) -> [DeltaBatch] {
        let column = Column(type, capacity: times.count)
        for time in times { column.append(time) }
        let operation = TimeWindowOperator(window)
        let errors = OperatorErrors()
        operation.push(DeltaBatch(columns: [column], count: times.count), input: 0, errors: errors)
        var output: [DeltaBatch] = []
        while let batch = operation.next(errors: errors) { output.append(batch) }
        return output
    }

    @Test func infiniteDatesHaveNoWindow() {
        let day: Int64 = 86_400_000_000
        let window = TimeWindow(timeColumn: 0, boundType: .timestamp, slideMicros: day, sizeMicros: day)
        let output = Self.run(window, [.int(Int64(Int32.max)), .int(Int64(Int32.min)), .int(1)], .date)
        #expect(output.count == 1)
        #expect((0..<3).map { output[0].columns[1].scalar($0) } == [.null, .null, .int(day)])
    }

    @Test func manyWindowsOfARowComeInBatchesOfTheLimit() {
        let window = TimeWindow(timeColumn: 0, boundType: .timestamp, slideMicros: 1, sizeMicros: 10_000)
        let output = Self.run(window, [.int(5), .null, .int(-20_000)], .timestamp)
        #expect(output.allSatisfy { $0.count <= Limits.batchRowsMax && $0.count > 0 })
        #expect(output.reduce(0) { $0 + $1.count } == 20_001)
        #expect(DeltaBatch.consolidate(output).reduce(0) { $0 + $1.count } == 20_001)
    }

    @Test func windowsTooLargeToExpressAreMissing() {
        let window = TimeWindow(timeColumn: 0, boundType: .timestamp, slideMicros: .max, sizeMicros: .max, offsetMicros: .min)
        #expect(Self.run(window, [.int(5)], .timestamp)[0].columns[1].isNull(0))
    }
}
