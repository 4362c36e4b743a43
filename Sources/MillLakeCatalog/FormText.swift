/// `application/x-www-form-urlencoded`, as in queries and in token requests, and percent-encoding in paths (RFC 3986).
enum FormText {
    /// The first of several fields with one name counts.
    static func fields(_ text: some StringProtocol) throws(CatalogFailure) -> [String: String] {
        var result: [String: String] = [:]
        for pair in text.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = try decoded(parts[0], plusIsSpace: true)
            let value = parts.count > 1 ? try decoded(parts[1], plusIsSpace: true) : ""
            if result[name] == nil { result[name] = value }
        }
        return result
    }

    static func decoded(_ text: some StringProtocol, plusIsSpace: Bool) throws(CatalogFailure) -> String {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "%"):
                guard rest.count >= 2, let code = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else {
                    throw .badRequest("\"\(text)\" has a percent sign that is not followed by two hexadecimal digits")
                }
                bytes.append(code)
                rest = rest.dropFirst(2)
            case UInt8(ascii: "+") where plusIsSpace: bytes.append(UInt8(ascii: " "))
            default: bytes.append(byte)
            }
        }
        guard let decoded = String(validating: bytes, as: UTF8.self) else { throw .badRequest("\"\(text)\" is not UTF-8") }
        return decoded
    }
}
