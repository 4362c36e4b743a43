/// splitmix64: the same numbers for a seed in every run.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }

    /// Bytes of one of the lengths, from few letters with the extremes among them; longer keys mostly share their beginning.
    mutating func key(_ lengths: [Int]) -> [UInt8] {
        let length = lengths.randomElement(using: &self)!
        let letters: [UInt8] = [0, 1, 7, 0xFE, 0xFF]
        let free = Int.random(in: 3...8, using: &self)
        return (0..<length).map { $0 + free < length ? 7 : letters.randomElement(using: &self)! }
    }
}
