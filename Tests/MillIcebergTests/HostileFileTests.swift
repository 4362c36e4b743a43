import MillAvro
import MillColumnar
import MillIO
import MillTestKit
import Testing

@testable import MillIceberg

/// Metadata from anywhere: an error that says what is wrong, never a crash.
@Suite struct HostileFileTests {
    private func damaged(_ bytes: [UInt8], _ random: inout SeededGenerator) -> [UInt8] {
        var bytes = bytes
        for _ in 0...random.number(0...3) where !bytes.isEmpty {
            switch random.number(0...3) {
            case 0, 1: bytes[random.number(0...bytes.count - 1)] = UInt8(random.number(0...255))
            case 2: bytes.removeLast(random.number(0...bytes.count - 1))
            default: bytes.insert(UInt8(random.number(0...255)), at: random.number(0...bytes.count))
            }
        }
        return bytes
    }

    /// The same file without compression, so that damage meets the values and not the checksums.
    private func plain(_ bytes: [UInt8]) throws -> [UInt8] {
        var reader = try AvroFileReader(bytes, file: "x")
        var writer = AvroFileWriter(reader.schema, codec: .none, random: SeededSource(1))
        while let value = try reader.next() { try writer.append(value) }
        return writer.finish()
    }

    @Test func damagedManifestsAndListsAreErrors() throws {
        var sample = try SampleTable("hostile", seed: 21, version: 3, spec: SampleTable.spec)
        try sample.append(30)
        try sample.delete(oneIn: 4)
        let snapshot = try #require(sample.table.metadata.snapshot(ofBranch: "main"))
        let list = try #require(snapshot.manifestList)
        let manifests = try sample.table.manifests(of: snapshot)
        let spec = sample.table.metadata.defaultPartitionSpec
        let listBytes = try plain(try sample.table.read(list))
        let manifestBytes = try manifests.map { try plain(try sample.table.read($0.path)) }
        var (good, bad) = (0, 0)
        for seed in 1...1500 as ClosedRange<UInt64> {
            var random = SeededGenerator(seed: seed)
            do throws(IcebergError) {
                if random.oneIn(3) {
                    _ = try ManifestList.read(damaged(listBytes, &random), path: list)
                } else {
                    let place = random.number(0...manifests.count - 1)
                    _ = try ManifestReader.entries(damaged(manifestBytes[place], &random), manifests[place], spec)
                }
                good += 1
            } catch {
                #expect(!"\(error)".isEmpty)
                bad += 1
            }
        }
        #expect(bad > 500, "\(good) were read, \(bad) were not")
    }

    @Test func damagedMetadataIsAnError() throws {
        var sample = try SampleTable("metadata", seed: 22, version: 3, spec: SampleTable.spec)
        try sample.append(3)
        let text = Array(sample.table.metadata.json.text.utf8)
        for seed in 1...1000 as ClosedRange<UInt64> {
            var random = SeededGenerator(seed: seed)
            _ = try? TableMetadata(damaged(text, &random), location: "x")
        }
        #expect(throws: IcebergError.self) { try TableMetadata(Array("{}".utf8), location: "x") }
        #expect(throws: IcebergError.self) { try TableMetadata(Array(repeating: UInt8(ascii: "["), count: 100_000), location: "x") }
    }

    @Test func metadataGoesThereAndBack() throws {
        var sample = try SampleTable("round", seed: 23, version: 3, spec: SampleTable.spec, properties: ["a": "b \"c\"\n"])
        try sample.append(3)
        try sample.append(3)
        let read = try TableMetadata(Array(sample.table.metadata.json.text.utf8), location: "x")
        #expect(read.json == sample.table.metadata.json)
        #expect(SampleTable.sorted(try sample.scanned()) == sample.expected)
    }
}
