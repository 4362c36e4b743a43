import CCrypto

/// Passwords and tokens: made at random, stored as what they cannot be guessed from.
enum Secret {
    /// What is stored of a password: random salt and PBKDF2-HMAC-SHA256 over it.
    struct Hash: Hashable, Sendable {
        /// In hexadecimal digits, both.
        var salt: String
        var digest: String
    }

    private static let iterations: Int32 = 20_000

    /// As many bytes from the system's generator, in hexadecimal digits.
    static func random(byteCount: Int) -> String { hexadecimal(randomBytes(byteCount)) }

    private static func randomBytes(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }

    static func hash(_ password: String) -> Hash {
        let salt = random(byteCount: 16)
        return Hash(salt: salt, digest: derived(password, salt))
    }

    static func matches(_ password: String, _ hash: Hash) -> Bool {
        let (found, expected) = (derived(password, hash.salt).utf8, hash.digest.utf8)
        // No byte is passed over: how long it takes says nothing.
        return found.count == expected.count && zip(found, expected).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }

    private static func derived(_ password: String, _ salt: String) -> String {
        var result = [UInt8](repeating: 0, count: 32)
        let bytes = password.utf8.map { CChar(bitPattern: $0) }
        let salt = Array(salt.utf8)
        let done = PKCS5_PBKDF2_HMAC(
            bytes, Int32(bytes.count), salt, Int32(salt.count), iterations, EVP_sha256(), Int32(result.count), &result)
        precondition(done == 1, "libcrypto has PBKDF2 with SHA-256")
        return hexadecimal(result)
    }

    /// SHA-256, in hexadecimal digits. Tokens have 256 random bits: no salt and no iterations are needed.
    static func digest(_ token: String) -> String {
        var result = [UInt8](repeating: 0, count: 32)
        var count: UInt32 = 0
        let bytes = Array(token.utf8)
        let done = EVP_Digest(bytes, bytes.count, &result, &count, EVP_sha256(), nil)
        precondition(done == 1 && count == 32, "libcrypto has SHA-256")
        return hexadecimal(result)
    }

    static func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// RFC 4648; nil for anything else. Line ends are not taken.
    static func base64Decoded(_ text: some StringProtocol) -> [UInt8]? {
        var result: [UInt8] = []
        var bits: UInt32 = 0
        var count: UInt32 = 0
        for byte in text.utf8 {
            let value: UInt8
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = byte - UInt8(ascii: "A")
            case UInt8(ascii: "a")...UInt8(ascii: "z"): value = byte - UInt8(ascii: "a") + 26
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = byte - UInt8(ascii: "0") + 52
            case UInt8(ascii: "+"): value = 62
            case UInt8(ascii: "/"): value = 63
            case UInt8(ascii: "="): continue
            default: return nil
            }
            bits = bits << 6 | UInt32(value)
            count += 6
            if count >= 8 {
                count -= 8
                result.append(UInt8(truncatingIfNeeded: bits >> count))
            }
        }
        return result
    }
}
