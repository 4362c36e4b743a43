/// Differences of neighbours, packed: DELTA_BINARY_PACKED.
///
/// ```
/// varint 128 (values in a block) | varint 4 (miniblocks in one) | varint count | zigzag first value | blocks
/// block: zigzag smallest difference | a byte of width for each miniblock | miniblocks: 32 differences less the smallest, packed
/// ```
/// Differences wrap around in the width of the type, as readers' sums do. Miniblocks that no value needs have width 0.
/// Source: Encodings.md, "Delta Encoding".
enum DeltaEncoder {
    private static let blockValues = 128
    private static let miniblockValues = 32

    static func encode<T: FixedWidthInteger & SignedInteger>(_ values: UnsafePointer<T>, _ count: Int, to out: OutputBytes)
    where T.Magnitude: UnsignedInteger {
        out.appendVarint(UInt64(blockValues))
        out.appendVarint(UInt64(blockValues / miniblockValues))
        out.appendVarint(UInt64(count))
        out.appendZigzag(count > 0 ? Int64(values[0]) : 0)
        withUnsafeTemporaryAllocation(of: T.self, capacity: blockValues) { deltas in
            withUnsafeTemporaryAllocation(of: T.Magnitude.self, capacity: blockValues) { offsets in
                guard let deltas = deltas.baseAddress, let offsets = offsets.baseAddress else { return }
                var start = 1
                while start < count {
                    let part = min(blockValues, count - start)
                    encodeBlock(values + start, part, deltas, offsets, to: out)
                    start += part
                }
            }
        }
    }

    /// `values[-1]` is the value before the block.
    @inline(__always)
    private static func encodeBlock<T: FixedWidthInteger & SignedInteger>(
        _ values: UnsafePointer<T>, _ count: Int, _ deltas: UnsafeMutablePointer<T>, _ offsets: UnsafeMutablePointer<T.Magnitude>,
        to out: OutputBytes
    ) where T.Magnitude: UnsignedInteger {
        var smallest = T.max
        for index in 0..<count {
            let delta = values[index] &- values[index - 1]
            deltas[index] = delta
            smallest = delta < smallest ? delta : smallest
        }
        for index in 0..<count { offsets[index] = T.Magnitude(truncatingIfNeeded: deltas[index] &- smallest) }
        for index in count..<blockValues { offsets[index] = 0 }
        out.appendZigzag(Int64(smallest))
        // Four widths, a byte each; their place is filled when they are known, and may have moved by then.
        let widthsAt = out.count
        out.appendLittleEndian(UInt32(0))
        var widths: UInt32 = 0
        for miniblock in 0..<blockValues / miniblockValues where miniblock * miniblockValues < count {
            let first = offsets + miniblock * miniblockValues
            var bits: T.Magnitude = 0
            for index in 0..<miniblockValues { bits |= first[index] }
            let width = BitPacking.width(UInt64(truncatingIfNeeded: bits))
            widths |= UInt32(width) << UInt32(8 * miniblock)
            guard width > 0 else { continue }
            let byteCount = miniblockValues / 8 * width
            BitPacking.pack(UnsafePointer(first), miniblockValues, width: width, to: out.room(byteCount))
            out.advance(byteCount)
        }
        (out.base + widthsAt).storeBytes(of: widths.littleEndian, as: UInt32.self)
    }
}
