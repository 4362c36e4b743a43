import MillIO
import Testing

@testable import MillBench

@Suite struct ExchangeBenchTests {
    @Test(arguments: ExchangeBench.Axis.allCases) func everyRowArrivesOnce(axis: ExchangeBench.Axis) async throws {
        let point = ExchangeBench.Point(axis: axis, workers: 3, exchanges: 2)
        let result = try await ExchangeBench(rows: 9000).run(point, environment: .system)
        #expect(result.rows == (axis == .rows ? 9000 : 9))
        #expect(result.epochs >= (axis == .rows ? 1 : 3))
    }
}
