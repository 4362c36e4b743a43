import CZlib

/// A data file's deleted positions as bytes: the `deletion-vector-v1` blob of a Puffin file.
///
/// | bytes | what |
/// |---|---|
/// | 4, highest first | count of the next two parts |
/// | 4 | D1 D3 39 64 |
/// | 8, lowest first | count of bitmaps; then for each its high word (4) and the bitmap |
/// | 4, highest first | CRC-32 of the two parts before |
///
/// A bitmap of 32-bit positions, in the portable Roaring format, lowest byte first: a cookie (12346 without runs, then the count of blocks;
/// or 12347 with the count less one above it, then a bit per block for those that are runs), per block its key and its size less one,
/// offsets (always without runs, with them from four blocks on), then the blocks: to 4,096 values as 16-bit numbers, more as 1,024 words,
/// runs as starts and lengths less one. Runs are read, not written.
///
/// Source: Puffin specification, blob types; RoaringFormatSpec.
package enum DeletionVector {
    private static let magic: [UInt8] = [0xD1, 0xD3, 0x39, 0x64]
    private static let cookieWithoutRuns: UInt32 = 12_346
    private static let cookieWithRuns: UInt16 = 12_347
    private static let blocksMax = 65_536
    /// Bytes of a vector that we read.
    package static let bytesMax = 1 << 30

    package static func encode(_ positions: DeletedPositions) -> [UInt8] {
        var vector = magic
        let bitmaps = positions.blocksByHighWord
        vector.append(littleEndian: UInt64(bitmaps.count))
        for (high, blocks) in bitmaps {
            vector.append(littleEndian: high)
            encode(blocks, to: &vector)
        }
        return framed(vector)
    }

    /// With its length before and its checksum behind.
    static func framed(_ vector: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        withUnsafeBytes(of: UInt32(vector.count).bigEndian) { result += $0 }
        result += vector
        withUnsafeBytes(of: checksum(vector[...]).bigEndian) { result += $0 }
        return result
    }

    private static func encode(_ blocks: [(key: UInt16, block: DeletedPositions.Block)], to out: inout [UInt8]) {
        out.append(littleEndian: cookieWithoutRuns)
        out.append(littleEndian: UInt32(blocks.count))
        let contents = blocks.map { $0.block.values }
        for (block, values) in zip(blocks, contents) {
            out.append(littleEndian: block.key)
            out.append(littleEndian: UInt16(values.count - 1))
        }
        var offset = UInt32(8 + 8 * blocks.count)
        for values in contents {
            out.append(littleEndian: offset)
            offset += values.count > DeletedPositions.Block.listMax ? 8192 : UInt32(2 * values.count)
        }
        for (block, values) in zip(blocks, contents) {
            if case .bits(let words) = block.block, values.count > DeletedPositions.Block.listMax {
                for word in words { out.append(littleEndian: word) }
            } else {
                for value in values { out.append(littleEndian: value) }
            }
        }
    }

    private static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        bytes.withUnsafeBufferPointer { UInt32(truncatingIfNeeded: crc32(0, $0.baseAddress, UInt32($0.count))) }
    }

    /// - Parameter countMax: positions that it may have; a few bytes can stand for billions.
    /// - Throws: what is wrong with it, in words.
    package static func decode(_ bytes: [UInt8], countMax: Int) throws(BadBytes) -> DeletedPositions {
        guard bytes.count <= bytesMax else { throw BadBytes("a deletion vector has \(bytes.count) bytes") }
        var input = ByteInput(bytes)
        let length = Int(UInt32(bigEndian: try input.littleEndian()))
        guard length >= 12, length == input.remaining - 4 else { throw BadBytes("a deletion vector announces \(length) bytes") }
        let vector = bytes[4..<4 + length]
        guard vector.starts(with: magic) else { throw BadBytes("a deletion vector does not begin as such") }
        let expected = bytes[(4 + length)...].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        guard checksum(vector) == expected else { throw BadBytes("the checksum of a deletion vector is wrong") }
        _ = try input.take(4)
        let count: UInt64 = try input.littleEndian()
        guard count <= UInt64(input.remaining / 8) else { throw BadBytes("a deletion vector announces \(count) bitmaps") }
        var result = DeletedPositions()
        for _ in 0..<count {
            let high: UInt32 = try input.littleEndian()
            guard high < 1 << 31 else { throw BadBytes("a deletion vector has negative positions") }
            try decodeBitmap(&input, high: Int64(high) << 32, countMax, into: &result)
        }
        guard input.remaining == 4 else { throw BadBytes("a deletion vector has bytes that belong to no bitmap") }
        return result
    }

    private static func decodeBitmap(_ input: inout ByteInput, high: Int64, _ countMax: Int, into result: inout DeletedPositions)
        throws(BadBytes)
    {
        let cookie: UInt32 = try input.littleEndian()
        let count: Int
        var runs: ArraySlice<UInt8> = []
        if cookie == cookieWithoutRuns {
            count = Int(try input.littleEndian() as UInt32)
        } else {
            guard UInt16(truncatingIfNeeded: cookie) == cookieWithRuns else { throw BadBytes("a bitmap has an unknown cookie") }
            count = Int(cookie >> 16) + 1
            runs = try input.take((count + 7) / 8)
        }
        guard count <= blocksMax, count * 4 <= input.remaining else { throw BadBytes("a bitmap announces \(count) blocks") }
        var headers: [(key: UInt16, size: Int)] = []
        for _ in 0..<count { headers.append((try input.littleEndian(), Int(try input.littleEndian() as UInt16) + 1)) }
        // Blocks lie one behind the other: the offsets say nothing more.
        if runs.isEmpty || count >= 4 { _ = try input.take(4 * count) }
        for (index, header) in headers.enumerated() {
            let start = high | Int64(header.key) << 16
            if !runs.isEmpty, runs[runs.startIndex + index / 8] & 1 << UInt8(index % 8) != 0 {
                for _ in 0..<Int(try input.littleEndian() as UInt16) {
                    let (first, more) = (try input.littleEndian() as UInt16, try input.littleEndian() as UInt16)
                    guard Int(first) + Int(more) < 65_536 else { throw BadBytes("a run of a bitmap leaves its block") }
                    for low in Int64(first)...Int64(first) + Int64(more) { result.insert(start | low) }
                }
            } else if header.size > DeletedPositions.Block.listMax {
                for word in 0..<DeletedPositions.Block.words {
                    var rest: UInt64 = try input.littleEndian()
                    while rest != 0 {
                        result.insert(start | Int64(word * 64 + rest.trailingZeroBitCount))
                        rest &= rest - 1
                    }
                }
            } else {
                for _ in 0..<header.size { result.insert(start | Int64(try input.littleEndian() as UInt16)) }
            }
            guard result.count <= countMax else { throw BadBytes("a deletion vector has more than \(countMax) positions") }
        }
    }
}
