import MillBase

/// The tokens that have an inside: quotes, dollar quotes and numbers. Here only their ends are found and their form is
/// checked; `TokenText` decodes them.
extension Lexer {
    /// A string, closed by a quote that is not doubled. Another string after white space with a line break in it continues it.
    mutating func scanQuoted(_ kind: Token.Kind, from start: Int, openedBy length: Int) throws(SQLError) {
        let quote = UInt8(ascii: "'")
        position += length
        let isEscaped = kind == .escapeString
        while true {
            guard position < bytes.count else { throw unterminated(kind, from: start) }
            let byte = bytes[position]
            position += 1
            if byte == quote {
                if peek() == quote {
                    position += 1
                } else if let next = continuation() {
                    position = next + 1
                } else {
                    break
                }
            } else if isEscaped, byte == UInt8(ascii: "\\") {
                guard position < bytes.count else { throw unterminated(kind, from: start) }
                position += 1
            }
        }
        append(kind, from: start)
    }

    /// Where the next part of a string of several lines opens.
    private func continuation() -> Int? {
        var next = position
        var hasLineBreak = false
        while next < bytes.count, bytes[next].isBlank {
            hasLineBreak = hasLineBreak || bytes[next] == UInt8(ascii: "\n") || bytes[next] == UInt8(ascii: "\r")
            next += 1
        }
        return hasLineBreak && next < bytes.count && bytes[next] == UInt8(ascii: "'") ? next : nil
    }

    private func unterminated(_ kind: Token.Kind, from start: Int) -> SQLError {
        let what =
            switch kind {
            case .bits: "unterminated bit string literal"
            case .hexBits: "unterminated hexadecimal string literal"
            default: "unterminated quoted string"
            }
        return error(what, from: start, hint: "The quote that opens it is never closed.")
    }

    mutating func scanQuotedIdentifier(_ kind: Token.Kind, from start: Int, openedBy length: Int) throws(SQLError) {
        let quote = bytes[start + length - 1]
        position += length
        let contents = position
        while true {
            guard position < bytes.count else {
                throw error("unterminated quoted identifier", from: start, hint: "The quote that opens it is never closed.")
            }
            let byte = bytes[position]
            position += 1
            guard byte == quote else { continue }
            guard peek() == quote else { break }
            position += 1
        }
        guard position - 1 > contents else { throw error("zero-length delimited identifier", from: start) }
        guard position - contents <= 2 * Limits.identifierBytesMax else { throw identifierTooLong(from: start) }
        append(kind, from: start)
    }

    /// `$1`, `$$...$$` or `$tag$...$tag$`.
    mutating func scanDollar() throws(SQLError) {
        let start = position
        position += 1
        if peek().isDigit {
            while peek().isDigit { position += 1 }
            if peek().startsIdentifier {
                while peek().continuesIdentifier { position += 1 }
                throw error("trailing junk after parameter", from: start)
            }
            return append(.parameter, from: start)
        }
        if peek().startsIdentifier {
            while peek().startsIdentifier || peek().isDigit { position += 1 }
        }
        guard peek() == UInt8(ascii: "$") else {
            position = start + 1
            throw error("syntax error", from: start)
        }
        position += 1
        let tag = bytes[start..<position]
        // The tag can only begin at a dollar sign, and holds none inside, so the search never goes back.
        while position + tag.count <= bytes.count {
            guard bytes[position] == UInt8(ascii: "$") else {
                position += 1
                continue
            }
            if bytes[position..<position + tag.count] == tag {
                position += tag.count
                return append(.dollarString, from: start)
            }
            position += 1
        }
        position = bytes.count
        throw error("unterminated dollar-quoted string", from: start, hint: "It ends with the tag that opens it.")
    }

    mutating func scanNumber() throws(SQLError) {
        let start = position
        if peek() == UInt8(ascii: "0"), let radix = Self.radix(peek(1)) { return try scanRadixNumber(radix, from: start) }
        var kind = Token.Kind.integer
        skipDigits()
        if peek() == UInt8(ascii: "."), peek(1) != UInt8(ascii: ".") {
            kind = .decimal
            position += 1
            if peek().isDigit { skipDigits() }
        }
        if peek() | 0x20 == UInt8(ascii: "e") {
            let signed = peek(1) == UInt8(ascii: "+") || peek(1) == UInt8(ascii: "-")
            if peek(signed ? 2 : 1).isDigit {
                kind = .decimal
                position += signed ? 2 : 1
                skipDigits()
            }
        }
        try refuseJunk(from: start)
        append(kind, from: start)
    }

    /// Digits with single underscores between them.
    private mutating func skipDigits() {
        while peek().isDigit || (peek() == UInt8(ascii: "_") && peek(1).isDigit) { position += 1 }
    }

    private func refuseJunk(from start: Int) throws(SQLError) {
        guard peek().startsIdentifier else { return }
        var copy = self
        while copy.peek().continuesIdentifier { copy.position += 1 }
        throw copy.error("trailing junk after numeric literal", from: start)
    }

    static func radix(_ letter: UInt8) -> Int? {
        switch letter | 0x20 {
        case UInt8(ascii: "x"): 16
        case UInt8(ascii: "o"): 8
        case UInt8(ascii: "b"): 2
        default: nil
        }
    }

    private mutating func scanRadixNumber(_ radix: Int, from start: Int) throws(SQLError) {
        position += 2
        let digits = position
        while true {
            if let value = peek().hexValue, value < radix {
                position += 1
            } else if peek() == UInt8(ascii: "_"), let value = peek(1).hexValue, value < radix {
                position += 1
            } else {
                break
            }
        }
        guard position > digits else {
            let what = radix == 16 ? "hexadecimal" : radix == 8 ? "octal" : "binary"
            throw error("invalid \(what) integer", from: start)
        }
        try refuseJunk(from: start)
        append(.integer, from: start)
    }
}
