import MillBase
import MillTestKit
import Testing

@testable import MillAvro

@Suite struct ObjectFileTests {
    private static let codecs: [AvroCodec] = [.none, .deflate(level: 6), .snappy, .zstandard(level: 3)]

    @Test(arguments: 1...60) func objectsGoThereAndBack(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let sample = SampleSchema(using: &random)
        let values = (0..<random.pick([0, 1, 20, 500])).map { _ in sample.value(&random) }
        var writer = AvroFileWriter(
            sample.schema, metadata: [("who", "ünit")], codec: random.pick(Self.codecs), random: SeededSource(seed))
        for value in values { try writer.append(value) }
        #expect(writer.objectCount == values.count)
        var reader = try AvroFileReader(writer.finish(), file: "test")
        #expect(reader.schema == sample.schema)
        #expect(reader.text("who") == "ünit")
        var read: [AvroValue] = []
        while let value = try reader.next() { read.append(value) }
        #expect(read == values)
    }

    @Test(arguments: 1...300) func damageIsAnErrorNotACrash(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let sample = SampleSchema(using: &random)
        var writer = AvroFileWriter(sample.schema, codec: random.pick(Self.codecs), random: SeededSource(seed))
        for _ in 0..<random.number(0...30) { try writer.append(sample.value(&random)) }
        var bytes = writer.finish()
        for _ in 0...random.number(0...4) where !bytes.isEmpty {
            switch random.number(0...3) {
            case 0, 1: bytes[random.number(0...bytes.count - 1)] = UInt8(random.number(0...255))
            case 2: bytes.removeLast(random.number(0...bytes.count - 1))
            default: bytes.insert(UInt8(random.number(0...255)), at: random.number(0...bytes.count))
            }
        }
        do {
            var reader = try AvroFileReader(bytes, file: "damaged")
            while try reader.next() != nil {}
        } catch { #expect(!error.sqlError.message.isEmpty) }
    }

    @Test func valuesThatDoNotFitLeaveTheFileAsItWas() throws {
        let schema = AvroSchema.record(AvroRecord("r", [AvroField("a", .int), AvroField("b", .optional(.string))]))
        var writer = AvroFileWriter(schema, codec: .none, random: SeededSource(1))
        try writer.append(.record([.int(1), .null]))
        let before = writer.byteCount
        #expect(throws: AvroError.valueDoesNotFit(path: "a", expected: "int")) { try writer.append(.record([.int(1 << 40), .null])) }
        #expect(throws: AvroError.valueDoesNotFit(path: "b", expected: "string")) { try writer.append(.record([.int(1), .int(1)])) }
        #expect(writer.byteCount == before)
        var reader = try AvroFileReader(writer.finish(), file: "test")
        #expect(try reader.next() == .record([.int(1), .null]))
        #expect(try reader.next() == nil)
    }

    @Test func namesOfTypesAreUsedOnce() throws {
        let inner = AvroSchema.record(AvroRecord("inner", [AvroField("x", .long, fieldID: 5)]))
        let schema = AvroSchema.record(AvroRecord("outer", [AvroField("a", inner), AvroField("b", .array(inner, elementID: 7))]))
        #expect(try AvroSchema(json: Array(schema.json.utf8)) == schema)
        #expect(schema.json.components(of: "\"fields\"") == 2)
    }

    @Test func schemasThatGrowWithoutBoundAreRefused() {
        var types = ["{\"type\":\"record\",\"name\":\"t0\",\"fields\":[{\"name\":\"x\",\"type\":\"int\"}]}"]
        for level in 1...12 {
            let fields = (0..<10).map { "{\"name\":\"f\($0)\",\"type\":\"t\(level - 1)\"}" }.joined(separator: ",")
            types.append("{\"type\":\"record\",\"name\":\"t\(level)\",\"fields\":[\(fields)]}")
        }
        let json =
            "{\"type\":\"record\",\"name\":\"all\",\"fields\":["
            + types.enumerated().map { "{\"name\":\"g\($0.offset)\",\"type\":\($0.element)}" }.joined(separator: ",") + "]}"
        #expect(throws: AvroFlaw.badSchema("it has more than \(AvroLimits.schemaNodesMax) types in it")) {
            try AvroSchema(json: Array(json.utf8))
        }
    }

    @Test func typesThatContainThemselvesAreRefused() {
        let json = "{\"type\":\"record\",\"name\":\"list\",\"fields\":[{\"name\":\"next\",\"type\":[\"null\",\"list\"]}]}"
        #expect(throws: AvroFlaw.badSchema("type \"list\" contains itself, which we do not read")) {
            try AvroSchema(json: Array(json.utf8))
        }
    }

    @Test func objectsWithoutBytesAreBounded() throws {
        var out = AvroEncoder()
        out.append(Int64(1) << 50)
        let schema = AvroSchema.array(.null, elementID: nil)
        var input = AvroDecoder(out.bytes)
        #expect(throws: AvroFlaw.tooManyValues) { try input.object(schema) }
    }
}

extension String {
    fileprivate func components(of part: String) -> Int { split(separator: part, omittingEmptySubsequences: false).count - 1 }
}
