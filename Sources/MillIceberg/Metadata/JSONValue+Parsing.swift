/// Reading JSON (RFC 8259) of unknown origin: one pass over the bytes, no call deeper than `depthMax`.
///
/// Whole numbers that fit into 64 bits are integers, all others doubles. Of members with one name the last counts. Text that is not UTF-8,
/// half surrogate pairs and anything behind the value are errors, which name the place.
extension JSONValue {
    static let depthMax = 200

    /// - Throws: what is wrong and where, in words.
    package init(_ bytes: [UInt8]) throws(BadBytes) {
        var input = JSONInput(bytes)
        self = try input.whole()
    }
}

private struct JSONInput {
    private let bytes: [UInt8]
    private var place = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func whole() throws(BadBytes) -> JSONValue {
        let value = try value(depth: 0)
        skipSpace()
        guard place == bytes.count else { throw bad("there is more behind the value") }
        return value
    }

    private func bad(_ what: String) -> BadBytes { BadBytes("it is not valid JSON: \(what) at byte \(place)") }

    private var next: UInt8? { place < bytes.count ? bytes[place] : nil }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { place += 1 }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        place += 1
        return true
    }

    private mutating func word(_ text: String, _ value: JSONValue) throws(BadBytes) -> JSONValue {
        guard bytes[place...].starts(with: text.utf8) else { throw bad("no value") }
        place += text.utf8.count
        return value
    }

    private mutating func value(depth: Int) throws(BadBytes) -> JSONValue {
        guard depth < JSONValue.depthMax else { throw bad("it is nested too deeply") }
        skipSpace()
        switch next {
        case UInt8(ascii: "{"): return try object(depth)
        case UInt8(ascii: "["): return try array(depth)
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .boolean(true))
        case UInt8(ascii: "f"): return try word("false", .boolean(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        default: return try number()
        }
    }

    private mutating func object(_ depth: Int) throws(BadBytes) -> JSONValue {
        place += 1
        var members: [String: JSONValue] = [:]
        skipSpace()
        if take(UInt8(ascii: "}")) { return .object(members) }
        while true {
            skipSpace()
            guard next == UInt8(ascii: "\"") else { throw bad("no name of a member") }
            let name = try string()
            skipSpace()
            guard take(UInt8(ascii: ":")) else { throw bad("no colon") }
            members[name] = try value(depth: depth + 1)
            skipSpace()
            if take(UInt8(ascii: "}")) { return .object(members) }
            guard take(UInt8(ascii: ",")) else { throw bad("an object that does not end") }
        }
    }

    private mutating func array(_ depth: Int) throws(BadBytes) -> JSONValue {
        place += 1
        var values: [JSONValue] = []
        skipSpace()
        if take(UInt8(ascii: "]")) { return .array(values) }
        while true {
            values.append(try value(depth: depth + 1))
            skipSpace()
            if take(UInt8(ascii: "]")) { return .array(values) }
            guard take(UInt8(ascii: ",")) else { throw bad("an array that does not end") }
        }
    }

    private mutating func number() throws(BadBytes) -> JSONValue {
        let start = place
        var isWhole = true
        while let byte = next {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): break
            case UInt8(ascii: "."), UInt8(ascii: "e"), UInt8(ascii: "E"), UInt8(ascii: "+"): isWhole = false
            default: return try number(start, isWhole)
            }
            place += 1
        }
        return try number(start, isWhole)
    }

    private func number(_ start: Int, _ isWhole: Bool) throws(BadBytes) -> JSONValue {
        let text = String(decoding: bytes[start..<place], as: UTF8.self)
        guard text.first != "+", text.first != ".", text.last != ".", !text.isEmpty else { throw bad("no value") }
        if isWhole, let value = Int64(text) { return .int(value) }
        guard let value = Double(text), value.isFinite else { throw bad("no number") }
        return .double(value)
    }

    private mutating func string() throws(BadBytes) -> String {
        place += 1
        var text: [UInt8] = []
        while let byte = next {
            place += 1
            switch byte {
            case UInt8(ascii: "\""):
                guard let text = String(validating: text, as: UTF8.self) else { throw bad("text that is not UTF-8") }
                return text
            case UInt8(ascii: "\\"): try escape(&text)
            case 0..<0x20: throw bad("a control character in a text")
            default: text.append(byte)
            }
        }
        throw bad("a text that does not end")
    }

    private mutating func escape(_ text: inout [UInt8]) throws(BadBytes) {
        guard let byte = next else { throw bad("a text that does not end") }
        place += 1
        switch byte {
        case UInt8(ascii: "n"): text.append(0x0A)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "r"): text.append(0x0D)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0C)
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
        case UInt8(ascii: "u"):
            var code = try hexadecimal()
            if 0xD800..<0xDC00 ~= code, take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) {
                let low = try hexadecimal()
                guard 0xDC00..<0xE000 ~= low else { throw bad("half a character") }
                code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
            }
            guard let scalar = Unicode.Scalar(code) else { throw bad("half a character") }
            text += Array(String(Character(scalar)).utf8)
        default: throw bad("an unknown escape")
        }
    }

    private mutating func hexadecimal() throws(BadBytes) -> UInt32 {
        guard place + 4 <= bytes.count, let code = UInt32(String(decoding: bytes[place..<place + 4], as: UTF8.self), radix: 16) else {
            throw bad("no four hexadecimal digits")
        }
        place += 4
        return code
    }
}
