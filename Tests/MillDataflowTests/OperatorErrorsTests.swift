import MillBase
import Testing

@testable import MillDataflow

@Suite struct OperatorErrorsTests {
    private func entry(_ row: Int) -> OperatorErrors.Entry {
        OperatorErrors.Entry(operatorName: "project", sqlState: .divisionByZero, message: "division by zero", row: "(\(row))")
    }

    private func total(_ errors: OperatorErrors) -> Int64 { errors.entries.values.reduce(0, +) + errors.droppedCount }

    @Test func takingBackWhatWasDroppedLeavesNoEntryBelowZero() {
        let errors = OperatorErrors(entriesMax: 2)
        for row in 0..<4 { errors.add(entry(row), weight: 2) }
        #expect(errors.entries.count == 2 && errors.droppedCount == 4)
        errors.add(entry(0), weight: -2)
        // There is room now, but what is taken back was never among the entries.
        errors.add(entry(2), weight: -2)
        #expect(errors.entries == [entry(1): 2] && errors.droppedCount == 2)
        errors.add(entry(3), weight: -2)
        errors.add(entry(1), weight: -2)
        #expect(errors.entries.isEmpty && errors.droppedCount == 0)
    }

    @Test func aRetractionBeforeItsInsertionComesOutEven() {
        let errors = OperatorErrors(entriesMax: 1)
        errors.add(entry(0), weight: 1)
        errors.add(entry(1), weight: -1)
        #expect(errors.droppedCount == 0 && total(errors) == 0)
        errors.add(entry(1), weight: 1)
        #expect(errors.entries == [entry(0): 1] && errors.droppedCount == 0)
        errors.add(entry(2), weight: .min)
        errors.add(entry(2), weight: 0)
        #expect(errors.entries[entry(2)] == .min)
    }
}
