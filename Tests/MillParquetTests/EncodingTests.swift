import MillColumnar
import MillTestKit
import Testing

@testable import MillParquet

@Suite struct EncodingTests {
    @Test func numbersArePackedFromTheLowestBit() {
        // The example of Encodings.md: 0 to 7 in three bits.
        let out = OutputBytes()
        BitPacking.pack([0, 1, 2, 3, 4, 5, 6, 7] as [UInt32], 8, width: 3, to: out.room(16))
        out.advance(3)
        #expect(Array(out.bytes) == [0b1000_1000, 0b1100_0110, 0b1111_1010])
    }

    @Test(arguments: 1...64) func packedNumbersComeBack(width: Int) {
        var random = SeededGenerator(seed: UInt64(width))
        let values = (0..<67).map { _ in random.next() >> UInt64(64 - width) }
        let out = OutputBytes()
        let room = out.room(BitPacking.byteCount(67, width: width) + 16)
        BitPacking.pack(values, 67, width: width, to: room)
        for (index, value) in values.enumerated() { #expect(BitPacking.number(room, bit: index * width, width: width) == value) }
    }

    @Test(arguments: [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32]) func runsComeBack(width: Int) throws {
        var random = SeededGenerator(seed: UInt64(width) + 100)
        for _ in 0..<50 {
            var values: [UInt32] = []
            while values.count < random.number(1...3000) {
                let value = width == 0 ? 0 : UInt32(truncatingIfNeeded: random.next() >> UInt64(64 - width))
                values += Array(repeating: value, count: random.pick([1, 1, 1, 2, 7, 8, 9, 30, 500]))
            }
            let out = OutputBytes()
            HybridEncoder.encode(values, values.count, width: width, to: out)
            _ = out.room(16)
            var decoder = try HybridDecoder(out.bytes, width: width)
            var read: [UInt32] = []
            while read.count < values.count {
                let part = min(random.pick([1, 5, 64, 1000]), values.count - read.count)
                if random.oneIn(4) {
                    try decoder.skip(part)
                    read += values[read.count..<read.count + part]
                } else {
                    let target = UnsafeMutablePointer<UInt32>.allocate(capacity: part)
                    defer { target.deallocate() }
                    if let same = try decoder.takeRepeated(part) {
                        target.update(repeating: same, count: part)
                    } else {
                        try decoder.decode(part, into: target)
                    }
                    read += UnsafeBufferPointer(start: target, count: part)
                }
            }
            #expect(read == values)
        }
    }

    @Test func differencesAreWrittenAsTheFormatSays() {
        // 1 to 5: a block whose least difference is 1, and nothing to be packed beyond it.
        let out = OutputBytes()
        DeltaEncoder.encode([1, 2, 3, 4, 5] as [Int32], 5, to: out)
        #expect(Array(out.bytes) == [0x80, 0x01, 4, 5, 2, 2, 0, 0, 0, 0])
    }

    @Test func differencesComeBack() throws {
        var random = SeededGenerator(seed: 5)
        try check([Int64](), &random)
        try check([Int64.min, .max, 0, .min, -1, .max], &random)
        try check([Int32.min, .max, 0, .min, -1, .max], &random)
        for _ in 0..<200 {
            let (count, range) = (random.number(1...700), random.pick([1, 10, 1000, 1 << 40]))
            try check((0..<count).map { _ in Int64(random.number(-range...range)) }, &random)
            try check((0..<count).map { Int64($0 * range) }, &random)
            try check((0..<count).map { _ in Int32(truncatingIfNeeded: random.number(-range...range)) }, &random)
            try check((0..<count).map { _ in random.oneIn(2) ? Int64.max : Int64(truncatingIfNeeded: random.next()) }, &random)
        }
    }

    private func check<T: FixedWidthInteger & SignedInteger>(_ values: [T], _ random: inout SeededGenerator) throws
    where T.Magnitude: UnsignedInteger {
        let out = OutputBytes()
        DeltaEncoder.encode(values, values.count, to: out)
        let end = out.count
        out.append([1, 2, 3])
        _ = out.room(16)
        var decoder = try DeltaDecoder(out.bytes)
        #expect(try decoder.rest().count == out.count - end)
        var read: [T] = []
        while read.count < values.count {
            let part = min(random.pick([1, 31, 32, 129]), values.count - read.count)
            if random.oneIn(3) {
                try decoder.skip(part)
                read += values[read.count..<read.count + part]
                continue
            }
            let target = UnsafeMutablePointer<T>.allocate(capacity: part)
            defer { target.deallocate() }
            try decoder.decode(part, into: target)
            read += UnsafeBufferPointer(start: target, count: part)
        }
        #expect(read == values)
    }

    @Test func oldTimestampsHoldWhatNewOnesHold() {
        for micros in [0, 1, -1, .max, .min, 1_700_000_000_123_456, -62_135_596_800_000_000] as [Int64] {
            #expect(Int96.micros(Int96.view(micros: micros)) == micros)
        }
    }
}
