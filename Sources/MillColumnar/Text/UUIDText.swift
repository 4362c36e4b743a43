/// UUIDs as texts and as their sixteen bytes.
package enum UUIDText {
    /// In the usual groups of lower-case digits; nil for other than sixteen bytes.
    package static func text(_ bytes: [UInt8]) -> String? {
        guard bytes.count == 16 else { return nil }
        let digits = bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
        let parts = [0..<4, 4..<6, 6..<8, 8..<10, 10..<16]
        return parts.map { digits[$0].joined() }.joined(separator: "-")
    }

    package static func bytes(_ text: String) -> [UInt8]? { bytes(utf8: text.utf8) }

    /// Of 32 hexadecimal digits, hyphens between any of them passed over; nil for what is no UUID.
    package static func bytes(utf8 text: some Sequence<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        var high: UInt8?
        for character in text where character != UInt8(ascii: "-") {
            guard let digit = digit(character), bytes.count < 16 else { return nil }
            if let half = high {
                bytes.append(half << 4 | digit)
                high = nil
            } else {
                high = digit
            }
        }
        return bytes.count == 16 && high == nil ? bytes : nil
    }

    private static func digit(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
