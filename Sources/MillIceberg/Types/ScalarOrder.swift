package import MillColumnar

/// The order of single values of one type, neither of them NULL: texts and bytes by bytes, UUIDs as their text, which is the same.
package enum ScalarOrder {
    /// Negative, zero or positive. Values of different kinds are equal, which decides nothing.
    package static func compare(_ a: Scalar, _ b: Scalar) -> Int {
        switch (a, b) {
        case (.boolean(let a), .boolean(let b)): order(a ? 1 : 0, b ? 1 : 0)
        case (.int(let a), .int(let b)): order(a, b)
        case (.float(let a), .float(let b)): order(a, b)
        case (.decimal(let a), .decimal(let b)): Decimal.order(a, b)
        case (.string(let a), .string(let b)): bytes(Array(a.utf8), Array(b.utf8))
        case (.bytes(let a), .bytes(let b)): bytes(a, b)
        default: 0
        }
    }

    private static func order<T: Comparable>(_ a: T, _ b: T) -> Int { a < b ? -1 : a > b ? 1 : 0 }

    private static func bytes(_ a: [UInt8], _ b: [UInt8]) -> Int {
        a.lexicographicallyPrecedes(b) ? -1 : b.lexicographicallyPrecedes(a) ? 1 : 0
    }
}
