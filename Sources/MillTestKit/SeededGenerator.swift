package import MillIO
import Synchronization

/// splitmix64: the same numbers for a seed in every run and on every machine.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }

    /// True once in `count` draws.
    package mutating func oneIn(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &self) == 0 }

    package mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &self) }

    /// An element of a collection that is not empty.
    package mutating func pick<T>(_ values: [T]) -> T { values[Int.random(in: values.indices, using: &self)] }
}

/// The same numbers for threads that share it, such as a file system's.
package final class SeededSource: RandomSource {
    private let generator: Mutex<SeededGenerator>

    package init(_ seed: UInt64) { generator = Mutex(SeededGenerator(seed: seed)) }

    package func next() -> UInt64 { generator.withLock { $0.next() } }
    package func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
}
