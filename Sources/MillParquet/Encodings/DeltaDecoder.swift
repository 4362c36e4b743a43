/// Reads DELTA_BINARY_PACKED, a part at a time. 9 bytes past the input may be read.
struct DeltaDecoder {
    private var input: InputBytes
    private let miniblocksPerBlock: Int
    private let miniblockValues: Int
    /// Values not yet read, as the header counts them.
    private(set) var remaining: Int
    /// The value before the next one; at the start the next one itself.
    private var last: Int64
    private var isAtStart = true
    private var smallest: Int64 = 0
    private var widths: UnsafeRawBufferPointer
    private var miniblock: Int
    /// The miniblock at hand.
    private var packed: UnsafeRawPointer
    private var packedBit = 0
    private var packedWidth = 0
    private var packedLeft = 0

    private static let blockValuesMax = 1 << 16

    init(_ bytes: UnsafeRawBufferPointer) throws(Malformed) {
        input = InputBytes(bytes)
        let blockValues = try input.length(atMost: Self.blockValuesMax)
        miniblocksPerBlock = try input.length(atMost: blockValues)
        remaining = try input.length(atMost: Int(Int32.max))
        last = try input.zigzag()
        guard miniblocksPerBlock > 0, blockValues % miniblocksPerBlock == 0, (blockValues / miniblocksPerBlock) % 8 == 0 else {
            throw .badPage("delta blocks of \(blockValues) values in \(miniblocksPerBlock) parts")
        }
        miniblockValues = blockValues / miniblocksPerBlock
        miniblock = miniblocksPerBlock
        packed = input.base
        widths = UnsafeRawBufferPointer(start: input.base, count: 0)
    }

    private mutating func nextMiniblock() throws(Malformed) {
        if miniblock == miniblocksPerBlock {
            smallest = try input.zigzag()
            widths = try input.take(miniblocksPerBlock)
            miniblock = 0
        }
        packedWidth = Int(widths[miniblock])
        guard packedWidth <= 64 else { throw .badPage("differences of \(packedWidth) bits") }
        packed = try input.take(miniblockValues / 8 * packedWidth).baseAddress ?? input.base
        packedBit = 0
        packedLeft = miniblockValues
        miniblock += 1
    }

    /// Wraps around in the width of `T`, as writers' differences do.
    mutating func decode<T: FixedWidthInteger & SignedInteger>(_ count: Int, into target: UnsafeMutablePointer<T>) throws(Malformed) {
        guard count > 0 else { return }
        guard count <= remaining else { throw .cutShort }
        remaining -= count
        var done = 0
        if isAtStart {
            isAtStart = false
            target[0] = T(truncatingIfNeeded: last)
            done = 1
        }
        while done < count {
            if packedLeft == 0 { try nextMiniblock() }
            let part = min(packedLeft, count - done)
            let (source, width, smallest) = (packed, packedWidth, smallest)
            var (bit, last) = (packedBit, last)
            for index in done..<done + part {
                let offset = width == 0 ? 0 : BitPacking.number(source, bit: bit, width: width)
                bit &+= width
                last = last &+ smallest &+ Int64(bitPattern: offset)
                target[index] = T(truncatingIfNeeded: last)
            }
            (packedBit, self.last) = (bit, last)
            packedLeft -= part
            done += part
        }
    }

    mutating func skip(_ count: Int) throws(Malformed) {
        let scratch = UnsafeMutablePointer<Int64>.allocate(capacity: Self.skippedAtOnce)
        defer { scratch.deallocate() }
        var left = count
        while left > 0 {
            let part = min(left, Self.skippedAtOnce)
            try decode(part, into: scratch)
            left -= part
        }
    }

    private static let skippedAtOnce = 512

    /// What comes after all values.
    func rest() throws(Malformed) -> UnsafeRawBufferPointer {
        var copy = self
        try copy.skip(copy.remaining)
        return copy.input.rest
    }
}
