package import MillIO

/// Names that nobody else takes, for files that are never replaced.
package enum FileNames {
    /// A prefix, a number and 64 random bits.
    package static func name(_ prefix: String, _ number: Int, _ random: any RandomSource) -> String {
        let digits = String(random.next(), radix: 16)
        return "\(prefix)-\(number)-" + String(repeating: "0", count: 16 - digits.count) + digits
    }
}
