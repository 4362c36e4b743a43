import MillBase
import MillColumnar
import Testing

@testable import MillState

@Suite struct StateTableMovingTests {
    /// Rows (number, text) with twice the number as payload.
    private func table(_ numbers: [Int64], indexed: Bool = true) -> StateTable {
        let table = StateTable(columns: [.int64, .varchar], payloadBytes: 8, indexed: indexed)
        for start in stride(from: 0, to: numbers.count, by: Limits.batchRowsMax) {
            let part = numbers[start..<min(start + Limits.batchRowsMax, numbers.count)]
            let columns = [Column(.int64, capacity: part.count), Column(.varchar, capacity: part.count)]
            for number in part {
                columns[0].append(.int(number))
                columns[1].append(number % 5 == 0 ? .null : .string("the text of row \(number)"))
            }
            var hashes = [UInt64](repeating: 0, count: part.count)
            RowHash.hash([columns[0]], count: part.count, into: &hashes)
            var rows = [RowNumber](repeating: 0, count: part.count)
            if indexed {
                var inserted = Selection(capacity: part.count)
                table.findOrInsert(columns, hashes: hashes, count: part.count, rows: &rows, inserted: &inserted)
            } else {
                table.append(columns, hashes: hashes, count: part.count, rows: &rows)
            }
            for (row, number) in zip(rows, part) { table.writablePayload(row).storeBytes(of: 2 * number, as: Int64.self) }
        }
        return table
    }

    /// Each row as text, by its payload.
    private func content(_ table: StateTable) -> [Int64: String] {
        var content: [Int64: String] = [:]
        table.forEachBatch { rows in
            let columns = table.gather(rows: rows, count: rows.count)
            for (index, row) in rows.enumerated() {
                let text = columns.map { column -> String in
                    guard !column.isNull(index) else { return "NULL" }
                    var bytes: [UInt8] = []
                    column.appendText(row: index, to: &bytes)
                    return String(decoding: bytes, as: UTF8.self)
                }
                content[table.payload(row).load(as: Int64.self)] = text.joined(separator: ",")
            }
        }
        return content
    }

    @Test(arguments: [true, false]) func rowsOfSeveralTablesComeTogetherAndApart(indexed: Bool) throws {
        let numbers = (0..<10_000).map { Int64($0) }
        let parts = [table(numbers.filter { $0 % 3 != 0 }, indexed: indexed), table(numbers.filter { $0 % 3 == 0 }, indexed: indexed)]
        // Numbers with gaps.
        parts[0].forEachRow { row in if parts[0].payload(row).load(as: Int64.self) % 14 == 0 { parts[0].remove(row) } }
        let whole = StateTable(columns: [.int64, .varchar], payloadBytes: 8, indexed: indexed)
        whole.track()
        for part in parts {
            var moved = MovedRows(from: part)
            try part.forEachBatch { (rows) throws(StateCorruption) in moved.note(rows, as: try whole.adopt(rows, of: part)) }
            part.forEachRow { row in
                let number = moved[row]
                #expect(number.map { whole.payload($0).load(as: Int64.self) } == part.payload(row).load(as: Int64.self))
            }
            #expect(moved[RowNumber.max] == nil)
        }
        let expected = content(parts[0]).merging(content(parts[1])) { first, _ in first }
        #expect(content(whole) == expected)
        #expect(whole.checkInvariants().isEmpty)
        let seal = try #require(whole.seal(table: 1, rewriting: []))
        #expect(seal.shape.count == UInt64(expected.count))
    }

    @Test func aRowThatIsThereAlreadyIsRefused() {
        let (one, other) = (table([1, 2, 3]), table([3, 4]))
        #expect(throws: StateCorruption.self) {
            try other.forEachBatch { (rows) throws(StateCorruption) in _ = try one.adopt(rows, of: other) }
        }
    }
}
