/// Random numbers that depend on a seed only: SplitMix64 (Steele, Lea and Flood 2014), whose state can be set anywhere, so that an
/// event is a function of the seed and its number.
struct SeededRandom {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    /// The stream of event `number`.
    init(seed: UInt64, number: Int) { state = Self.mix(seed &* 0x9E37_79B9_7F4A_7C15 &+ UInt64(truncatingIfNeeded: number)) }

    static func mix(_ value: UInt64) -> UInt64 {
        var z = value
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return Self.mix(state)
    }

    /// From 0 to `count` - 1, for positive counts up to 2^32.
    mutating func below(_ count: Int) -> Int {
        // The product first: a shift binds tighter than a multiplication.
        Int(truncatingIfNeeded: ((next() >> 32) &* UInt64(truncatingIfNeeded: count)) >> 32)
    }

    /// From 0 inclusive to 1 exclusive.
    mutating func unit() -> Double { Double(next() >> 11) * 0x1.0p-53 }

    mutating func chance(_ numerator: Int, in denominator: Int) -> Bool { below(denominator) < numerator }
}
