/// Copies of bit ranges between validity bitmaps; bit i of a bitmap is bit i mod 64 of word i / 64.
enum Bitmap {
    /// Writes one bit, given as 0 or 1.
    @inline(__always) static func set(_ bitmap: UnsafeMutablePointer<UInt64>, _ index: Int, _ bit: UInt64) {
        let shift = UInt64(index & 63)
        bitmap[index &>> 6] = bitmap[index &>> 6] & ~(1 &<< shift) | bit &<< shift
    }

    /// Sets `count` bits from `start`.
    static func fill(_ bitmap: UnsafeMutablePointer<UInt64>, _ start: Int, _ count: Int) {
        write(bitmap, start, count) { _, _ in .max }
    }

    /// Whether the first `count` bits are all set.
    static func isFull(_ bitmap: UnsafePointer<UInt64>, _ count: Int) -> Bool {
        for word in 0..<count / 64 where bitmap[word] != .max { return false }
        let rest = count & 63
        return rest == 0 || ~bitmap[count / 64] & ((1 << UInt64(rest)) - 1) == 0
    }

    /// Copies `count` bits; the two ranges are not of one bitmap. Words outside the source range's own are not read.
    static func copy(
        _ source: UnsafePointer<UInt64>, _ sourceStart: Int, to target: UnsafeMutablePointer<UInt64>, _ targetStart: Int, _ count: Int
    ) {
        write(target, targetStart, count) { done, wanted in
            let index = sourceStart &+ done
            let shift = UInt64(index & 63)
            var bits = source[index &>> 6] &>> shift
            if Int(shift) &+ wanted > 64 { bits |= source[index &>> 6 &+ 1] &<< (64 &- shift) }
            return bits
        }
    }

    /// Writes `count` bits from `start`, a target word at a time: `bits(done, wanted)` gives the next `wanted` bits, lowest first.
    @inline(__always)
    private static func write(_ bitmap: UnsafeMutablePointer<UInt64>, _ start: Int, _ count: Int, _ bits: (Int, Int) -> UInt64) {
        var done = 0
        while done < count {
            let index = start &+ done
            let shift = index & 63
            let wanted = min(64 &- shift, count &- done)
            let mask = (UInt64.max &>> UInt64(64 &- wanted)) &<< UInt64(shift)
            let word = bits(done, wanted) &<< UInt64(shift)
            bitmap[index &>> 6] = bitmap[index &>> 6] & ~mask | word & mask
            done &+= wanted
        }
    }
}
