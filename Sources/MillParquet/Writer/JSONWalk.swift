import MillColumnar

/// Walks over one JSON value that is known to be whole, as every jsonb is.
struct JSONWalk {
    enum Kind {
        case null, text, bare, object, array
    }

    private let bytes: UnsafeBufferPointer<UInt8>
    private var at = 0

    init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    private mutating func skipSpace() {
        while at < bytes.count, Self.isSpace(bytes[at]) { at += 1 }
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 32 || (9...13).contains(byte) }

    /// Of the value that comes next.
    mutating func kind() -> Kind {
        skipSpace()
        guard at < bytes.count else { return .null }
        switch bytes[at] {
        case UInt8(ascii: "{"): return .object
        case UInt8(ascii: "["): return .array
        case UInt8(ascii: "\""): return .text
        case UInt8(ascii: "n"): return .null
        default: return .bare
        }
    }

    /// Passes over an opening bracket; false when the object or array is empty, and is passed over whole.
    mutating func enter() -> Bool {
        skipSpace()
        at += 1
        return !leave()
    }

    /// Behind a member: passes over the comma and says true when another follows, else over the closing bracket.
    mutating func next() -> Bool { !leave() }

    private mutating func leave() -> Bool {
        skipSpace()
        guard at < bytes.count else { return true }
        let byte = bytes[at]
        if byte == UInt8(ascii: "]") || byte == UInt8(ascii: "}") {
            at += 1
            return true
        }
        if byte == UInt8(ascii: ",") { at += 1 }
        return false
    }

    /// A member's name, with the colon behind it.
    mutating func name(into text: inout [UInt8]) {
        self.text(into: &text)
        skipSpace()
        if at < bytes.count, bytes[at] == UInt8(ascii: ":") { at += 1 }
    }

    /// A text without its quotes and escapes.
    mutating func text(into text: inout [UInt8]) {
        text.removeAll(keepingCapacity: true)
        skipSpace()
        at += 1
        while at < bytes.count, bytes[at] != UInt8(ascii: "\"") {
            guard bytes[at] == UInt8(ascii: "\\") else {
                text.append(bytes[at])
                at += 1
                continue
            }
            at += 2
            guard at <= bytes.count else { return }
            switch bytes[at - 1] {
            case UInt8(ascii: "b"): text.append(8)
            case UInt8(ascii: "f"): text.append(12)
            case UInt8(ascii: "n"): text.append(10)
            case UInt8(ascii: "r"): text.append(13)
            case UInt8(ascii: "t"): text.append(9)
            case UInt8(ascii: "u"): unicode(into: &text)
            case let other: text.append(other)
            }
        }
        at += 1
    }

    private mutating func unicode(into text: inout [UInt8]) {
        var code = hexadecimal()
        if (0xd800..<0xdc00).contains(code), at + 6 <= bytes.count, bytes[at] == UInt8(ascii: "\\"), bytes[at + 1] == UInt8(ascii: "u") {
            at += 2
            code = 0x10000 + (code - 0xd800) << 10 + (hexadecimal() &- 0xdc00) & 0x3ff
        }
        text.append(contentsOf: String(Unicode.Scalar(code) ?? "\u{fffd}").utf8)
    }

    private mutating func hexadecimal() -> UInt32 {
        var code: UInt32 = 0
        for _ in 0..<4 where at < bytes.count {
            let digit = bytes[at] | 0x20
            code = code << 4 | UInt32(digit >= UInt8(ascii: "a") ? digit - UInt8(ascii: "a") + 10 : bytes[at] & 15)
            at += 1
        }
        return code
    }

    /// A number, true or false, as it is written.
    mutating func bare(into text: inout [UInt8]) {
        text.removeAll(keepingCapacity: true)
        skipSpace()
        while at < bytes.count, !Self.endsBare(bytes[at]) {
            text.append(bytes[at])
            at += 1
        }
    }

    private static func endsBare(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: ",") || byte == UInt8(ascii: "]") || byte == UInt8(ascii: "}") || isSpace(byte)
    }
}
