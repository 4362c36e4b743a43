import MillColumnar
import MillIO
import MillTestKit
import Testing

@testable import MillParquet

@Suite struct RowSelectionTests {
    /// Every row that matches comes, at its position and with its values; nothing comes twice.
    @Test(arguments: 1...60) func rowsThatMatchAreNeverPassedOver(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed &* 7919)
        var sample = SampleFile(using: &random, rows: random.pick([700, 5000]))
        sample.options.pageRowsMax = random.pick([1, 50, 700])
        let files = MemoryFileSystem()
        try sample.write("f", to: files)
        let file = try ParquetFile(try files.open("f", .read))
        let rows = sample.rows
        for _ in 0..<10 {
            let column = random.number(0...sample.columns.count - 1)
            guard sample.columns[column].type != .interval else { continue }
            let type = try #require(file.columns[column].type)
            var values = rows.map { $0[column] }.filter { !$0.isNull }
            values.append(contentsOf: RandomValues.all(sample.columns[column].type).prefix(2))
            let kind: ParquetCondition.Kind =
                switch random.number(0...5) {
                case 0: .isNull
                case 1: .isNotNull
                case 2: .between(random.pick(values), nil)
                case 3: .between(nil, random.pick(values))
                default: .between(random.pick(values), random.pick(values))
                }
            let requests = sample.columns.indices.filter { $0 == column || random.oneIn(2) }
            let read = try ParquetScan(file, requests.map { .init($0) }, where: [ParquetCondition(column: column, kind)]).rows()
            let positions = read.map(\.position)
            #expect(zip(positions, positions.dropFirst()).allSatisfy { $0 < $1 })
            for (position, values) in read {
                for (value, request) in zip(values, requests) where sample.columns[request].type != .interval {
                    try #require(isSame(value, rows[Int(position)][request]))
                }
            }
            let found = Set(positions)
            for (position, row) in rows.enumerated() where matches(row[column], kind, type) {
                try #require(found.contains(Int64(position)), "\(kind) on \(sample.columns[column]): row \(position), \(row[column])")
            }
        }
    }

    private func matches(_ value: Scalar, _ kind: ParquetCondition.Kind, _ type: SQLType) -> Bool {
        switch kind {
        case .isNull: return value.isNull
        case .isNotNull: return !value.isNull
        case .between(let lower, let upper):
            guard !value.isNull else { return false }
            let column = Column.constant(value, type, count: 1)
            if let lower, column.compare(0, to: Column.constant(lower, type, count: 1), 0) < 0 { return false }
            if let upper, column.compare(0, to: Column.constant(upper, type, count: 1), 0) > 0 { return false }
            return true
        }
    }

    @Test func pagesAndGroupsOutOfRangeAreNotRead() throws {
        let files = MemoryFileSystem()
        var options = ParquetWriterOptions()
        options.rowGroupRowsMax = 10_000
        options.pageRowsMax = 1000
        let writer = try ParquetWriter(
            try files.open("f", .create), [ParquetColumn("n", .int64), ParquetColumn("text", .varchar)], options)
        for batch in 0..<30 {
            let numbers = Column(.int64, capacity: 1000)
            let texts = Column(.varchar, capacity: 1000)
            for row in 0..<1000 {
                numbers.append(Int64(batch * 1000 + row))
                texts.append("the text of row \(batch * 1000 + row)")
            }
            try writer.append([numbers, texts], count: 1000)
        }
        try writer.finish()
        let file = try ParquetFile(try files.open("f", .read))
        #expect(file.metadata.rowGroups.count == 3)
        let scan = try ParquetScan(file, [.init(1)], where: [ParquetCondition(column: 0, .between(.int(15_500), .int(16_200)))])
        let rows = try scan.rows()
        #expect(rows.first?.position == 15_000)
        #expect(rows.count == 2000)
        #expect(rows[501].values == [.string("the text of row 15501")])
        #expect(scan.rowsPassedOver == 28_000)
    }

    @Test func rowsCanBeCountedWithoutColumns() throws {
        let files = MemoryFileSystem()
        let writer = try ParquetWriter(try files.open("f", .create), [ParquetColumn("n", .int64)])
        try writer.append([Column.constant(.int(1), .int64, count: 4000)], count: 4000)
        try writer.append([Column.constant(.int(1), .int64, count: 4000)], count: 4000)
        try writer.finish()
        let scan = try ParquetScan(try ParquetFile(try files.open("f", .read)), [])
        var count = 0
        while let batch = try scan.next() { count += batch.count }
        #expect(count == 8000)
    }
}
