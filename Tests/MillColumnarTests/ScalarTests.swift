import MillColumnar
import Testing

@Suite struct ScalarTests {
    /// Each is equal to those of its own line alone, and hashed as they are.
    @Test func equalIsWhatCannotBeToldApart() {
        let kinds: [[Scalar]] = [
            [.null], [.boolean(true)], [.boolean(false)], [.int(0)], [.int(1)], [.float(0)], [.float(-0.0)], [.float(1)],
            [.float(.nan), .float(-.nan), .float(Double(nan: 7, signaling: false))], [.float(.infinity)],
            [.decimal(Decimal(1)), .decimal(Decimal(unscaled: 1, scale: 0))], [.decimal(Decimal(unscaled: 10, scale: 1))],
            [.decimal(Decimal(unscaled: 100, scale: 2))], [.decimal(Decimal(.nan)), .decimal(Decimal(.nan))], [.decimal(Decimal(.positiveInfinity))],
            [.string("")], [.string("caf\u{e9}")], [.string("cafe\u{301}")], [.bytes([])], [.bytes(Array("caf\u{e9}".utf8))],
            [.interval(Interval(months: 1, days: 0, micros: 0))], [.interval(Interval(months: 0, days: 30, micros: 0))],
        ]
        for (index, kind) in kinds.enumerated() {
            for (otherIndex, other) in kinds.enumerated() {
                for (a, b) in kind.flatMap({ a in other.map { (a, $0) } }) {
                    #expect((a == b) == (index == otherIndex), "\(a) and \(b)")
                    #expect(([a] == [b]) == (index == otherIndex), "\(a) and \(b)")
                    if a == b { #expect(a.hashValue == b.hashValue, "\(a) and \(b)") }
                }
            }
        }
        #expect(Set(kinds.joined()).count == kinds.count)
    }
}
