import MillBase

/// WITH lists, and FORMAT ... ENCODE ....
extension Parser {
    /// `(key = value, ...)`; an empty list is allowed.
    mutating func parseOptionList() throws(SQLError) -> [WithOption] {
        try expect(.leftParenthesis)
        var options: [WithOption] = []
        if kind != .rightParenthesis {
            repeat {
                // A comma behind the last option is common in written scripts, and harmless.
                if kind == .rightParenthesis { break }
                options.append(try parseOption())
            } while accept(.comma)
        }
        try expect(.rightParenthesis)
        return options
    }

    private mutating func parseOption() throws(SQLError) -> WithOption {
        let start = start
        var option = try parseOptionKey()
        if acceptSymbol("=") {
            option.value = try parseOptionValue()
        } else if kind != .comma, kind != .rightParenthesis {
            // `COPY ... WITH (FORMAT csv)` has no sign.
            option.value = try parseOptionValue()
        }
        option.span = span(from: start)
        return option
    }

    /// `connector`, `properties.bootstrap.server`, `monitor-interval`, `"a.b"`, `'a.b'`.
    private mutating func parseOptionKey() throws(SQLError) -> WithOption {
        let start = start
        if isString {
            return WithOption(key: try parseString(), isKeyQuoted: true, value: nil, span: span(from: start))
        }
        var isQuoted = kind != .word
        var key = try parseLabel().name
        while true {
            if accept(.dot) {
                isQuoted = isQuoted || kind != .word
                key += "." + (try parseLabel().name)
            } else if isSymbol("-"), Self.isLabel(ahead(1)) {
                advance()
                isQuoted = true
                key += "-" + (try parseLabel().name)
            } else {
                break
            }
        }
        return WithOption(key: key, isKeyQuoted: isQuoted, value: nil, span: span(from: start))
    }

    /// A string, a number with its sign, a truth value, a word or a secret.
    mutating func parseOptionValue() throws(SQLError) -> WithOption.Value {
        if isString { return .string(try parseString()) }
        switch kind {
        case .integer, .decimal, .symbol: return .number(try parseSignedNumber())
        default: break
        }
        if accept(.true) { return .boolean(true) }
        if accept(.false) { return .boolean(false) }
        if isNext(.secret), Self.isLabel(ahead(1)) {
            advance()
            let name = try parseObjectName()
            return .secret(name, asFile: accept(.as, .file))
        }
        return .word(try parseLabel().name)
    }

    /// `FORMAT x ENCODE y (...) [KEY ENCODE z (...)]`.
    mutating func parseFormat() throws(SQLError) -> FormatClause {
        let start = start
        try expect(.format)
        let format = try parseUpperWord()
        try expect(.encode)
        let encode = try parseEncoding()
        var keyEncode: FormatClause.Encoding?
        if accept(.key, .encode) { keyEncode = try parseEncoding() }
        return FormatClause(format: format, encode: encode, keyEncode: keyEncode, span: span(from: start))
    }

    private mutating func parseEncoding() throws(SQLError) -> FormatClause.Encoding {
        let name = try parseUpperWord()
        return FormatClause.Encoding(name: name, options: kind == .leftParenthesis ? try parseOptionList() : [])
    }

    mutating func parseUpperWord() throws(SQLError) -> Identifier {
        let word = try parseLabel()
        return Identifier(word.name.uppercased(), word.span)
    }
}
