/// A JSON reader by the letter of RFC 8259, one byte at a time: what the decoder is compared with.
struct ReferenceJSON {
    indirect enum Value {
        case null
        case bool(Bool)
        case number(String)
        /// nil: not text, because of an unpaired surrogate or a zero character.
        case string(String?)
        case array(compact: String)
        case object(compact: String, members: [(key: String?, value: Value)])
    }

    private struct Malformed: Error {}
    private let bytes: [UInt8]
    private var at = 0

    /// The members of a record that is one well-formed object, else nil.
    static func members(_ record: [UInt8]) -> [(key: String?, value: Value)]? {
        guard String(validating: record, as: UTF8.self) != nil else { return nil }
        var reader = ReferenceJSON(bytes: record)
        guard let value = try? reader.value(), case .object(_, let members) = value else { return nil }
        reader.space()
        return reader.at == record.count ? members : nil
    }

    private init(bytes: [UInt8]) { self.bytes = bytes }

    private var next: UInt8? { at < bytes.count ? bytes[at] : nil }
    private mutating func space() { while let byte = next, [32, 9, 10, 13].contains(byte) { at += 1 } }

    private mutating func take(_ byte: UInt8) throws {
        guard next == byte else { throw Malformed() }
        at += 1
    }

    private mutating func value() throws -> Value {
        space()
        switch next {
        case UInt8(ascii: "{"): return try object()
        case UInt8(ascii: "["): return try array()
        case UInt8(ascii: "\""): return .string(try string().text)
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        default: return .number(try number())
        }
    }

    private mutating func word(_ text: String, _ value: Value) throws -> Value {
        for byte in text.utf8 { try take(byte) }
        return value
    }

    private mutating func digits() throws -> String {
        var found = ""
        while let byte = next, (48...57).contains(byte) {
            found.unicodeScalars.append(Unicode.Scalar(byte))
            at += 1
        }
        if found.isEmpty { throw Malformed() }
        return found
    }

    private mutating func number() throws -> String {
        var text = ""
        if next == UInt8(ascii: "-") {
            text = "-"
            at += 1
        }
        let whole = try digits()
        if whole.count > 1, whole.hasPrefix("0") { throw Malformed() }
        text += whole
        if next == UInt8(ascii: ".") {
            at += 1
            text += "." + (try digits())
        }
        if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
            text.unicodeScalars.append(Unicode.Scalar(bytes[at]))
            at += 1
            if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") {
                text.unicodeScalars.append(Unicode.Scalar(bytes[at]))
                at += 1
            }
            text += try digits()
        }
        return text
    }

    private mutating func string() throws -> (text: String?, raw: String) {
        let start = at
        try take(UInt8(ascii: "\""))
        var units: [UInt16] = []
        var plain: [UInt8] = []
        func flush() {
            units += Array(String(decoding: plain, as: UTF8.self).utf16)
            plain = []
        }
        while let byte = next, byte != UInt8(ascii: "\"") {
            guard byte >= 32 else { throw Malformed() }
            at += 1
            guard byte == UInt8(ascii: "\\") else {
                plain.append(byte)
                continue
            }
            flush()
            guard let kind = next else { throw Malformed() }
            at += 1
            let simple: [UInt8: UInt16] = [34: 34, 92: 92, 47: 47, 98: 8, 102: 12, 110: 10, 114: 13, 116: 9]
            if let unit = simple[kind] {
                units.append(unit)
            } else {
                guard kind == UInt8(ascii: "u"), at + 4 <= bytes.count else { throw Malformed() }
                let hex = bytes[at..<(at + 4)]
                guard hex.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) else { throw Malformed() }
                units.append(UInt16(String(decoding: hex, as: UTF8.self), radix: 16)!)
                at += 4
            }
        }
        flush()
        try take(UInt8(ascii: "\""))
        let raw = String(decoding: bytes[start..<at], as: UTF8.self)
        return (units.contains(0) ? nil : String(validating: units, as: UTF16.self), raw)
    }

    private mutating func array() throws -> Value {
        try take(UInt8(ascii: "["))
        var parts: [String] = []
        space()
        if next != UInt8(ascii: "]") {
            while true {
                parts.append(try compact())
                space()
                guard next == UInt8(ascii: ",") else { break }
                at += 1
            }
        }
        try take(UInt8(ascii: "]"))
        return .array(compact: "[" + parts.joined(separator: ",") + "]")
    }

    private mutating func object() throws -> Value {
        try take(UInt8(ascii: "{"))
        var members: [(key: String?, value: Value)] = []
        var parts: [String] = []
        space()
        if next != UInt8(ascii: "}") {
            while true {
                space()
                let key = try string()
                space()
                try take(UInt8(ascii: ":"))
                let before = at
                let value = try value()
                at = before
                parts.append(key.raw + ":" + (try compact()))
                members.append((key.text, value))
                space()
                guard next == UInt8(ascii: ",") else { break }
                at += 1
            }
        }
        try take(UInt8(ascii: "}"))
        return .object(compact: "{" + parts.joined(separator: ",") + "}", members: members)
    }

    /// The next value as written, without white space between tokens.
    private mutating func compact() throws -> String {
        space()
        let start = at
        switch try value() {
        case .array(let text), .object(let text, _): return text
        default: return String(decoding: bytes[start..<at], as: UTF8.self)
        }
    }
}

/// SplitMix64, so that a failing run can be repeated from its seed.
struct TestRandom: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    mutating func below(_ count: Int) -> Int { Int.random(in: 0..<count, using: &self) }
    mutating func chance(_ percent: Int) -> Bool { below(100) < percent }
    mutating func pick<T>(_ values: [T]) -> T { values[below(values.count)] }
}
