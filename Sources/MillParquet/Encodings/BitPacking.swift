/// Numbers of a fixed count of bits side by side, lowest bit first, as every packed run of the format has them.
enum BitPacking {
    /// Bits that `value` needs.
    @inline(__always) static func width(_ value: UInt64) -> Int { 64 &- value.leadingZeroBitCount }

    /// Bytes of `count` numbers.
    @inline(__always) static func byteCount(_ count: Int, width: Int) -> Int { (count &* width &+ 7) / 8 }

    /// Writes `count` numbers below 2^`width`; up to 8 bytes past the last one are written, too.
    @inline(__always)
    static func pack<T: FixedWidthInteger & UnsignedInteger>(
        _ values: UnsafePointer<T>, _ count: Int, width: Int, to target: UnsafeMutableRawPointer
    ) {
        var word: UInt64 = 0
        var filled = 0
        var target = target
        for index in 0..<count {
            let value = UInt64(truncatingIfNeeded: values[index])
            word |= value &<< UInt64(filled)
            filled &+= width
            if filled >= 64 {
                target.storeBytes(of: word.littleEndian, as: UInt64.self)
                target += 8
                filled &-= 64
                // What did not fit; nothing when the number ended with the word.
                word = filled == 0 ? 0 : value &>> UInt64(width &- filled)
            }
        }
        if filled > 0 { target.storeBytes(of: word.littleEndian, as: UInt64.self) }
    }

    /// The number at a bit; 9 bytes from there may be read. `width` is 1 to 64.
    @inline(__always) static func number(_ source: UnsafeRawPointer, bit: Int, width: Int) -> UInt64 {
        let address = source + bit &>> 3
        let shift = UInt64(bit & 7)
        var value = UInt64(littleEndian: address.loadUnaligned(as: UInt64.self)) &>> shift
        if width &+ Int(shift) > 64 { value |= UInt64(address.load(fromByteOffset: 8, as: UInt8.self)) &<< (64 &- shift) }
        return value & (UInt64.max &>> UInt64(64 &- width))
    }
}
