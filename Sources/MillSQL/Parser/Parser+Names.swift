import MillBase

/// Identifiers and constants.
extension Parser {
    /// The text of a word or quoted identifier.
    private func name(of token: Token) throws(SQLError) -> String {
        let range = Int(token.start)..<Int(token.end)
        let text: String
        switch token.kind {
        case .word: return TokenText.folded(bytes[range], dialect.folding)
        case .quotedIdentifier: text = String(decoding: TokenText.unquoted(bytes, range), as: UTF8.self)
        default: text = try TokenText.unicodeText(bytes, range)
        }
        guard text.utf8.count <= Limits.identifierBytesMax else {
            throw SQLError(.nameTooLong, "identifier is longer than \(Limits.identifierBytesMax) bytes", at: token.span)
        }
        return text
    }

    private mutating func takeIdentifier() throws(SQLError) -> Identifier {
        let token = token
        let name = try name(of: token)
        advance()
        return Identifier(name, NodeSpan(token.span))
    }

    /// A name of a column, table or the like: anything but the reserved words and those that name functions.
    static func isColumnName(_ token: Token) -> Bool {
        guard token.kind == .word, let keyword = token.keyword else { return isLabel(token) }
        switch keyword.category {
        case .columnName, .unreserved: return true
        case .reserved, .typeOrFunction: return false
        }
    }

    /// A name of a function or type.
    static func isFunctionName(_ token: Token) -> Bool {
        guard token.kind == .word, let keyword = token.keyword else { return isLabel(token) }
        switch keyword.category {
        case .typeOrFunction, .unreserved: return true
        case .reserved, .columnName: return false
        }
    }

    /// Any word, as after AS or a dot.
    static func isLabel(_ token: Token) -> Bool {
        switch token.kind {
        case .word, .quotedIdentifier, .unicodeIdentifier: true
        default: false
        }
    }

    mutating func parseIdentifier() throws(SQLError) -> Identifier {
        guard Self.isColumnName(token) else { throw syntaxError() }
        return try takeIdentifier()
    }

    mutating func parseLabel() throws(SQLError) -> Identifier {
        guard Self.isLabel(token) else { throw syntaxError() }
        return try takeIdentifier()
    }

    /// `a`, `a.b`, `a.b.c`.
    mutating func parseObjectName() throws(SQLError) -> ObjectName {
        guard Self.isColumnName(token) else { throw syntaxError() }
        return try parseDottedName()
    }

    /// A dotted name that begins with any word; the caller has checked the first.
    mutating func parseDottedName() throws(SQLError) -> ObjectName {
        let start = start
        var parts = [try parseLabel()]
        while kind == .dot, Self.isLabel(ahead(1)) {
            advance()
            parts.append(try takeIdentifier())
        }
        return ObjectName(parts, span(from: start))
    }

    mutating func parseColumnList() throws(SQLError) -> [Identifier] {
        try parenthesized { parser throws(SQLError) in try parser.parseIdentifier() }
    }

    mutating func parseOptionalColumnList() throws(SQLError) -> [Identifier] {
        kind == .leftParenthesis ? try parseColumnList() : []
    }

    var isString: Bool { Self.isString(token) }

    static func isString(_ token: Token) -> Bool {
        switch token.kind {
        case .string, .escapeString, .unicodeString, .dollarString: true
        default: false
        }
    }

    mutating func parseString() throws(SQLError) -> String {
        let token = token
        let range = Int(token.start)..<Int(token.end)
        let text: String
        switch token.kind {
        case .string: text = TokenText.string(bytes, range)
        case .escapeString: text = try TokenText.escapeString(bytes, range)
        case .unicodeString: text = try TokenText.unicodeText(bytes, range)
        case .dollarString: text = TokenText.dollarString(bytes, range)
        default: throw syntaxError(expecting: "a string")
        }
        advance()
        return text
    }

    /// The digits of B'' or X''.
    mutating func parseBits() throws(SQLError) -> String {
        let token = token
        let digits = TokenText.unquoted(bytes, (Int(token.start) + 1)..<Int(token.end))
        let isHex = token.kind == .hexBits
        if let bad = digits.first(where: { digit in isHex ? digit.hexValue == nil : digit != 0x30 && digit != 0x31 }) {
            let shown = String(decoding: [bad], as: UTF8.self)
            throw SQLError(
                .invalidTextRepresentation, "\"\(shown)\" is not a valid \(isHex ? "hexadecimal" : "binary") digit", at: token.span)
        }
        advance()
        return String(decoding: digits, as: UTF8.self)
    }

    mutating func parseNumber() throws(SQLError) -> String {
        let token = token
        guard token.kind == .integer || token.kind == .decimal else { throw syntaxError(expecting: "a number") }
        let text = try TokenText.number(bytes, Int(token.start)..<Int(token.end))
        advance()
        return text
    }

    /// A number that may have a sign.
    mutating func parseSignedNumber() throws(SQLError) -> String {
        if acceptSymbol("-") { return "-" + (try parseNumber()) }
        _ = acceptSymbol("+")
        return try parseNumber()
    }

    /// A plain integer of the grammar itself: a precision, an array bound, a job number.
    mutating func parseInteger() throws(SQLError) -> Int {
        let token = token
        guard token.kind == .integer else { throw syntaxError(expecting: "an integer") }
        guard let value = Int(try parseNumber()) else {
            throw SQLError(.numericValueOutOfRange, "integer \(text(of: token)) is out of range", at: token.span)
        }
        return value
    }

    mutating func parseSignedInteger() throws(SQLError) -> Int {
        if acceptSymbol("-") { return -(try parseInteger()) }
        _ = acceptSymbol("+")
        return try parseInteger()
    }
}
