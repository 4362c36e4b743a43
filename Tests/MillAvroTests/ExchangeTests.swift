import MillBase
import MillColumnar
import MillIO
import MillTestKit
import Testing

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

@testable import MillAvro

private func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

private let exchangeDirectory = variable("MILLRACE_AVRO_EXCHANGE")

/// Our half of Scripts/test-avro, which sets the directory: files for fastavro to read, and what we read in its files.
///
/// Beside each file lies what is in it, a line of JSON for each object: floats as their 64 bits, bytes in hexadecimal, enumerations by
/// name.
@Suite(.enabled(if: exchangeDirectory != nil)) struct ExchangeTests {
    private let files = LocalFileSystem()

    @Test func filesForOthers() throws {
        let directory = try #require(exchangeDirectory) + "/ours"
        let seed = variable("MILLRACE_SEED").flatMap { UInt64($0) } ?? 1
        try files.createDirectory(directory)
        let codecs: [AvroCodec] = [.none, .deflate(level: 6), .snappy, .zstandard(level: 3)]
        for number in 0..<60 {
            var random = SeededGenerator(seed: seed &* 1000 &+ UInt64(number))
            let sample = SampleSchema(using: &random)
            let values = (0..<random.pick([0, 1, 50, 3000])).map { _ in sample.value(&random) }
            var writer = AvroFileWriter(
                sample.schema, metadata: [("number", "\(number)")], codec: codecs[number % 4], random: SeededSource(seed))
            for value in values { try writer.append(value) }
            let path = "\(directory)/\(number)-\(codecs[number % 4].name).avro"
            try write(writer.finish(), path)
            try write(Array(values.map { json($0, sample.schema) + "\n" }.joined().utf8), path + ".jsonl")
        }
    }

    @Test func filesOfOthers() throws {
        let directory = try #require(exchangeDirectory) + "/theirs"
        for name in try files.list(directory) where name.hasSuffix(".avro") {
            let path = directory + "/" + name
            do {
                var reader = try AvroFileReader(try read(path), file: path)
                var text = ""
                while let value = try reader.next() { text += json(value, reader.schema) + "\n" }
                try write(Array(text.utf8), path + ".read")
            } catch let error as AvroError { try write(Array(error.sqlError.description.utf8), path + ".error") }
        }
    }

    private func write(_ bytes: [UInt8], _ path: String) throws {
        let file = try files.open(path, .create)
        try bytes.withUnsafeBytes { try file.write($0, at: 0) }
    }

    private func read(_ path: String) throws -> [UInt8] {
        let file = try files.open(path, .read)
        var bytes = [UInt8](repeating: 0, count: try file.size())
        _ = try bytes.withUnsafeMutableBytes { try file.read(at: 0, into: $0) }
        return bytes
    }

    private func json(_ value: AvroValue, _ schema: AvroSchema) -> String {
        switch (schema.encoded, value) {
        case (_, .null): "null"
        case (_, .boolean(let value)): "\(value)"
        case (_, .int(let value)): "\(value)"
        case (_, .float(let value)): "\"\(value.bitPattern)\""
        case (_, .bytes(let value)): "\"" + value.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() + "\""
        case (_, .string(let value)): quoted(value)
        case (.enumeration(_, let symbols), .enumeration(let index)): quoted(symbols[index])
        case (.record(let record), .record(let values)):
            "{" + zip(record.fields, values).map { quoted($0.name) + ":" + json($1, $0.schema) }.joined(separator: ",") + "}"
        case (.array(let items, _), .array(let values)): "[" + values.map { json($0, items) }.joined(separator: ",") + "]"
        case (.map(let items, _, _), .map(let entries)):
            "{" + entries.map { quoted($0.key) + ":" + json($0.value, items) }.joined(separator: ",") + "}"
        case (.union(let branches), .union(let index, let inner)): json(inner, branches[index])
        case (.union, _): json(value, schema.unwrapped)
        default: "\"?\""
        }
    }

    private func quoted(_ text: String) -> String {
        var out: [UInt8] = []
        Array(text.utf8).withUnsafeBufferPointer { JSONCanonicalizer.appendString($0, to: &out) }
        return String(decoding: out, as: UTF8.self)
    }
}
