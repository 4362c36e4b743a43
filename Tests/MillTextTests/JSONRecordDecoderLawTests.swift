import MillBase
import MillColumnar
import MillConnectorKit
import Testing

@testable import MillText

/// The decoder against a reader that works one byte at a time, on records that are often damaged.
@Suite struct JSONRecordDecoderLawTests {
    private static let fields = [
        Field("id", .int64), Field("Name", .varchar), Field("small", .int16), Field("ratio", .float64), Field("flag", .boolean), Field("a_rather_long_column", .int32),
    ]

    /// What a record should become: nil when refused whole, else its row and the columns refused.
    private func expected(_ record: [UInt8]) -> (row: [String?], refused: Set<String>)? {
        guard let members = ReferenceJSON.members(record) else { return nil }
        var refused: Set<String> = []
        let row = Self.fields.map { field -> String? in
            // The last that matches to the letter, else the last that does but for case, if no other column matches it better.
            let exact = members.last { $0.key == field.name }
            let folded = members.last { member in
                guard let key = member.key, !Self.fields.contains(where: { $0.name == key }) else { return false }
                return key.utf8.count == field.name.utf8.count && key.lowercased() == field.name.lowercased()
            }
            guard let value = (exact ?? folded)?.value else { return nil }
            if case .null = value { return nil }
            let text = convert(value, field.type)
            if text == nil { refused.insert(field.name) }
            return text
        }
        return (row, refused)
    }

    /// nil: refused.
    private func convert(_ value: ReferenceJSON.Value, _ type: SQLType) -> String? {
        switch (value, type) {
        case (.bool(let value), .boolean), (.bool(let value), .varchar): return "\(value)"
        case (.string(nil), _): return nil
        case (.string(let text?), .varchar), (.number(let text), .varchar), (.array(let text), .varchar), (.object(let text, _), .varchar): return text
        case (.string(let text?), .boolean): return ["true", "false"].contains(text.lowercased()) ? text.lowercased() : nil
        case (.string(let text?), .float64), (.number(let text), .float64):
            if case .string = value, text == "NaN" { return "nan" }
            guard text.contains(where: \.isNumber), text.allSatisfy({ "0123456789+-.eE".contains($0) }), let number = Double(text), number.isFinite else { return nil }
            return "\(number)"
        case (.string(let text?), .int64), (.number(let text), .int64): return whole(text).flatMap { Int64($0) }.map { "\($0)" }
        case (.string(let text?), .int32), (.number(let text), .int32): return whole(text).flatMap { Int32($0) }.map { "\($0)" }
        case (.string(let text?), .int16), (.number(let text), .int16): return whole(text).flatMap { Int16($0) }.map { "\($0)" }
        default: return nil
        }
    }

    /// The digits of a number that is whole, by moving the point in its text.
    private func whole(_ text: String) -> String? {
        guard text.contains(where: \.isNumber), text.allSatisfy({ "0123456789+-.eE".contains($0) }) else { return nil }
        let parts = text.lowercased().split(separator: "e", omittingEmptySubsequences: false)
        guard parts.count <= 2, let exponent = parts.count == 2 ? Int(parts[1]) : 0 else { return nil }
        let isNegative = parts[0].hasPrefix("-")
        let pieces = parts[0].drop { $0 == "-" || $0 == "+" }.split(separator: ".", omittingEmptySubsequences: false)
        guard pieces.count <= 2 else { return nil }
        var digits = String(pieces[0]) + (pieces.count == 2 ? String(pieces[1]) : "")
        var point = pieces[0].count + exponent
        if digits.allSatisfy({ $0 == "0" }) { return "0" }
        if point > 60 || point < -60 { return nil }
        while point > digits.count { digits += "0" }
        while point < 0 {
            digits = "0" + digits
            point += 1
        }
        let fraction = digits.dropFirst(point)
        guard fraction.allSatisfy({ $0 == "0" }) else { return nil }
        return (isNegative ? "-" : "") + digits.prefix(point)
    }

    @Test(arguments: 0..<24) func decodingEqualsTheReference(seed: Int) {
        var records = RandomRecords(random: TestRandom(seed: UInt64(seed)), keys: Self.fields.map(\.name))
        let batch = (0..<200).map { _ in records.record() }
        let decoder = JSONRecordDecoder(fields: Self.fields, wanted: [.position] + Self.fields.indices.map { .field($0) })
        for layout in ChunkLayout.allCases {
            let decoded = decoder.decode(.records(batch, layout))
            var rows = decoded.rows.makeIterator()
            let rejects = Dictionary(grouping: decoded.rejects, by: \.position)
            for (index, record) in batch.enumerated() {
                let text = "seed \(seed), \(layout), record \(index): \(String(decoding: record, as: UTF8.self))"
                let found = rejects[Int64(index)] ?? []
                if let (row, refused) = expected(record) {
                    #expect(rows.next() == ["\(index)"] + row, "\(text)")
                    #expect(Set(found.map(\.column)) == Set(refused.map(Optional.some)) && found.count == refused.count, "\(text)")
                } else {
                    #expect(found.map(\.column) == [nil], "\(text)")
                    #expect(found.first?.raw == record, "\(text)")
                }
            }
            #expect(rows.next() == nil)
        }
    }

    @Test(arguments: 0..<8) func aRecordDoesNotDependOnItsNeighboursNorOnWhoReads(seed: Int) {
        var records = RandomRecords(random: TestRandom(seed: UInt64(1000 + seed)), keys: Self.fields.map(\.name))
        let batch = (0..<100).map { _ in records.record() }
        let all = JSONRecordDecoder(fields: Self.fields, wanted: [.position, .field(0), .field(1)])
        let together = all.decode(.records(batch))
        let none = JSONRecordDecoder(fields: Self.fields, wanted: [.position]).decode(.records(batch))
        #expect(none.rejects == together.rejects)
        #expect(none.rows == together.rows.map { [$0[0]] })
        var rows: [[String?]] = []
        var rejects: [Reject] = []
        for (index, record) in batch.enumerated() {
            let one = JSONRecordDecoder(fields: Self.fields, wanted: [.field(0), .field(1)]).decode(.records([record]))
            rows += one.rows.map { ["\(index)"] + $0 }
            rejects += one.rejects.map { Reject(position: Int64(index), column: $0.column, raw: $0.raw, reason: $0.reason) }
        }
        #expect(rows == together.rows)
        #expect(rejects.map(\.position) == together.rejects.map(\.position))
        #expect(rejects.map(\.column) == together.rejects.map(\.column))
        #expect(rejects.map(\.raw) == together.rejects.map(\.raw))
    }

    @Test func everyTruncationOfARecordIsRefused() {
        let whole = Array(
            #"{"id":123456789,"Name":"a \"quoted\" \u00e9 ☂ text","small":-12,"ratio":1.5e10,"flag":true,"nested":{"x":[1,2,{"y":null}]},"a_rather_long_column":7}"#.utf8)
        let decoder = JSONRecordDecoder(fields: Self.fields, wanted: [.field(0), .field(1)])
        #expect(decoder.decode(.records([whole])).rejects == [])
        let cut = (0..<whole.count).map { Optional(Array(whole[..<$0])) }
        for layout in ChunkLayout.allCases {
            let decoded = decoder.decode(.records(cut, layout))
            #expect(decoded.rows == [])
            #expect(decoded.rejects.map(\.position) == (0..<Int64(whole.count)).map { $0 })
            // A good record between two bad ones is not touched by them.
            let mixed = decoder.decode(.records(cut.flatMap { [$0, whole] }, layout))
            #expect(mixed.rows.count == whole.count)
            #expect(mixed.rows.allSatisfy { $0 == ["123456789", "a \"quoted\" é ☂ text"] })
        }
    }

    @Test(arguments: 0..<20) func randomBytesAreRefusedWithoutHarm(seed: Int) {
        var random = TestRandom(seed: UInt64(seed))
        let alphabet: [UInt8] = seed % 2 == 0 ? Array("{}[]:,\"\\ \n\r0123456789.eE-+truefalsnid".utf8) : Array(0...255)
        let records = (0..<300).map { _ -> [UInt8]? in random.chance(3) ? nil : (0..<random.below(60)).map { _ in random.pick(alphabet) } }
        let decoder = JSONRecordDecoder(fields: Self.fields, wanted: [.field(1), .field(0)])
        for layout in ChunkLayout.allCases {
            let decoded = decoder.decode(.records(records, layout))
            let accepted = records.filter { $0.flatMap(ReferenceJSON.members) != nil }
            #expect(decoded.rows.count == accepted.count, "seed \(seed)")
            #expect(decoded.rejects.count { $0.column == nil } == records.count - accepted.count, "seed \(seed)")
        }
    }
}
