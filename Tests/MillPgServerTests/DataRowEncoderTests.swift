import MillBase
import MillColumnar
import MillPgWire
import Testing

@testable import MillPgServer

struct DataRowEncoderTests {
    private func encoder(_ columns: [PgColumn], _ formats: [PgFormat] = []) -> DataRowEncoder {
        DataRowEncoder(columns: columns, formats: formats, textEncoder: { _, _, out in out.append(UInt8(ascii: "x")) })
    }

    private func integers(_ values: [Int64]) -> DeltaBatch {
        let column = Column(.int64, capacity: values.count)
        for value in values { column.append(value) }
        return DeltaBatch(columns: [column], count: values.count)
    }

    @Test func integersAreWrittenInDigits() throws {
        var values: [Int64] = [0, -1, 9, 10, 99, 100, .max, .min, .max / 10, 1_000_000_000_000_000_000]
        var power: Int64 = 1
        for _ in 0..<18 {
            power *= 10
            values += [power - 1, power, power + 1, -power]
        }
        var writer = MessageWriter()
        var position = DataRowEncoder.Position()
        let rows = try encoder([PgColumn("n", .int8)]).encode(
            integers(values), from: &position, rowLimit: .max, bytesMax: .max, into: &writer)
        #expect(rows == values.count)
        var expected: [UInt8] = []
        for value in values {
            let text = Array(String(value).utf8)
            expected.append(UInt8(ascii: "D"))
            expected.appendBigEndian(Int32(10 + text.count))
            expected.appendBigEndian(Int16(1))
            expected.appendBigEndian(Int32(text.count))
            expected += text
        }
        #expect(writer.bytes == expected)
    }

    @Test func stopsAtTheRowLimitAndAtTheByteLimitAndGoesOn() throws {
        let batch = integers(Array(0..<1000))
        let encoder = encoder([PgColumn("n", .int8)], [.binary])
        var whole = MessageWriter()
        var position = DataRowEncoder.Position()
        _ = try encoder.encode(batch, from: &position, rowLimit: .max, bytesMax: .max, into: &whole)

        var pieces: [UInt8] = []
        position = DataRowEncoder.Position()
        var writer = MessageWriter()
        while position.row < batch.count {
            let rows = try encoder.encode(batch, from: &position, rowLimit: 7, bytesMax: 100, into: &writer)
            #expect((1...7).contains(rows))
            pieces += writer.bytes
            writer.removeAll()
        }
        #expect(pieces == whole.bytes)
    }

    @Test func longValuesGrowTheBuffer() throws {
        let column = Column(.varchar, capacity: 3)
        let long = String(repeating: "é", count: 300_000)
        for text in ["", "short", long] { column.append(text) }
        var writer = MessageWriter()
        var position = DataRowEncoder.Position()
        let batch = DeltaBatch(columns: [column], count: 3)
        #expect(try encoder([PgColumn("v", .text)]).encode(batch, from: &position, rowLimit: .max, bytesMax: .max, into: &writer) == 3)
        #expect(writer.bytes.suffix(600_000) == Array(long.utf8)[...])
    }

    @Test func badResultsAreErrors() {
        var writer = MessageWriter()
        var position = DataRowEncoder.Position()
        let batch = integers([1])
        #expect(throws: SQLError.self) {
            try encoder([]).encode(batch, from: &position, rowLimit: .max, bytesMax: .max, into: &writer)
        }
        #expect(throws: SQLError.self) {
            try encoder([PgColumn("n", PgOID(1009))], [.binary]).encode(
                batch, from: &position, rowLimit: .max, bytesMax: .max, into: &writer)
        }
        let negative = DeltaBatch(columns: batch.columns, count: 1, weights: Weights([-1]))
        #expect(throws: SQLError.self) {
            try encoder([PgColumn("n", .int8)]).encode(negative, from: &position, rowLimit: .max, bytesMax: .max, into: &writer)
        }
        #expect(writer.isEmpty)
    }
}
