import MillBase

/// How large the automaton of a regular expression gets, and how deep its groups nest: known before the C library builds it.
///
/// The library recurses once per open group and repeats a group for each count of `{n}`; its closures hold every way through
/// neighbouring optional parts. None of that can be cancelled, so what would take too long or too much is refused here.
/// One pass over the translated pattern; sizes are of the expanded pattern.
struct PatternSize {
    private static let depthMax = 100
    private static let atomsMax = 20_000
    private static let forksMax = 1_000
    private static let countMax = 255

    /// Atoms, and places where a match may go two ways.
    private struct Extent {
        var atoms = 0
        var forks = 0

        static func + (a: Extent, b: Extent) -> Extent { Extent(atoms: a.atoms + b.atoms, forks: a.forks + b.forks) }
    }

    private var groups: [Extent] = [Extent()]
    /// What a quantifier would apply to.
    private var last = Extent()

    /// - Throws: 2201B for a pattern that is too large, too deep, or has a count above 255.
    static func check(_ pattern: String) throws(SQLError) {
        var size = PatternSize()
        var bytes = Array(pattern.utf8)[...]
        while let byte = bytes.popFirst() {
            switch byte {
            case UInt8(ascii: "\\"):
                _ = bytes.popFirst()
                size.atom()
            case UInt8(ascii: "["):
                skipBrackets(&bytes)
                size.atom()
            case UInt8(ascii: "("): size.open()
            case UInt8(ascii: ")"): size.close()
            case UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "?"): size.last.forks += 1
            case UInt8(ascii: "|"): size.fork()
            case UInt8(ascii: "{"): try size.times(counts(&bytes))
            default: size.atom()
            }
            try size.check()
        }
        size.settle()
        try size.check()
    }

    private mutating func settle() {
        groups[groups.count - 1] = groups[groups.count - 1] + last
        last = Extent()
    }

    private mutating func atom() {
        settle()
        last.atoms = 1
    }

    private mutating func fork() {
        settle()
        last.forks = 1
    }

    private mutating func open() {
        settle()
        groups.append(Extent())
    }

    private mutating func close() {
        settle()
        // An extra closing bracket is the library's to refuse.
        if groups.count > 1 { last = groups.removeLast() }
    }

    private mutating func times(_ counts: (least: Int, most: Int?)) throws(SQLError) {
        let most = max(counts.most ?? counts.least + 1, 1)
        guard max(counts.least, most) <= Self.countMax + 1 else {
            throw SQLError(.invalidRegularExpression, "invalid regular expression: invalid repetition count(s)", hint: "Counts go up to 255.")
        }
        // Bounded before, so no product is near the ends of Int.
        last.atoms *= most
        last.forks = last.forks * most + max(most - counts.least, 0)
    }

    private func check() throws(SQLError) {
        let atoms = groups.reduce(last.atoms) { $0 + $1.atoms }
        let forks = groups.reduce(last.forks) { $0 + $1.forks }
        guard groups.count <= Self.depthMax, atoms <= Self.atomsMax, forks <= Self.forksMax else {
            throw SQLError(
                .invalidRegularExpression, "invalid regular expression: it is too complex",
                hint: "It may nest \(Self.depthMax) groups deep and hold \(Self.forksMax) alternatives and quantifiers, counts multiplied out.")
        }
    }

    /// To behind the closing bracket; one right at the start, or that ends a named class, is not it.
    private static func skipBrackets(_ bytes: inout ArraySlice<UInt8>) {
        if bytes.first == UInt8(ascii: "^") { bytes.removeFirst() }
        if bytes.first == UInt8(ascii: "]") { bytes.removeFirst() }
        while let byte = bytes.popFirst(), byte != UInt8(ascii: "]") {
            guard byte == UInt8(ascii: "["), bytes.first == UInt8(ascii: ":") else { continue }
            while let inner = bytes.popFirst(), inner != UInt8(ascii: "]") {}
        }
    }

    /// The counts of `{n}`, `{n,}` or `{n,m}`; what is no count is the library's to refuse.
    private static func counts(_ bytes: inout ArraySlice<UInt8>) -> (least: Int, most: Int?) {
        let inside = bytes.prefix { $0 != UInt8(ascii: "}") }
        bytes = bytes.dropFirst(inside.count + 1)
        let parts = inside.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false).map { Int(String(decoding: $0, as: UTF8.self)) }
        let large = inside.count > 8 ? Int(countMax) + 2 : 0
        let least = parts.first.flatMap { $0 } ?? large
        return (max(least, large), parts.count == 1 ? max(least, large) : parts[1])
    }
}
