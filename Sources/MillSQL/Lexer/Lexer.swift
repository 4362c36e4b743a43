package import MillBase

/// Splits a text into tokens by PostgreSQL's lexical rules.
///
/// Feeds the parser. All tokens are found in one pass over the bytes, before parsing; a lexical error is kept as the last
/// token, so that a syntax error in front of it is the one reported, as in PostgreSQL. Every position is a byte.
/// Source: PostgreSQL's `scan.l` and the chapter "Lexical Structure".
package struct Lexer {
    /// Ends with `.endOfText` or `.invalid`.
    package private(set) var tokens: [Token] = []
    /// Set if and only if the last token is `.invalid`.
    package private(set) var failure: SQLError?

    let bytes: [UInt8]
    let dialect: Dialect
    var position = 0

    /// - Throws: 22021 where the bytes are not UTF-8 or hold a NUL, 54000 where there are too many.
    package init(_ bytes: [UInt8], dialect: Dialect = .postgres) throws(SQLError) {
        guard bytes.count <= Limits.statementBytesMax else {
            throw SQLError(.programLimitExceeded, "statement is longer than \(Limits.statementBytesMax) bytes")
        }
        self.bytes = bytes
        self.dialect = dialect
        try Self.validate(bytes)
        tokens.reserveCapacity(bytes.count / 4 + 1)
        do {
            while try scanToken() {}
            append(.endOfText, from: position)
        } catch {
            failure = error
            append(.invalid, from: error.span?.start ?? position)
        }
    }

    mutating func append(_ kind: Token.Kind, from start: Int, keyword: Keyword? = nil) {
        tokens.append(Token(kind: kind, keyword: keyword, start: UInt32(start), end: UInt32(position)))
    }

    /// The byte `offset` further on; 0, which no text holds, behind the end.
    @inline(__always)
    func peek(_ offset: Int = 0) -> UInt8 {
        position + offset < bytes.count ? bytes[position + offset] : 0
    }

    /// A lexical error as PostgreSQL words it, pointing at what was begun at `start`.
    func error(_ message: String, from start: Int, hint: String? = nil, state: SQLState = .syntaxError) -> SQLError {
        let shown = String(decoding: bytes[start..<min(position, bytes.count)], as: UTF8.self)
        return SQLError(state, "\(message) at or near \"\(shown)\"", hint: hint, at: SourceSpan(start, position))
    }

    private static func validate(_ bytes: [UInt8]) throws(SQLError) {
        if let nul = bytes.firstIndex(of: 0) {
            throw SQLError(
                .characterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\": 0x00", at: SourceSpan(nul, nul + 1))
        }
        guard String(validating: bytes, as: UTF8.self) == nil else { return }
        var start = 0
        var decoder = Unicode.UTF8.ForwardParser()
        var input = bytes.makeIterator()
        scan: while true {
            switch decoder.parseScalar(from: &input) {
            case .valid(let scalar): start += scalar.count
            case .error(let length):
                let shown = bytes[start..<min(start + max(length, 1), bytes.count)]
                    .map { "0x" + (($0 < 16) ? "0" : "") + String($0, radix: 16) }
                throw SQLError(
                    .characterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\": \(shown.joined(separator: " "))",
                    at: SourceSpan(start, min(start + max(length, 1), bytes.count)))
            case .emptyInput: break scan
            }
        }
    }

    // MARK: One token

    /// - Returns: false at the end of the text.
    private mutating func scanToken() throws(SQLError) -> Bool {
        try skipBlanks()
        guard position < bytes.count else { return false }
        let start = position
        let byte = bytes[position]
        switch byte {
        case UInt8(ascii: "("): single(.leftParenthesis)
        case UInt8(ascii: ")"): single(.rightParenthesis)
        case UInt8(ascii: "["): single(.leftBracket)
        case UInt8(ascii: "]"): single(.rightBracket)
        case UInt8(ascii: "{"): single(.leftBrace)
        case UInt8(ascii: "}"): single(.rightBrace)
        case UInt8(ascii: ","): single(.comma)
        case UInt8(ascii: ";"): single(.semicolon)
        case UInt8(ascii: "'"): try scanQuoted(.string, from: start, openedBy: 1)
        case UInt8(ascii: "\""): try scanQuotedIdentifier(.quotedIdentifier, from: start, openedBy: 1)
        case UInt8(ascii: "$"): try scanDollar()
        case UInt8(ascii: "0")...UInt8(ascii: "9"): try scanNumber()
        case UInt8(ascii: "."):
            if peek(1).isDigit {
                try scanNumber()
            } else if peek(1) == UInt8(ascii: ".") {
                position += 2
                append(.dotDot, from: start)
            } else {
                single(.dot)
            }
        case UInt8(ascii: ":"): scanColon()
        case UInt8(ascii: "`") where dialect.quotesWithBackticks: try scanQuotedIdentifier(.quotedIdentifier, from: start, openedBy: 1)
        default:
            if byte.startsIdentifier {
                try scanWord()
            } else if byte.isOperator {
                try scanOperator()
            } else {
                position += 1
                throw syntaxError(from: start)
            }
        }
        return true
    }

    private mutating func single(_ kind: Token.Kind) {
        position += 1
        append(kind, from: position - 1)
    }

    private func syntaxError(from start: Int) -> SQLError { error("syntax error", from: start) }

    private mutating func scanColon() {
        let start = position
        switch peek(1) {
        case UInt8(ascii: ":"):
            position += 2
            append(.doubleColon, from: start)
        case UInt8(ascii: "="):
            position += 2
            append(.colonEquals, from: start)
        default:
            single(.colon)
        }
    }

    /// White space, `--` comments and nested `/* */` comments.
    private mutating func skipBlanks() throws(SQLError) {
        while position < bytes.count {
            let byte = bytes[position]
            if byte.isBlank {
                position += 1
            } else if byte == UInt8(ascii: "-"), peek(1) == UInt8(ascii: "-") {
                while position < bytes.count, bytes[position] != UInt8(ascii: "\n"), bytes[position] != UInt8(ascii: "\r") { position += 1 }
            } else if byte == UInt8(ascii: "/"), peek(1) == UInt8(ascii: "*") {
                try skipBlockComment()
            } else {
                return
            }
        }
    }

    private mutating func skipBlockComment() throws(SQLError) {
        let start = position
        var open = 0
        repeat {
            guard position < bytes.count else { throw error("unterminated /* comment", from: start) }
            if bytes[position] == UInt8(ascii: "/"), peek(1) == UInt8(ascii: "*") {
                open += 1
                position += 2
            } else if bytes[position] == UInt8(ascii: "*"), peek(1) == UInt8(ascii: "/") {
                open -= 1
                position += 2
            } else {
                position += 1
            }
        } while open > 0
    }

    /// An identifier or keyword, or the letter in front of a quote.
    private mutating func scanWord() throws(SQLError) {
        let start = position
        let quote = UInt8(ascii: "'")
        switch bytes[start] {
        case UInt8(ascii: "e"), UInt8(ascii: "E"):
            if peek(1) == quote { return try scanQuoted(.escapeString, from: start, openedBy: 2) }
        case UInt8(ascii: "b"), UInt8(ascii: "B"):
            if peek(1) == quote { return try scanQuoted(.bits, from: start, openedBy: 2) }
        case UInt8(ascii: "x"), UInt8(ascii: "X"):
            if peek(1) == quote { return try scanQuoted(.hexBits, from: start, openedBy: 2) }
        case UInt8(ascii: "n"), UInt8(ascii: "N"):
            if peek(1) == quote {
                // A national string is a string: the letter is dropped.
                return try scanQuoted(.string, from: start + 1, openedBy: 2)
            }
        case UInt8(ascii: "u"), UInt8(ascii: "U"):
            if peek(1) == UInt8(ascii: "&") {
                if peek(2) == quote { return try scanQuoted(.unicodeString, from: start, openedBy: 3) }
                if peek(2) == UInt8(ascii: "\"") { return try scanQuotedIdentifier(.unicodeIdentifier, from: start, openedBy: 3) }
            }
        default: break
        }
        while position < bytes.count, bytes[position].continuesIdentifier { position += 1 }
        let length = position - start
        let keyword = length <= Self.keywordBytesMax ? Keyword.byText[TokenText.folded(bytes[start..<position], .lower)] : nil
        guard length <= Limits.identifierBytesMax else { throw identifierTooLong(from: start) }
        append(.word, from: start, keyword: keyword)
    }

    func identifierTooLong(from start: Int) -> SQLError {
        SQLError(
            .nameTooLong, "identifier is longer than \(Limits.identifierBytesMax) bytes", at: SourceSpan(start, position))
    }

    private static let keywordBytesMax = 24

    /// The longest run of operator characters that does not hold the start of a comment; a trailing `+` or `-` belongs to it only
    /// if the run also has a character that SQL's own operators lack.
    private mutating func scanOperator() throws(SQLError) {
        let start = position
        var end = position
        var isExotic = false
        while end < bytes.count, bytes[end].isOperator, !(dialect.quotesWithBackticks && bytes[end] == UInt8(ascii: "`")) {
            let next = end + 1 < bytes.count ? bytes[end + 1] : 0
            let opensComment =
                (bytes[end] == UInt8(ascii: "-") && next == UInt8(ascii: "-"))
                || (bytes[end] == UInt8(ascii: "/") && next == UInt8(ascii: "*"))
            if opensComment { break }
            isExotic = isExotic || bytes[end].isExoticOperator
            end += 1
        }
        if !isExotic {
            while end - start > 1, bytes[end - 1] == UInt8(ascii: "+") || bytes[end - 1] == UInt8(ascii: "-") { end -= 1 }
        }
        position = end
        guard end - start < 64 else { throw error("operator too long", from: start) }
        let isArrow = end - start == 2 && bytes[start] == UInt8(ascii: "=") && bytes[start + 1] == UInt8(ascii: ">")
        append(isArrow ? .arrow : .symbol, from: start)
    }
}

extension UInt8 {
    var isDigit: Bool { self &- UInt8(ascii: "0") < 10 }

    var isBlank: Bool { self == 32 || (self >= 9 && self <= 13) }

    var isLetter: Bool { (self | 0x20) &- UInt8(ascii: "a") < 26 }

    /// A letter, an underscore, or any byte of a character outside ASCII.
    var startsIdentifier: Bool { isLetter || self == UInt8(ascii: "_") || self >= 0x80 }

    var continuesIdentifier: Bool { startsIdentifier || isDigit || self == UInt8(ascii: "$") }

    var isOperator: Bool {
        switch self {
        case UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "*"), UInt8(ascii: "/"), UInt8(ascii: "<"), UInt8(ascii: ">"),
            UInt8(ascii: "="):
            true
        default: isExoticOperator
        }
    }

    /// An operator character that the SQL standard's own operators do not use.
    var isExoticOperator: Bool {
        switch self {
        case UInt8(ascii: "~"), UInt8(ascii: "!"), UInt8(ascii: "@"), UInt8(ascii: "#"), UInt8(ascii: "%"), UInt8(ascii: "^"),
            UInt8(ascii: "&"), UInt8(ascii: "|"), UInt8(ascii: "`"), UInt8(ascii: "?"):
            true
        default: false
        }
    }

    /// The value of a hexadecimal digit.
    var hexValue: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
