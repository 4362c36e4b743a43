/// Cuts a template into text, tags and the tokens inside tags.
///
/// Fed the whole file; the parser consumes the tokens. The rules are those of Jinja2 as Ansible's template module sets
/// it: the first newline after `%}` and `#}` is dropped (`trim_blocks`), the file's last newline stays, `-` beside a
/// tag's border drops all white space on that side, `+` keeps what would be dropped. `{% raw %}` copies everything up to
/// `{% endraw %}`. CR LF and CR become LF.
///
/// Works on Unicode scalars, as Python does: a combining mark never hides a delimiter.
struct TemplateLexer {
    private let name: String
    private let source: [Unicode.Scalar]
    private var at = 0
    private var line = 1
    private var tokens: [(token: TemplateToken, line: Int)] = []

    init(_ text: String, name: String) {
        self.name = name
        var scalars: [Unicode.Scalar] = []
        scalars.reserveCapacity(text.utf8.count)
        var afterReturn = false
        for scalar in text.unicodeScalars {
            if scalar == "\n", afterReturn {
                afterReturn = false
                continue
            }
            afterReturn = scalar == "\r"
            scalars.append(afterReturn ? "\n" : scalar)
        }
        source = scalars
    }

    /// All tokens with their lines; the last one is `.end`.
    static func tokens(of text: String, name: String) throws(TemplateError) -> [(token: TemplateToken, line: Int)] {
        var lexer = TemplateLexer(text, name: name)
        while try lexer.nextPiece() {}
        lexer.tokens.append((.end, lexer.line))
        return lexer.tokens
    }

    /// One run of text and the tag after it; false at the end.
    private mutating func nextPiece() throws(TemplateError) -> Bool {
        let start = at
        while at < source.count, !isTagBegin(at) { at += 1 }
        guard at < source.count else {
            emitText(start..<at, strippingEnd: false)
            return false
        }
        let kind = source[at + 1]
        let control = at + 2 < source.count ? source[at + 2] : " "
        emitText(start..<at, strippingEnd: control == "-")
        let tagLine = line
        at += 2
        if control == "-" || control == "+" { at += 1 }
        switch kind {
        case "#": try skipComment()
        case "{":
            tokens.append((.printBegin, tagLine))
            try lexTag(end: "}")
        default:
            if try !lexRaw() {
                tokens.append((.blockBegin, tagLine))
                try lexTag(end: "%")
            }
        }
        return true
    }

    private func isTagBegin(_ index: Int) -> Bool {
        guard source[index] == "{", index + 1 < source.count else { return false }
        return source[index + 1] == "{" || source[index + 1] == "%" || source[index + 1] == "#"
    }

    private mutating func emitText(_ range: Range<Int>, strippingEnd: Bool) {
        var end = range.upperBound
        if strippingEnd { while end > range.lowerBound, Self.isSpace(source[end - 1]) { end -= 1 } }
        if end > range.lowerBound {
            var text = String.UnicodeScalarView()
            text.append(contentsOf: source[range.lowerBound..<end])
            tokens.append((.text(String(text)), line))
        }
        line += source[range].count { $0 == "\n" }
    }

    private mutating func skipComment() throws(TemplateError) {
        let opening = line
        while at + 1 < source.count, source[at] != "#" || source[at + 1] != "}" { advance() }
        guard at + 1 < source.count else { throw error("comment is not closed", at: opening) }
        let control = source[at - 1]
        at += 2
        finishTag(control: control, trimsNewline: true)
    }

    /// Drops what the tag's end says: all white space for `-`, one newline for a block's or comment's plain end.
    private mutating func finishTag(control: Unicode.Scalar, trimsNewline: Bool) {
        if control == "-" {
            while at < source.count, Self.isSpace(source[at]) { advance() }
        } else if control != "+", trimsNewline, at < source.count, source[at] == "\n" {
            advance()
        }
    }

    /// `{% raw %}...{% endraw %}`, if the block just opened is one.
    private mutating func lexRaw() throws(TemplateError) -> Bool {
        guard let opened = wordTag("raw", from: at) else { return false }
        let opening = line
        line += source[at..<opened.end].count { $0 == "\n" }
        at = opened.end
        if opened.control == "-" { finishTag(control: "-", trimsNewline: false) }
        let start = at
        while at < source.count {
            if source[at] == "{", at + 1 < source.count, source[at + 1] == "%" {
                let control: Unicode.Scalar = at + 2 < source.count ? source[at + 2] : " "
                if let closed = wordTag("endraw", from: at + (control == "-" || control == "+" ? 3 : 2)) {
                    emitText(start..<at, strippingEnd: control == "-")
                    line += source[at..<closed.end].count { $0 == "\n" }
                    at = closed.end
                    finishTag(control: closed.control, trimsNewline: true)
                    return true
                }
            }
            at += 1
        }
        throw error("raw block is not closed by endraw", at: opening)
    }

    /// Where ` word %}` that starts at `index` ends, and the control sign before its `%}`.
    private func wordTag(_ word: String, from index: Int) -> (end: Int, control: Unicode.Scalar)? {
        var index = index
        while index < source.count, Self.isSpace(source[index]) { index += 1 }
        for scalar in word.unicodeScalars {
            guard index < source.count, source[index] == scalar else { return nil }
            index += 1
        }
        while index < source.count, Self.isSpace(source[index]) { index += 1 }
        var control: Unicode.Scalar = " "
        if index < source.count, source[index] == "-" || source[index] == "+" {
            control = source[index]
            index += 1
        }
        guard index + 1 < source.count, source[index] == "%", source[index + 1] == "}" else { return nil }
        return (index + 2, control)
    }

    /// The tokens up to the tag's end; brackets are balanced, so that `{{ {"a": {}} }}` ends where it should.
    private mutating func lexTag(end: Unicode.Scalar) throws(TemplateError) {
        let opening = line
        var open: [Unicode.Scalar] = []
        while at < source.count {
            let scalar = source[at]
            if Self.isSpace(scalar) {
                advance()
                continue
            }
            if open.isEmpty, let control = tagEnd(end) {
                tokens.append((end == "%" ? .blockEnd : .printEnd, line))
                at += control == " " ? 2 : 3
                finishTag(control: control, trimsNewline: end == "%")
                return
            }
            switch scalar {
            case "(", "[", "{":
                open.append(scalar == "(" ? ")" : scalar == "[" ? "]" : "}")
                try lexToken()
            case ")", "]", "}":
                guard open.popLast() == scalar else { throw error("\"\(scalar)\" closes nothing") }
                try lexToken()
            default: try lexToken()
            }
        }
        throw error(end == "%" ? "block is not closed by %}" : "expression is not closed by }}", at: opening)
    }

    /// The control sign of the tag's end that stands here, a space for none; nil if the tag goes on.
    private func tagEnd(_ end: Unicode.Scalar) -> Unicode.Scalar? {
        if source[at] == end, at + 1 < source.count, source[at + 1] == "}" { return " " }
        guard source[at] == "-" || (source[at] == "+" && end == "%"), at + 2 < source.count else { return nil }
        return source[at + 1] == end && source[at + 2] == "}" ? source[at] : nil
    }

    private mutating func lexToken() throws(TemplateError) {
        let scalar = source[at]
        if scalar == "'" || scalar == "\"" { return try lexString(quote: scalar) }
        if scalar.properties.isXIDStart || scalar == "_" {
            let start = at
            while at < source.count, source[at].properties.isXIDContinue { at += 1 }
            return tokens.append((.name(text(start..<at)), line))
        }
        if Self.isDigit(scalar) { return try lexNumber() }
        if at + 1 < source.count, ["==", "!=", "<=", ">=", "//", "**"].contains(text(at..<at + 2)) {
            tokens.append((.sign(text(at..<at + 2)), line))
            at += 2
            return
        }
        guard "+-*/%~|.,:()[]{}<>=".unicodeScalars.contains(scalar) else { throw error("unexpected character \"\(scalar)\"") }
        tokens.append((.sign(String(Character(scalar))), line))
        at += 1
    }

    private mutating func lexNumber() throws(TemplateError) {
        let start = at
        var isFloat = false
        if source[at] == "0", at + 2 < source.count, source[at + 1] == "x" || source[at + 1] == "X",
            source[at + 2].properties.isASCIIHexDigit
        {
            at += 2
            while at < source.count, source[at].properties.isASCIIHexDigit || source[at] == "_" { at += 1 }
            guard let value = Int(text(start + 2..<at).filter { $0 != "_" }, radix: 16) else { throw error("number is too large") }
            return tokens.append((.int(value), line))
        }
        func digits() { while at < source.count, Self.isDigit(source[at]) || source[at] == "_" { at += 1 } }
        digits()
        if at + 1 < source.count, source[at] == ".", Self.isDigit(source[at + 1]) {
            isFloat = true
            at += 1
            digits()
        }
        if at < source.count, source[at] == "e" || source[at] == "E" {
            let signed = at + 1 < source.count && (source[at + 1] == "+" || source[at + 1] == "-")
            let first = at + (signed ? 2 : 1)
            if first < source.count, Self.isDigit(source[first]) {
                isFloat = true
                at = first
                digits()
            }
        }
        let literal = text(start..<at).filter { $0 != "_" }
        if isFloat, let value = Double(literal) {
            tokens.append((.float(value), line))
        } else if let value = Int(literal) {
            tokens.append((.int(value), line))
        } else {
            throw error("number \(literal) is too large")
        }
    }

    private mutating func lexString(quote: Unicode.Scalar) throws(TemplateError) {
        let opening = line
        var value = String.UnicodeScalarView()
        at += 1
        while at < source.count, source[at] != quote {
            if source[at] == "\\", at + 1 < source.count {
                at += 1
                lexEscape(into: &value)
            } else {
                value.append(source[at])
                advance()
            }
        }
        guard at < source.count else { throw error("string is not closed", at: opening) }
        at += 1
        tokens.append((.string(String(value)), opening))
    }

    /// Python's escapes; an unknown one stays as it is written.
    private mutating func lexEscape(into value: inout String.UnicodeScalarView) {
        let scalar = source[at]
        let plain: [Unicode.Scalar: Unicode.Scalar] = [
            "n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", "\"": "\"", "a": "\u{7}", "b": "\u{8}", "f": "\u{c}", "v": "\u{b}",
        ]
        let digits = ["x": 2, "u": 4, "U": 8][String(Character(scalar))]
        if let digits, at + digits < source.count, let code = UInt32(text(at + 1..<at + 1 + digits), radix: 16),
            source[at + 1].properties.isASCIIHexDigit, let decoded = Unicode.Scalar(code)
        {
            value.append(decoded)
            at += 1 + digits
            return
        }
        if let replacement = plain[scalar] {
            value.append(replacement)
        } else if scalar != "\n" {
            value.append("\\")
            value.append(scalar)
        }
        advance()
    }

    private mutating func advance() {
        if source[at] == "\n" { line += 1 }
        at += 1
    }

    private func text(_ range: Range<Int>) -> String {
        var view = String.UnicodeScalarView()
        view.append(contentsOf: source[range])
        return String(view)
    }

    private func error(_ message: String, at line: Int? = nil) -> TemplateError {
        TemplateError(.syntax(message), name: name, line: line ?? self.line)
    }

    private static func isSpace(_ scalar: Unicode.Scalar) -> Bool { scalar.properties.isWhitespace }
    private static func isDigit(_ scalar: Unicode.Scalar) -> Bool { ("0"..."9").contains(scalar) }
}
