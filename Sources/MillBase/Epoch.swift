/// A round of the whole circuit. Every answer is the state as of one epoch; they count from 1, 0 is "before the first".
package struct Epoch: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let number: UInt64

    package init(_ number: UInt64) { self.number = number }

    package static let zero = Epoch(0)
    package var next: Epoch { Epoch(number + 1) }
    package static func < (a: Epoch, b: Epoch) -> Bool { a.number < b.number }
    package var description: String { String(number) }
}
