/// Runs of one number and packed numbers, in turn: what levels and dictionary indices are written as.
///
/// A run begins with a varint: even, twice the count of one repeated number, which follows in whole bytes; odd, twice the count of
/// groups of eight packed numbers plus one. Only the last packed run may hold fewer numbers than it announces.
/// Source: Encodings.md, "Run Length Encoding / Bit-Packing Hybrid".
enum HybridEncoder {
    /// Writes `count` numbers below 2^`width`.
    static func encode(_ values: UnsafePointer<UInt32>, _ count: Int, width: Int, to out: OutputBytes) {
        guard width > 0 else { return appendRun(of: 0, count, width: 0, to: out) }
        var packedFrom = 0
        var index = 0
        while index < count {
            let value = values[index]
            var end = index + 1
            while end < count && values[end] == value { end += 1 }
            // A repeated run can start only where packed numbers fill whole groups: it gives up as many of its own as they lack.
            let lacking = (8 - (index - packedFrom) & 7) & 7
            if end - index >= 8 + lacking {
                appendPacked(values + packedFrom, index + lacking - packedFrom, width: width, to: out)
                appendRun(of: value, end - index - lacking, width: width, to: out)
                packedFrom = end
            }
            index = end
        }
        appendPacked(values + packedFrom, count - packedFrom, width: width, to: out)
    }

    static func appendRun(of value: UInt32, _ count: Int, width: Int, to out: OutputBytes) {
        guard count > 0 else { return }
        out.appendVarint(UInt64(count) << 1)
        for byte in 0..<(width + 7) / 8 { out.append(UInt8(truncatingIfNeeded: value >> UInt32(8 * byte))) }
    }

    private static func appendPacked(_ values: UnsafePointer<UInt32>, _ count: Int, width: Int, to out: OutputBytes) {
        guard count > 0 else { return }
        let groups = (count + 7) / 8
        out.appendVarint(UInt64(groups) << 1 | 1)
        let target = out.room(groups * width)
        target.initializeMemory(as: UInt8.self, repeating: 0, count: groups * width)
        BitPacking.pack(values, count, width: width, to: target)
        out.advance(groups * width)
    }

    /// Bits as numbers of one bit: they lie in memory as a packed run has them.
    static func encode(bits: UnsafePointer<UInt64>, _ count: Int, to out: OutputBytes) {
        guard count > 0 else { return }
        let groups = (count + 7) / 8
        out.appendVarint(UInt64(groups) << 1 | 1)
        out.append(UnsafeRawBufferPointer(start: bits, count: groups))
    }
}
