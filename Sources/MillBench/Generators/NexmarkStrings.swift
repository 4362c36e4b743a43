/// The texts that Nexmark's records draw from, made once per generator from its seed.
struct NexmarkStrings: Sendable {
    static let firstNames: [[UInt8]] = texts("Peter Paul Luke John Saul Vicky Kate Julie Sarah Deiter Walter")
    static let lastNames: [[UInt8]] = texts("Shultz Abrams Spencer White Bartels Walton Smith Jones Noris")
    static let states: [[UInt8]] = texts("AZ CA ID OR WA WY")
    static let cities: [[UInt8]] = texts("Phoenix Los_Angeles San_Francisco Boise Portland Bend Redmond Seattle Kent Cheyenne")
    static let hotChannels: [[UInt8]] = texts("Google Facebook Baidu Apple")
    static let channels = 10_000

    /// Letters that the field `extra` is cut from.
    let letters: [UInt8]
    let hotURLs: [[UInt8]]
    let channelURLs: [[UInt8]]

    init(seed: UInt64) {
        var random = SeededRandom(seed: SeededRandom.mix(seed ^ 0x6E65_786D_6172_6B))
        letters = (0..<(1 << 20)).map { _ in UInt8(ascii: "a") + UInt8(random.below(26)) }
        hotURLs = Self.hotChannels.map { _ in Self.url(&random) }
        channelURLs = (0..<Self.channels).map { channel in
            let url = Self.url(&random)
            guard random.chance(9, in: 10) else { return url }
            // The channel's number with its bits turned round, as in Beam's generator: numbers that look like ids.
            var bits = UInt32(channel)
            var turned: UInt32 = 0
            for _ in 0..<32 {
                turned = turned << 1 | bits & 1
                bits >>= 1
            }
            return url + Array("&channel_id=\(Int32(bitPattern: turned).magnitude)".utf8)
        }
    }

    /// A word of 3 to `most` - 1 letters, now and then the special character instead.
    static func word(_ random: inout SeededRandom, most: Int, special: UInt8) -> [UInt8] {
        let count = 3 + random.below(most - 3)
        var word = (0..<count).map { _ in random.chance(1, in: 13) ? special : UInt8(ascii: "a") + UInt8(random.below(26)) }
        if special == UInt8(ascii: " ") {
            while word.last == special { word.removeLast() }
            word.removeFirst(word.prefix { $0 == special }.count)
        }
        return word
    }

    private static func url(_ random: inout SeededRandom) -> [UInt8] {
        var url = Array("https://www.nexmark.com".utf8)
        for _ in 0..<3 { url += Array("/".utf8) + word(&random, most: 5, special: UInt8(ascii: "_")) }
        return url + Array("/item.htm?query=1".utf8)
    }

    private static func texts(_ words: String) -> [[UInt8]] {
        words.split(separator: " ").map { $0.utf8.map { $0 == UInt8(ascii: "_") ? UInt8(ascii: " ") : $0 } }
    }
}
