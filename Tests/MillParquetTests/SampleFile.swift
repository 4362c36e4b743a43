import MillColumnar
import MillIO
import MillTestKit
import Testing

@testable import MillParquet

/// Random columns with random values of all types, as a file has them and as they were.
struct SampleFile {
    let columns: [ParquetColumn]
    var options: ParquetWriterOptions
    let batches: [[Column]]

    /// The rows as scalars.
    var rows: [[Scalar]] {
        batches.flatMap { batch in (0..<(batch.first?.count ?? 0)).map { row in batch.map { $0.scalar(row) } } }
    }

    static let types: [SQLType] = [
        .boolean, .int16, .int32, .int64, .float32, .float64, .numeric, .numeric(precision: 7, scale: 2), .numeric(precision: 18, scale: 0),
        .numeric(precision: 38, scale: 10), .varchar, .bytea, .date, .time, .timestamp, .timestamptz, .interval, .jsonb,
    ]

    /// - Parameters:
    ///   - ordinary: leave out times that other programs cannot hold.
    ///   - old: sometimes write what old readers want.
    init(using random: inout SeededGenerator, rows: Int, ordinary: Bool = false, old: Bool = false) {
        var options = ParquetWriterOptions()
        if old {
            options.writesTimestampsAsInt96 = ordinary && random.oneIn(5)
            options.writesDecimalsAsBytes = random.oneIn(5)
            options.usesOldEncodingsOnly = random.oneIn(5)
        }
        columns = (0..<random.number(1...8)).map { index in
            var column = ParquetColumn("column \(index)", random.pick(Self.types), isRequired: random.oneIn(4), fieldID: Int32(index + 1))
            let storage = ColumnStorage(column.type, options)
            column.encoding = random.pick([.automatic, .automatic, .plain])
            if storage.form == .bytes { column.encoding = random.pick([.automatic, .plain, .delta, .deltaBytes]) }
            if storage.form == .int32 || storage.form == .int64 { column.encoding = random.pick([.automatic, .plain, .delta]) }
            return column
        }
        options.compression = random.pick([.none, .snappy, .gzip(level: 1), .zstd(level: 1), .lz4])
        options.usesDataPagesV2 = random.oneIn(2)
        options.writesChecksums = random.oneIn(2)
        options.pageRowsMax = random.pick([1, 100, 1000, 20_000])
        options.rowGroupRowsMax = random.pick([300, 3000, 1 << 20])
        options.dictionaryBytesMax = random.pick([100, 1 << 20])
        options.boundBytesMax = random.pick([4, 64])
        options.unconstrainedNumeric = (38, 10)
        self.options = options
        var (batches, left) = ([[Column]](), rows)
        let shapes = columns.map { column in Shape(column, ordinary, &random) }
        while left > 0 {
            let count = min(left, random.pick([1, 63, 64, 65, 500, 4096]))
            batches.append(shapes.map { $0.column(count, &random) })
            left -= count
        }
        self.batches = batches
    }

    /// How one column's values are drawn.
    private struct Shape {
        let type: SQLType
        let values: [Scalar]
        let nullOneIn: Int
        let isRandom: Bool

        init(_ column: ParquetColumn, _ ordinary: Bool, _ random: inout SeededGenerator) {
            type = column.type
            let all = Self.all(column.type, ordinary)
            values = (0..<random.pick([1, 3, 20])).map { _ in random.pick(all) }
            nullOneIn = column.isRequired ? 0 : random.pick([0, 1, 2, 50])
            isRandom = random.oneIn(2) && !(ordinary && type == .timestamp)
        }

        private static func all(_ type: SQLType, _ ordinary: Bool) -> [Scalar] {
            if ordinary, type == .date { return [-700_000, -1, 0, 19_000, 2_900_000].map { .int($0) } }
            if ordinary, type == .timestamp || type == .timestamptz {
                return [-62_135_596_800_000_000, -1, 0, 7, 1_700_000_000_123_456, 253_402_300_799_999_999].map { .int($0) }
            }
            guard case .numeric(let precision, let scale) = type else { return RandomValues.all(type) }
            let largest = Decimal.powerOfTen(Int32(precision ?? 38)) - 1
            return [0, 1, -1, 255, -256, largest, -largest].map { .decimal(Decimal(unscaled: $0, scale: Int32(scale ?? 10))) }
        }

        func column(_ count: Int, _ random: inout SeededGenerator) -> Column {
            let column = Column(type, capacity: count)
            for _ in 0..<count {
                if nullOneIn > 0, random.oneIn(nullOneIn) { column.append(.null) } else { column.append(draw(&random)) }
            }
            return column
        }

        private func draw(_ random: inout SeededGenerator) -> Scalar {
            guard isRandom else { return random.pick(values) }
            switch type {
            case .int32: return .int(Int64(Int32(truncatingIfNeeded: random.next())))
            case .int64: return .int(Int64(truncatingIfNeeded: random.next()))
            case .timestamp: return .int(Int64(random.number(Int(TimeUnits.timestampMin)...Int(TimeUnits.timestampEnd - 1))))
            case .float64: return .float(Double(bitPattern: random.next()))
            case .varchar:
                return .string(
                    "text \(random.number(0...1_000_000)) of a length that varies \(random.number(0...1 << random.number(0...40)))")
            default: return random.pick(values)
            }
        }
    }

    @discardableResult
    func write(_ name: String, to files: any FileSystem) throws -> FileMetadata {
        var options = options
        // Some of the values are infinite.
        options.keepsExtremeTimes = true
        let writer = try ParquetWriter(try files.open(name, .create), columns, options)
        for batch in batches { try writer.append(batch, count: batch[0].count) }
        return try writer.finish()
    }
}

extension ParquetScan {
    /// All rows as scalars, with their positions.
    func rows() throws -> [(position: Int64, values: [Scalar])] {
        var result: [(position: Int64, values: [Scalar])] = []
        while let batch = try next() {
            for row in 0..<batch.count { result.append((batch.firstRow + Int64(row), batch.columns.map { $0.scalar(row) })) }
        }
        return result
    }
}

/// Equal to the bit, but that all NaN are one.
func isSame(_ a: Scalar, _ b: Scalar) -> Bool {
    if case .float(let left) = a, case .float(let right) = b { return left.bitPattern == right.bitPattern || left.isNaN && right.isNaN }
    return a == b
}
