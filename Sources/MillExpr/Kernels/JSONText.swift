import MillColumnar

/// Reading canonical jsonb text: it is well-formed by construction, with `", "` and `": "` between, so that values are
/// found by skipping. Nothing is parsed into a tree.
enum JSONText {
    typealias Bytes = UnsafeBufferPointer<UInt8>

    enum Kind: String {
        case object, array, string, number, boolean, null
    }

    static func kind(_ text: Bytes) -> Kind {
        switch text.first {
        case UInt8(ascii: "{"): .object
        case UInt8(ascii: "["): .array
        case UInt8(ascii: "\""): .string
        case UInt8(ascii: "t"), UInt8(ascii: "f"): .boolean
        case UInt8(ascii: "n"): .null
        default: .number
        }
    }

    private static func part(_ text: Bytes, _ range: Range<Int>) -> Bytes { Bytes(rebasing: text[range]) }

    /// Where the value that begins at `start` ends.
    private static func end(_ text: Bytes, _ start: Int) -> Int {
        var depth = 0
        var at = start
        while at < text.count {
            switch text[at] {
            case UInt8(ascii: "\""):
                at += 1
                while at < text.count, text[at] != UInt8(ascii: "\"") { at += text[at] == UInt8(ascii: "\\") ? 2 : 1 }
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                if depth == 0 { return at }
                depth -= 1
            case UInt8(ascii: ","): if depth == 0 { return at }
            case UInt8(ascii: ":"): if depth == 0 { return at }
            default: break
            }
            at += 1
        }
        return text.count
    }

    /// Calls `body` with each element, or each key's text (quoted, escaped) and value, until it returns false.
    private static func forEach(_ text: Bytes, _ body: (_ key: Bytes?, _ value: Bytes) -> Bool) {
        let isObject = kind(text) == .object
        guard isObject || kind(text) == .array, text.count > 2 else { return }
        var at = 1
        while at < text.count - 1 {
            var key: Bytes?
            if isObject {
                let keyEnd = end(text, at)
                key = part(text, at..<keyEnd)
                at = keyEnd + 2
            }
            let valueEnd = end(text, at)
            if !body(key, part(text, at..<min(valueEnd, text.count))) { return }
            at = valueEnd + 2
        }
    }

    static func count(_ text: Bytes) -> Int {
        var count = 0
        forEach(text) { _, _ in
            count += 1
            return true
        }
        return count
    }

    static func member(_ text: Bytes, _ key: Bytes) -> Bytes? {
        guard kind(text) == .object else { return nil }
        var quoted: [UInt8] = []
        JSONCanonicalizer.appendString(key, to: &quoted)
        var found: Bytes?
        forEach(text) { name, value in
            guard let name, name.count == quoted.count, name.elementsEqual(quoted) else { return true }
            found = value
            return false
        }
        return found
    }

    /// Elements count from 0, or from the end when negative.
    static func element(_ text: Bytes, _ index: Int) -> Bytes? {
        guard kind(text) == .array else { return nil }
        let wanted = index >= 0 ? index : count(text) + index
        guard wanted >= 0 else { return nil }
        var position = 0
        var found: Bytes?
        forEach(text) { _, value in
            if position == wanted { found = value }
            position += 1
            return found == nil
        }
        return found
    }

    static func hasKey(_ text: Bytes, _ key: Bytes) -> Bool {
        switch kind(text) {
        case .object: return member(text, key) != nil
        case .string, .array:
            var quoted: [UInt8] = []
            JSONCanonicalizer.appendString(key, to: &quoted)
            if kind(text) == .string { return text.elementsEqual(quoted) }
            var found = false
            forEach(text) { _, value in
                found = value.elementsEqual(quoted)
                return !found
            }
            return found
        default: return false
        }
    }

    /// The value as text: a string without its quotes and escapes, null as nothing.
    static func appendText(_ value: Bytes, to out: inout [UInt8]) -> Bool {
        switch kind(value) {
        case .null: return false
        case .string:
            var at = 1
            while at < value.count - 1 {
                guard value[at] == UInt8(ascii: "\\") else {
                    out.append(value[at])
                    at += 1
                    continue
                }
                switch value[at + 1] {
                case UInt8(ascii: "b"): out.append(8)
                case UInt8(ascii: "t"): out.append(9)
                case UInt8(ascii: "n"): out.append(10)
                case UInt8(ascii: "f"): out.append(12)
                case UInt8(ascii: "r"): out.append(13)
                case UInt8(ascii: "u"):
                    // Canonical text escapes only control characters this way.
                    out.append(UInt8(String(decoding: value[(at + 2)..<(at + 6)], as: UTF8.self), radix: 16) ?? 0)
                    at += 4
                default: out.append(value[at + 1])
                }
                at += 2
            }
            return true
        default:
            out.append(contentsOf: value)
            return true
        }
    }

    /// Follows a path, given as a text array such as `{a,0,"b c"}`.
    static func follow(_ text: Bytes, path: [[UInt8]]) -> Bytes? {
        var current = text
        for step in path {
            let next = step.withUnsafeBufferPointer { key -> Bytes? in
                if kind(current) == .object { return member(current, key) }
                return Int(String(decoding: key, as: UTF8.self)).flatMap { element(current, $0) }
            }
            guard let next else { return nil }
            current = next
        }
        return current
    }

    /// The elements of a text array's external form; nil when it is none.
    static func path(_ text: Bytes) -> [[UInt8]]? {
        guard text.count >= 2, text.first == UInt8(ascii: "{"), text.last == UInt8(ascii: "}") else { return nil }
        var steps: [[UInt8]] = []
        var step: [UInt8] = []
        var quoted = false
        var at = 1
        while at < text.count - 1 {
            let byte = text[at]
            if byte == UInt8(ascii: "\\"), at + 1 < text.count - 1 {
                step.append(text[at + 1])
                at += 1
            } else if byte == UInt8(ascii: "\"") {
                quoted.toggle()
            } else if byte == UInt8(ascii: ","), !quoted {
                steps.append(step)
                step = []
            } else if byte != UInt8(ascii: " ") || quoted {
                step.append(byte)
            }
            at += 1
        }
        if text.count > 2 { steps.append(step) }
        return steps
    }
}
