/// The XML that S3 answers with: elements and their text. Nothing is fetched, no entity is defined, and depth is bounded: a document with a
/// DOCTYPE is refused. Attributes and namespaces count for nothing.
struct XMLElement {
    var name: String
    var text = ""
    var children: [XMLElement] = []

    /// How deep elements may lie in each other.
    private static let depthMax = 32

    /// The first child of that name.
    subscript(name: String) -> XMLElement? { children.first { $0.name == name } }
    func all(_ name: String) -> [XMLElement] { children.filter { $0.name == name } }

    init(name: String) { self.name = name }

    /// The root of a document; nil when it is not well-formed, or has what is refused.
    init?(document bytes: [UInt8]) {
        var parser = Parser(bytes: bytes)
        guard let root = parser.document() else { return nil }
        self = root
    }

    private struct Parser {
        let bytes: [UInt8]
        var index = 0

        mutating func document() -> XMLElement? {
            if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { index = 3 }
            guard skipBetween(), let root = element(depth: 0), skipBetween(), index == bytes.count else { return nil }
            return root
        }

        /// What may stand around the root: spaces, comments and processing instructions.
        private mutating func skipBetween() -> Bool {
            while index < bytes.count {
                if isSpace(bytes[index]) {
                    index += 1
                } else if take("<?") {
                    guard skip(past: "?>") else { return false }
                } else if take("<!--") {
                    guard skip(past: "-->") else { return false }
                } else {
                    break
                }
            }
            return true
        }

        private mutating func element(depth: Int) -> XMLElement? {
            guard depth < XMLElement.depthMax, take("<"), let name = takeName() else { return nil }
            var element = XMLElement(name: name)
            guard let isEmpty = skipAttributes() else { return nil }
            if isEmpty { return element }
            var text: [UInt8] = []
            while index < bytes.count {
                if take("</") {
                    guard takeName() == name else { return nil }
                    skipSpaces()
                    guard take(">") else { return nil }
                    element.text = String(decoding: text, as: UTF8.self)
                    return element
                } else if take("<!--") {
                    guard skip(past: "-->") else { return nil }
                } else if take("<![CDATA[") {
                    let start = index
                    guard skip(past: "]]>") else { return nil }
                    text += bytes[start..<index - 3]
                } else if take("<?") {
                    guard skip(past: "?>") else { return nil }
                } else if bytes[index] == UInt8(ascii: "<") {
                    guard let child = self.element(depth: depth + 1) else { return nil }
                    element.children.append(child)
                } else if bytes[index] == UInt8(ascii: "&") {
                    guard let found = reference() else { return nil }
                    text += found
                } else {
                    text.append(bytes[index])
                    index += 1
                }
            }
            return nil
        }

        /// The local part of a name.
        private mutating func takeName() -> String? {
            let start = index
            while index < bytes.count, !isSpace(bytes[index]), !"/>=<&\"'!?".utf8.contains(bytes[index]) { index += 1 }
            guard index > start else { return nil }
            let name = bytes[start..<index]
            return String(decoding: name.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false).last ?? name, as: UTF8.self)
        }

        /// To the end of a start tag; true when it closes itself.
        private mutating func skipAttributes() -> Bool? {
            while index < bytes.count {
                skipSpaces()
                if take("/>") { return true }
                if take(">") { return false }
                guard takeName() != nil else { return nil }
                skipSpaces()
                guard take("=") else { return nil }
                skipSpaces()
                guard index < bytes.count, bytes[index] == UInt8(ascii: "\"") || bytes[index] == UInt8(ascii: "'") else { return nil }
                let quote = bytes[index]
                index += 1
                guard let end = bytes[index...].firstIndex(of: quote) else { return nil }
                index = end + 1
            }
            return nil
        }

        /// A character reference, or one of the five names that need no definition.
        private mutating func reference() -> [UInt8]? {
            guard let end = bytes[index...].prefix(12).firstIndex(of: UInt8(ascii: ";")) else { return nil }
            let name = String(decoding: bytes[index + 1..<end], as: UTF8.self)
            index = end + 1
            switch name {
            case "lt": return [UInt8(ascii: "<")]
            case "gt": return [UInt8(ascii: ">")]
            case "amp": return [UInt8(ascii: "&")]
            case "quot": return [UInt8(ascii: "\"")]
            case "apos": return [UInt8(ascii: "'")]
            default:
                guard name.hasPrefix("#") else { return nil }
                let digits = name.dropFirst()
                let code = digits.hasPrefix("x") ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
                return code.flatMap { UnicodeScalar($0) }.map { Array(String(Character($0)).utf8) }
            }
        }

        private func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }
        private mutating func skipSpaces() { while index < bytes.count, isSpace(bytes[index]) { index += 1 } }

        private mutating func take(_ text: StaticString) -> Bool {
            let wanted = UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
            guard bytes[index...].starts(with: wanted) else { return false }
            index += wanted.count
            return true
        }

        private mutating func skip(past text: StaticString) -> Bool {
            while index < bytes.count {
                if take(text) { return true }
                index += 1
            }
            return false
        }
    }

    /// Text as it stands in an element; nil when XML cannot say it.
    static func escaped(_ text: String) -> String? {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\t", "\n", "\r": result += "&#\(scalar.value);"
            case "\u{0}"..<"\u{20}", "\u{FFFE}", "\u{FFFF}": return nil
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
