import MillTestKit

@testable import MillAvro

/// A random schema, and random values of it.
struct SampleSchema {
    let schema: AvroSchema

    init(using random: inout SeededGenerator) {
        var names = 0
        schema = Self.record(&random, depth: 0, &names)
    }

    private static func record(_ random: inout SeededGenerator, depth: Int, _ names: inout Int) -> AvroSchema {
        names += 1
        let name = "record\(names)"
        var fields: [AvroField] = []
        for index in 0..<random.number(1...6) {
            fields.append(AvroField("field\(index)", type(&random, depth: depth, &names), fieldID: random.oneIn(2) ? index + 100 : nil))
        }
        return .record(AvroRecord(name, fields))
    }

    private static func type(_ random: inout SeededGenerator, depth: Int, _ names: inout Int) -> AvroSchema {
        names += 1
        let name = "named\(names)"
        switch random.number(0...(depth > 2 ? 10 : 15)) {
        case 0: return .boolean
        case 1: return .int
        case 2, 3: return .long
        case 4: return .float
        case 5: return .double
        case 6: return .bytes
        case 7: return .string
        case 8: return .fixed(name: name, byteCount: random.number(0...9))
        case 9: return .enumeration(name: name, symbols: ["A", "B", "C"])
        case 10: return .logical(AvroLogicalType("timestamp-micros", adjustsToUTC: random.oneIn(2)), .long)
        case 11: return .optional(type(&random, depth: depth + 3, &names))
        case 12: return .array(type(&random, depth: depth + 1, &names), elementID: random.oneIn(2) ? 9 : nil)
        case 13: return .map(type(&random, depth: depth + 1, &names), keyID: nil, valueID: nil)
        case 14: return .union([.long, .string, .null])
        default: return record(&random, depth: depth + 1, &names)
        }
    }

    func value(_ random: inout SeededGenerator) -> AvroValue { Self.value(schema, &random) }

    private static func value(_ schema: AvroSchema, _ random: inout SeededGenerator) -> AvroValue {
        switch schema {
        case .null: return .null
        case .boolean: return .boolean(random.oneIn(2))
        case .int: return .int(Int64(Int32(truncatingIfNeeded: random.next() >> UInt64(random.number(0...40)))))
        case .long: return .int(Int64(bitPattern: random.next() >> UInt64(random.number(1...63))) * (random.oneIn(2) ? 1 : -1))
        case .float: return .float(Double(Float(random.number(-1000...1000)) / 7))
        case .double: return .float(Double(random.number(-1_000_000...1_000_000)) / 7)
        case .bytes: return .bytes((0..<random.number(0...20)).map { UInt8($0 * 13) })
        case .string:
            return .string(random.pick(["", "a", "ünïcode", "a \"quoted\" text\nof lines", String(repeating: "long ", count: 40)]))
        case .fixed(_, let count): return .bytes([UInt8](repeating: 7, count: count))
        case .enumeration(_, let symbols): return .enumeration(random.number(0...symbols.count - 1))
        case .record(let record): return .record(record.fields.map { value($0.schema, &random) })
        case .array(let items, _): return .array((0..<random.number(0...4)).map { _ in value(items, &random) })
        case .map(let items, _, _): return .map((0..<random.number(0...3)).map { AvroEntry("key \($0)", value(items, &random)) })
        case .union(let branches):
            let index = random.number(0...branches.count - 1)
            let inner = value(branches[index], &random)
            return branches.count == 2 && branches.contains(.null) ? inner : .union(index, inner)
        // What other programs have a date for.
        case .logical: return .int(Int64(random.number(-1_000_000_000_000_000...1_000_000_000_000_000)))
        }
    }
}
