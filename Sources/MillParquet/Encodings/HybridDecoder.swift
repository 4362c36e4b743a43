/// Reads what `HybridEncoder` writes, a part at a time. 9 bytes past the input may be read.
struct HybridDecoder {
    private var input: InputBytes
    private let width: Int
    /// What is left of the run at hand: either the first, of `repeated`, or the second, packed from bit `packedBit` of `packed` on.
    private var repeatedLeft = 0
    private var repeated: UInt32 = 0
    private var packedLeft = 0
    private var packed: UnsafeRawPointer
    private var packedBit = 0

    init(_ bytes: UnsafeRawBufferPointer, width: Int) throws(Malformed) {
        guard width <= 32 else { throw .badPage("a run of numbers of \(width) bits") }
        input = InputBytes(bytes)
        packed = input.base
        self.width = width
    }

    private mutating func nextRun() throws(Malformed) {
        let header = try input.length(atMost: Int(UInt32.max))
        if header & 1 == 0 {
            repeatedLeft = header >> 1
            repeated = 0
            for (index, byte) in try input.take((width + 7) / 8).enumerated() { repeated |= UInt32(byte) << UInt32(8 * index) }
            guard width == 32 || repeated >> UInt32(width) == 0 else { throw .badPage("a run of a number that is too large") }
        } else {
            let groups = header >> 1
            // Some writers leave out what would only fill up the last group.
            let bytes = try input.take(min(groups * width, input.remaining))
            packedLeft = width == 0 ? groups * 8 : min(groups * 8, bytes.count * 8 / width)
            packed = bytes.baseAddress ?? input.base
            packedBit = 0
            if width == 0 {
                repeatedLeft = packedLeft
                repeated = 0
                packedLeft = 0
            }
        }
        guard repeatedLeft + packedLeft > 0 || input.remaining > 0 else { throw .cutShort }
    }

    /// The number that the next `count` all are, when that can be seen without looking at each; they count as read then.
    mutating func takeRepeated(_ count: Int) throws(Malformed) -> UInt32? {
        while repeatedLeft == 0 && packedLeft == 0 { try nextRun() }
        guard repeatedLeft >= count else { return nil }
        repeatedLeft -= count
        return repeated
    }

    mutating func decode(_ count: Int, into target: UnsafeMutablePointer<UInt32>) throws(Malformed) {
        var done = 0
        while done < count {
            if repeatedLeft > 0 {
                let part = min(repeatedLeft, count - done)
                (target + done).update(repeating: repeated, count: part)
                repeatedLeft -= part
                done += part
            } else if packedLeft > 0 {
                let part = min(packedLeft, count - done)
                let (source, width) = (packed, width)
                var bit = packedBit
                for index in done..<done + part {
                    target[index] = UInt32(truncatingIfNeeded: BitPacking.number(source, bit: bit, width: width))
                    bit &+= width
                }
                packedBit = bit
                packedLeft -= part
                done += part
            } else {
                try nextRun()
            }
        }
    }

    mutating func skip(_ count: Int) throws(Malformed) {
        var left = count
        while left > 0 {
            let repeats = min(repeatedLeft, left)
            repeatedLeft -= repeats
            left -= repeats
            let packs = min(packedLeft, left)
            packedLeft -= packs
            packedBit += packs * width
            left -= packs
            if left > 0 { try nextRun() }
        }
    }
}
