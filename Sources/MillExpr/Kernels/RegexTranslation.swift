import MillBase

/// A pattern of PostgreSQL's advanced regular expressions in RE2's syntax.
///
/// Both mean the same by most of it. What differs is written anew: classes take in all of Unicode (`\w`, `[[:alpha:]]`), `\y \Y` are
/// edges of words, `\m` and `\M` their starts and ends, `\b` is a backspace, `\Z` the text's end, `\u` and `\x` characters by their numbers;
/// options at the start (`(?i)`, `***=`) are options. One pass; what RE2 has and PostgreSQL has not is refused, because it would mean
/// something else elsewhere.
struct RegexTranslation {
    private(set) var text: [UInt8] = []
    private(set) var options: RegexOptions
    private(set) var isLazy = false
    private var rest: ArraySlice<UInt8>
    /// Whether what was translated last matches a character of a word, and at least one.
    private var endsInWord = false

    /// As in PostgreSQL; RE2 itself bounds what counts within counts come to.
    private static let countMax = 255
    /// Classes inside brackets.
    private static let classes: [String: String] = [
        "alpha": "\\pL", "alnum": "\\pL\\pN", "digit": "0-9", "lower": "\\p{Ll}", "upper": "\\p{Lu}", "space": "\\s\\v\\x{85}\\pZ",
        "blank": "\\t\\p{Zs}",
        "punct": "\\pP\\pS", "cntrl": "[:cntrl:]", "xdigit": "[:xdigit:]", "print": "\\pL\\pM\\pN\\pP\\pS\\p{Zs}",
        "graph": "\\pL\\pM\\pN\\pP\\pS",
        "word": "\\pL\\pN_", "ascii": "[:ascii:]",
    ]

    init(_ pattern: UnsafeBufferPointer<UInt8>, _ options: RegexOptions) throws(SQLError) {
        self.options = options
        rest = Array(pattern)[...]
        if accept("***=") { self.options.isLiteral = true } else if accept("***:") {}
        guard !self.options.isLiteral else {
            text = Array(rest)
            return
        }
        try takeEmbeddedOptions()
        if self.options.isByLine { append("(?m-s)") }
        while let byte = rest.first { try translate(byte) }
    }

    private static func invalid(_ reason: String) -> SQLError {
        SQLError(.invalidRegularExpression, "invalid regular expression: \(reason)")
    }
    private static func unsupported(_ what: String) -> SQLError {
        SQLError(.featureNotSupported, "\(what) in regular expressions \(what.hasSuffix("s") ? "are" : "is") not supported")
    }

    private mutating func append(_ text: String) { self.text += Array(text.utf8) }

    private mutating func accept(_ prefix: String) -> Bool {
        guard rest.starts(with: prefix.utf8) else { return false }
        rest = rest.dropFirst(prefix.utf8.count)
        return true
    }

    /// `(?letters)` at the very start.
    private mutating func takeEmbeddedOptions() throws(SQLError) {
        guard rest.starts(with: "(?".utf8), let end = rest.firstIndex(of: UInt8(ascii: ")")) else { return }
        let letters = rest[(rest.startIndex + 2)..<end]
        guard !letters.isEmpty, letters.allSatisfy({ $0 >= UInt8(ascii: "a") && $0 <= UInt8(ascii: "z") }) else { return }
        do throws(SQLError) {
            try letters.withUnsafeBufferPointer { (letters) throws(SQLError) in try options.take(letters) }
        } catch { throw Self.invalid("invalid embedded option") }
        rest = rest[(end + 1)...]
    }

    private mutating func translate(_ byte: UInt8) throws(SQLError) {
        rest = rest.dropFirst()
        let isKept =
            byte == UInt8(ascii: "+") || byte == UInt8(ascii: "\\") && rest.first == UInt8(ascii: "M")
            || byte == UInt8(ascii: "[") && rest.starts(with: "[:>:]]".utf8)
        if !isKept { endsInWord = byte == UInt8(ascii: "\\") ? rest.first == UInt8(ascii: "w") : Self.isOfWord(byte) }
        switch byte {
        case UInt8(ascii: "\\"): try translateEscape()
        case UInt8(ascii: "["): try translateBrackets()
        case UInt8(ascii: "("):
            text.append(byte)
            guard accept("?") else { return }
            if rest.first.map({ "=!<".utf8.contains($0) }) ?? false { throw Self.unsupported("look-around") }
            guard accept(":") else { throw Self.invalid("quantifier operand invalid") }
            append("?:")
        case UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "?"): quantify([byte])
        case UInt8(ascii: "{"):
            guard rest.first.map(Self.isDigit) ?? false else { return append("\\{") }
            guard let end = rest.firstIndex(of: UInt8(ascii: "}")) else { throw Self.invalid("braces {} not balanced") }
            let counts = rest[..<end]
            let numbers = counts.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: true).map {
                Int(String(decoding: $0, as: UTF8.self))
            }
            guard numbers.allSatisfy({ $0.map { $0 <= Self.countMax } ?? false }) else { throw Self.invalid("invalid repetition count(s)") }
            rest = rest[(end + 1)...]
            quantify([byte] + counts + [UInt8(ascii: "}")])
        default: text.append(byte)
        }
    }

    private mutating func quantify(_ quantifier: [UInt8]) {
        text += quantifier
        if accept("?") {
            append("?")
            isLazy = true
        }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }
    private static func isLetter(_ byte: UInt8) -> Bool { byte | 0x20 >= UInt8(ascii: "a") && byte | 0x20 <= UInt8(ascii: "z") }

    // MARK: Escapes

    private mutating func translateEscape() throws(SQLError) {
        guard let code = rest.popFirst() else { throw Self.invalid("invalid escape \\ sequence") }
        switch code {
        case UInt8(ascii: "w"): append("[\\pL\\pN_]")
        case UInt8(ascii: "W"): append("[^\\pL\\pN_]")
        case UInt8(ascii: "s"): append("[\\s\\v\\x{85}\\pZ]")
        case UInt8(ascii: "S"): append("[^\\s\\v\\x{85}\\pZ]")
        case UInt8(ascii: "d"), UInt8(ascii: "D"): text += [UInt8(ascii: "\\"), code]
        case UInt8(ascii: "y"): append("\\b")
        case UInt8(ascii: "Y"): append("\\B")
        case UInt8(ascii: "m"): try translateWordEdge(isStart: true)
        case UInt8(ascii: "M"): try translateWordEdge(isStart: false)
        case UInt8(ascii: "A"): append("\\A")
        case UInt8(ascii: "Z"): append("\\z")
        case UInt8(ascii: "1")...UInt8(ascii: "9"): throw Self.unsupported("back references")
        default: try translateCharacter(code)
        }
    }

    /// An escape that stands for one character, inside brackets or out.
    private mutating func translateCharacter(_ code: UInt8) throws(SQLError) {
        switch code {
        case UInt8(ascii: "a"), UInt8(ascii: "f"), UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"), UInt8(ascii: "v"):
            text += [UInt8(ascii: "\\"), code]
        case UInt8(ascii: "b"): append("\\x08")
        case UInt8(ascii: "B"): append("\\\\")
        case UInt8(ascii: "e"): append("\\x1b")
        case UInt8(ascii: "0"): append("\\x00")
        case UInt8(ascii: "u"): try appendCharacter(digits: 4)
        case UInt8(ascii: "U"): try appendCharacter(digits: 8)
        case UInt8(ascii: "x"): try appendCharacter(digits: nil)
        case UInt8(ascii: "c"):
            guard let letter = rest.popFirst() else { throw Self.invalid("invalid escape \\ sequence") }
            append("\\x{\(String(letter & 31, radix: 16))}")
        case _ where Self.isLetter(code) || Self.isDigit(code): throw Self.invalid("invalid escape \\ sequence")
        case 0x80...: text.append(code)
        default: text += [UInt8(ascii: "\\"), code]
        }
    }

    /// A character by hexadecimal digits: so many, or as many as there are.
    private mutating func appendCharacter(digits: Int?) throws(SQLError) {
        let hex = rest.prefix { Self.isDigit($0) || $0 | 0x20 >= UInt8(ascii: "a") && $0 | 0x20 <= UInt8(ascii: "f") }.prefix(
            digits ?? .max)
        guard !hex.isEmpty, hex.count == digits ?? hex.count, let value = UInt32(String(decoding: hex, as: UTF8.self), radix: 16),
            Unicode.Scalar(value) != nil
        else { throw Self.invalid("invalid escape \\ sequence") }
        rest = rest.dropFirst(hex.count)
        append("\\x{\(String(value, radix: 16))}")
    }

    /// `\m` and `\M` are RE2's `\b` where a character of a word is seen to follow, or to have been.
    private mutating func translateWordEdge(isStart: Bool) throws(SQLError) {
        let optional = "*?{".utf8
        let isWord =
            isStart
            ? rest.first.map(Self.isOfWord) ?? false && !(rest.dropFirst().first.map(optional.contains) ?? false)
                || rest.starts(with: "\\w".utf8)
            : endsInWord
        guard isWord else { throw Self.unsupported("edges of words away from letters") }
        append("\\b")
    }

    private static func isOfWord(_ byte: UInt8) -> Bool { isLetter(byte) || isDigit(byte) || byte == UInt8(ascii: "_") }

    // MARK: Brackets

    private mutating func translateBrackets() throws(SQLError) {
        if accept("[:<:]]") { return try translateWordEdge(isStart: true) }
        if accept("[:>:]]") { return try translateWordEdge(isStart: false) }
        append("[")
        if accept("^") { append(options.isByLine ? "^\\n" : "^") }
        if accept("]") { append("\\]") }
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "]"):
                text.append(byte)
                return
            case UInt8(ascii: "["):
                if accept(":") {
                    try translateClass()
                } else if rest.first == UInt8(ascii: "=") || rest.first == UInt8(ascii: ".") {
                    throw Self.unsupported("collating elements")
                } else {
                    append("\\[")
                }
            case UInt8(ascii: "\\"): try translateEscapeInBrackets()
            default: text.append(byte)
            }
        }
        throw Self.invalid("brackets [] not balanced")
    }

    private mutating func translateClass() throws(SQLError) {
        let name = String(decoding: rest.prefix { Self.isLetter($0) }, as: UTF8.self)
        guard let meaning = Self.classes[name] else { throw Self.invalid("invalid character class") }
        rest = rest.dropFirst(name.utf8.count)
        guard accept(":]") else { throw Self.invalid("invalid character class") }
        append(meaning)
    }

    private mutating func translateEscapeInBrackets() throws(SQLError) {
        guard let code = rest.popFirst() else { throw Self.invalid("invalid escape \\ sequence") }
        switch code {
        case UInt8(ascii: "w"): append("\\pL\\pN_")
        case UInt8(ascii: "s"): append("\\s\\v\\x{85}\\pZ")
        case UInt8(ascii: "d"): append("\\d")
        default: try translateCharacter(code)
        }
    }
}
