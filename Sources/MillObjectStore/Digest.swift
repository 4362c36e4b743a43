import CCrypto

/// Digests by libcrypto, and the two ways to write bytes as text that S3 wants.
enum Digest {
    static func sha256(_ bytes: UnsafeRawBufferPointer) -> [UInt8] { digest(bytes, EVP_sha256(), count: 32) }
    static func sha256(_ text: String) -> [UInt8] { sha256(Array(text.utf8)) }
    static func sha256(_ bytes: [UInt8]) -> [UInt8] { bytes.withUnsafeBytes { sha256($0) } }
    static func md5(_ bytes: [UInt8]) -> [UInt8] { bytes.withUnsafeBytes { digest($0, EVP_md5(), count: 16) } }

    static func hmac(key: [UInt8], _ text: String) -> [UInt8] {
        var result = [UInt8](repeating: 0, count: 32)
        var count: UInt32 = 0
        let message = Array(text.utf8)
        let done = HMAC(EVP_sha256(), key, Int32(key.count), message, message.count, &result, &count)
        precondition(done != nil && count == 32, "libcrypto has SHA-256")
        return result
    }

    private static func digest(_ bytes: UnsafeRawBufferPointer, _ kind: OpaquePointer?, count: Int) -> [UInt8] {
        var result = [UInt8](repeating: 0, count: count)
        var written: UInt32 = 0
        precondition(
            EVP_Digest(bytes.baseAddress, bytes.count, &result, &written, kind, nil) == 1 && written == count, "libcrypto has the digest")
        return result
    }

    static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// The bytes of lowercase or uppercase hexadecimal digits; nil for anything else.
    static func bytes(hexadecimal text: some StringProtocol) -> [UInt8]? {
        let digits = text.utf8.map { UInt8(String(UnicodeScalar($0)), radix: 16) }
        guard digits.count % 2 == 0, !digits.contains(nil) else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { (digits[$0] ?? 0) << 4 | (digits[$0 + 1] ?? 0) }
    }

    static func base64(_ bytes: [UInt8]) -> String {
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let word = group.enumerated().reduce(UInt32(0)) { $0 | UInt32($1.element) << UInt32(16 - 8 * $1.offset) }
            for place in 0..<4 { text.append(place <= group.count ? digits[Int(word >> UInt32(18 - 6 * place)) & 63] : UInt8(ascii: "=")) }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
