import MillKafkaWire
import Testing

/// A message that the generator wrote an example of.
protocol SampledMessage {
    static var sampledVersions: ClosedRange<Int16> { get }
}

extension WireStruct where Self: SampledMessage {
    func encoded(_ version: Int16) -> WireBytes {
        var writer = WireWriter()
        write(to: &writer, version: version)
        return writer.finish()
    }

    static func decoded(_ bytes: WireBytes, _ version: Int16) throws(WireError) -> Self {
        var reader = WireReader(bytes)
        let message = try Self(from: &reader, version: version)
        try reader.finish()
        return message
    }

    /// Fields that a version lacks come back as defaults, so bytes are compared and not messages.
    func expectRoundTrips() throws {
        for version in Self.sampledVersions {
            let bytes = encoded(version)
            let again = try Self.decoded(bytes, version)
            #expect(again.encoded(version) == bytes, "\(Self.self) version \(version)")
            let last = Self.sampledVersions.upperBound
            if version == last { #expect(try Self.decoded(again.encoded(last), last) == again) }
        }
    }

    func expectEveryTruncationIsAnError() {
        for version in Self.sampledVersions {
            let bytes = encoded(version)
            for count in 0..<bytes.count {
                #expect(throws: WireError.self, "\(Self.self) version \(version) cut to \(count) of \(bytes.count)") {
                    try Self.decoded(WireBytes(bytes.slice(offset: 0, count: count).array), version)
                }
            }
        }
    }

    func decodeDamaged(_ random: inout SeededRandom) {
        for version in Self.sampledVersions {
            let bytes = encoded(version).array
            for _ in 0..<200 {
                var damaged = bytes
                for _ in 0..<Int.random(in: 1...4, using: &random) where !damaged.isEmpty {
                    damaged[Int.random(in: 0..<damaged.count, using: &random)] = [0, 0x7F, 0x80, 0xFF, .random(in: 0...255, using: &random)].randomElement(using: &random) ?? 0
                }
                _ = try? Self.decoded(WireBytes(damaged), version)  // only that it returns matters
            }
        }
    }
}

/// SplitMix64.
struct SeededRandom: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

@Suite struct WireMessageTests {
    @Test func everyMessageComesBackInEveryVersion() throws {
        for sample in messageSamples { try sample.expectRoundTrips() }
    }

    @Test func everyTruncationIsAnError() {
        for sample in messageSamples { sample.expectEveryTruncationIsAnError() }
    }

    @Test func damagedMessagesNeverTrap() {
        var random = SeededRandom(state: 7)
        for sample in messageSamples { sample.decodeDamaged(&random) }
    }

    @Test func randomBytesNeverTrap() {
        var random = SeededRandom(state: 8)
        for sample in messageSamples {
            for _ in 0..<300 {
                let bytes = (0..<Int.random(in: 0...80, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
                sample.tryDecoding(WireBytes(bytes))
            }
        }
    }

    @Test func hugeArrayCountsAreRefusedBeforeMemoryIsTaken() {
        #expect(throws: WireError.invalidLength(offset: 0, length: 0x7FFF_FFFF)) {
            try MetadataRequest.decoded(WireBytes([0x7F, 0xFF, 0xFF, 0xFF, 0, 0]), 1)
        }
        #expect(throws: WireError.invalidLength(offset: 0, length: -5)) {
            try MetadataRequest.decoded(WireBytes([0xFF, 0xFF, 0xFF, 0xFB, 0, 0]), 1)
        }
        #expect(throws: WireError.invalidVarint(offset: 0)) {
            try MetadataRequest.decoded(WireBytes([0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1]), 9)
        }
        let many = [UInt8](repeating: 1, count: 2_000_000)
        #expect(throws: WireError.self) { try DeleteGroupsRequest.decoded(WireBytes([0x81, 0x89, 0x7A] + many), 2) }
    }

    @Test func unknownTaggedFieldsAreSkipped() throws {
        let request = HeartbeatRequest(groupID: "g", generationID: 3, memberID: "m", groupInstanceID: nil)
        var bytes = request.encoded(4).array
        #expect(bytes.removeLast() == 0)
        bytes += [2, 5, 3, 1, 2, 3, 9, 0]
        #expect(try HeartbeatRequest.decoded(WireBytes(bytes), 4) == request)
    }

    @Test func requestHeaderCarriesTaggedFieldsOnlyInFlexibleVersions() throws {
        for version: Int16 in [2, 3] {
            let header = RequestHeader(apiKey: KafkaAPI.apiVersions.rawValue, apiVersion: version, correlationID: 77, clientID: "c")
            var writer = WireWriter()
            header.write(to: &writer)
            #expect(writer.count == (version == 3 ? 12 : 11))
            var reader = WireReader(writer.finish())
            #expect(try RequestHeader(from: &reader) == header)
            #expect(reader.remaining == 0)
        }
    }

    /// Written from the protocol as librdkafka 2.0 sends it: the first request of a connection.
    @Test func theApiVersionsRequestOfLibrdkafkaIsRead() throws {
        let bytes: [UInt8] = [0x00, 0x12, 0x00, 0x03, 0, 0, 0, 1, 0, 7] + Array("rdkafka".utf8) + [0]
            + [0x0B] + Array("librdkafka".utf8) + [0x06] + Array("2.0.2".utf8) + [0]
        var reader = WireReader(WireBytes(bytes))
        let header = try RequestHeader(from: &reader)
        let request = try ApiVersionsRequest(from: &reader, version: header.apiVersion)
        try reader.finish()
        #expect(request.clientSoftwareName == "librdkafka" && request.clientSoftwareVersion == "2.0.2")
    }

    @Test func largeByteFieldsStayWhereTheyWere() {
        let large = WireBytes([UInt8](repeating: 9, count: 10_000))
        var writer = WireWriter()
        writer.int32(1)
        writer.bytes(large, flexible: false)
        writer.int32(2)
        var chunks: [Int] = []
        writer.forEachChunk { chunks.append($0.count) }
        #expect(chunks == [8, 10_000, 4])
        #expect(writer.finish().count == 10_012)
    }
}

extension WireStruct where Self: SampledMessage {
    func tryDecoding(_ bytes: WireBytes) {
        for version in Self.sampledVersions { _ = try? Self.decoded(bytes, version) }  // only that it returns matters
    }
}
