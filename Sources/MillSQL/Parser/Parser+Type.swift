import MillBase

/// Type names.
extension Parser {
    /// A type with its modifiers and array brackets.
    mutating func parseTypeName() throws(SQLError) -> TypeName {
        let start = start
        let outer = try enter()
        var type = TypeName(try parseElementType(), span(from: start))
        while true {
            if accept(.leftBracket) {
                // A size is allowed and means nothing, as in PostgreSQL.
                if kind == .integer { _ = try parseInteger() }
                try expect(.rightBracket)
            } else if isNext(.array) {
                advance()
                if accept(.leftBracket) {
                    if kind == .integer { _ = try parseInteger() }
                    try expect(.rightBracket)
                }
            } else {
                break
            }
            try grow()
            type = TypeName(.array(type), span(from: start))
        }
        try leave(outer)
        return type
    }

    private mutating func parseElementType() throws(SQLError) -> TypeName.Kind {
        switch keyword {
        case .array: return try parseBracketedArray()
        case .struct where Self.opensAngle(self, 1), .row where Self.opensAngle(self, 1): return try parseStruct()
        case .map where Self.opensAngle(self, 1): return try parseMap(angled: true)
        case .map where ahead(1).kind == .leftParenthesis: return try parseMap(angled: false)
        case .interval:
            advance()
            if let fields = try parseIntervalFields() { return .interval(fields) }
            return .named(ObjectName("interval", span(from: previousStart)), modifiers: [])
        default: return try parseSimpleType()
        }
    }

    private static func opensAngle(_ parser: Parser, _ offset: Int) -> Bool {
        let token = parser.ahead(offset)
        return token.kind == .symbol && parser.bytes[Int(token.start)] == UInt8(ascii: "<")
    }

    private var previousStart: Int { index == 0 ? 0 : Int(tokens[index - 1].start) }

    /// Types without brackets, the ones that may stand in front of a string constant.
    mutating func parseSimpleType() throws(SQLError) -> TypeName.Kind {
        let start = start
        guard let keyword else { return try parseNamedType() }
        switch keyword {
        case .double where ahead(1).keyword == .precision:
            advance()
            advance()
            return .named(ObjectName("double precision", span(from: start)), modifiers: [])
        case .character, .char, .nchar, .national, .varchar:
            return try parseCharacterType(keyword)
        case .bit:
            advance()
            let name = accept(.varying) ? "varbit" : "bit"
            let nameSpan = span(from: start)
            return .named(ObjectName(name, nameSpan), modifiers: try parseModifiers())
        case .timestamp, .time:
            advance()
            let modifiers = try parseModifiers()
            var name = keyword.rawValue
            if accept(.with, .time, .zone) {
                name += "tz"
            } else {
                _ = accept(.without, .time, .zone)
            }
            return .named(ObjectName(name, span(from: start)), modifiers: modifiers)
        default: return try parseNamedType()
        }
    }

    private mutating func parseCharacterType(_ keyword: Keyword) throws(SQLError) -> TypeName.Kind {
        let start = start
        advance()
        if keyword == .national { guard accept(.character) || accept(.char) else { throw syntaxError(expecting: "CHARACTER") } }
        let isVarying = keyword == .varchar || accept(.varying)
        let nameSpan = span(from: start)
        return .named(ObjectName(isVarying ? "varchar" : "char", nameSpan), modifiers: try parseModifiers())
    }

    private mutating func parseNamedType() throws(SQLError) -> TypeName.Kind {
        guard Self.isFunctionName(token) || keyword?.isTypeWord == true else { throw syntaxError(expecting: "a type") }
        let name = try parseDottedName()
        return .named(name, modifiers: try parseModifiers())
    }

    /// `(10, 2)`; empty if absent.
    mutating func parseModifiers() throws(SQLError) -> [Int] {
        guard kind == .leftParenthesis else { return [] }
        return try parenthesized { parser throws(SQLError) in try parser.parseSignedInteger() }
    }

    private mutating func parseBracketedArray() throws(SQLError) -> TypeName.Kind {
        advance()
        try expectAngle("<")
        let element = try parseTypeName()
        try expectAngle(">")
        return .array(element)
    }

    private mutating func parseStruct() throws(SQLError) -> TypeName.Kind {
        advance()
        try expectAngle("<")
        let fields = try commaSeparated { parser throws(SQLError) in
            let name = try parser.parseLabel()
            return StructField(name: name, type: try parser.parseTypeName())
        }
        try expectAngle(">")
        return .structure(fields)
    }

    private mutating func parseMap(angled: Bool) throws(SQLError) -> TypeName.Kind {
        advance()
        if angled { try expectAngle("<") } else { try expect(.leftParenthesis) }
        let key = try parseTypeName()
        try expect(.comma)
        let value = try parseTypeName()
        if angled { try expectAngle(">") } else { try expect(.rightParenthesis) }
        return .map(key: key, value: value)
    }

    /// One angle bracket. The lexer takes `>>` as one operator, so its first half is split off here.
    private mutating func expectAngle(_ bracket: StaticString) throws(SQLError) {
        if acceptSymbol(bracket) { return }
        let token = token
        guard token.kind == .symbol, bytes[Int(token.start)] == bracket.utf8Start[0] else {
            throw syntaxError(expecting: "\(bracket)")
        }
        tokens[index].start += 1
    }

    // MARK: Intervals

    /// `(3)`, `DAY`, `DAY TO SECOND(3)`; nil if none is there.
    mutating func parseIntervalFields() throws(SQLError) -> IntervalFields? {
        if accept(.leftParenthesis) {
            let precision = try parseInteger()
            try expect(.rightParenthesis)
            return IntervalFields(from: nil, to: nil, precision: precision)
        }
        guard let from = acceptIntervalUnit() else { return nil }
        var fields = IntervalFields(from: from)
        if isNext(.to), Self.intervalUnit(ahead(1)) != nil {
            advance()
            fields.to = acceptIntervalUnit()
        }
        if fields.to ?? from == .second, kind == .leftParenthesis {
            advance()
            fields.precision = try parseInteger()
            try expect(.rightParenthesis)
        }
        return fields
    }

    private static func intervalUnit(_ token: Token) -> IntervalFields.Unit? {
        token.keyword.flatMap { IntervalFields.Unit(rawValue: $0.rawValue) }
    }

    private mutating func acceptIntervalUnit() -> IntervalFields.Unit? {
        guard let unit = Self.intervalUnit(token) else { return nil }
        advance()
        return unit
    }
}

extension Keyword {
    /// A word that may not name a function but does name a type.
    var isTypeWord: Bool {
        switch self {
        case .bigint, .bit, .boolean, .char, .character, .dec, .decimal, .float, .int, .integer, .interval, .national, .nchar, .numeric,
            .real, .smallint, .time, .timestamp, .varchar:
            true
        default: false
        }
    }
}
