/// Builds a template's statements from its tokens; expressions are in `TemplateParser+Expression.swift`.
///
/// Nesting of blocks and of expressions is bounded together, and so is the length of a chain such as `a + b + c` or
/// `a.b.c`, whose tree is as high as it is long: no template can exhaust the stack of whoever parses, walks or frees it.
struct TemplateParser {
    /// Blocks and expressions inside one another at most.
    static let nestingMax = 50
    /// Operators, filters and attributes in one tag at most.
    static let linksMax = 200

    let name: String
    private let tokens: [(token: TemplateToken, line: Int)]
    private var at = 0
    private var nesting = 0
    private var links = 0

    static func parse(_ text: String, name: String) throws(TemplateError) -> [TemplateNode] {
        var parser = TemplateParser(name: name, tokens: try TemplateLexer.tokens(of: text, name: name))
        let (nodes, stop) = try parser.parseBody(until: [], opened: nil)
        precondition(stop == nil, "only a named stop ends a body early")
        return nodes
    }

    private init(name: String, tokens: [(token: TemplateToken, line: Int)]) {
        self.name = name
        self.tokens = tokens
    }

    var token: TemplateToken { tokens[at].token }
    var line: Int { tokens[at].line }
    /// The token after the next; `.end` past the end.
    var following: TemplateToken { at + 1 < tokens.count ? tokens[at + 1].token : .end }

    mutating func advance() { at = min(at + 1, tokens.count - 1) }

    /// Takes the token if it is this one.
    mutating func take(_ wanted: TemplateToken) -> Bool {
        guard token == wanted else { return false }
        advance()
        return true
    }

    mutating func expect(_ wanted: TemplateToken) throws(TemplateError) {
        guard take(wanted) else { throw error("expected \(wanted.shown), found \(token.shown)") }
    }

    mutating func expectName() throws(TemplateError) -> String {
        guard case .name(let text) = token else { throw error("expected a name, found \(token.shown)") }
        advance()
        return text
    }

    mutating func enter() throws(TemplateError) {
        nesting += 1
        guard nesting <= Self.nestingMax else {
            throw TemplateError(.limit("template nests deeper than \(Self.nestingMax) levels"), name: name, line: line)
        }
    }

    mutating func leave() { nesting -= 1 }

    /// Counts what makes the tag's tree one higher.
    mutating func link() throws(TemplateError) {
        links += 1
        guard links <= Self.linksMax else {
            throw TemplateError(.limit("expression has more than \(Self.linksMax) operators"), name: name, line: line)
        }
    }

    func error(_ message: String) -> TemplateError { TemplateError(.syntax(message), name: name, line: line) }

    /// Statements up to a block whose keyword is in `stops`; that block's keyword is taken, the rest of it is not.
    private mutating func parseBody(until stops: Set<String>, opened: (keyword: String, line: Int)?) throws(TemplateError) -> (
        [TemplateNode], String?
    ) {
        try enter()
        var nodes: [TemplateNode] = []
        while true {
            switch token {
            case .end:
                if let opened {
                    throw TemplateError(.syntax("\(opened.keyword) is not closed by end\(opened.keyword)"), name: name, line: opened.line)
                }
                leave()
                return (nodes, nil)
            case .text(let text):
                nodes.append(.text(text))
                advance()
            case .printBegin:
                let start = line
                links = 0
                advance()
                nodes.append(.print(try parseExpression(), line: start))
                try expect(.printEnd)
            case .blockBegin:
                links = 0
                advance()
                guard case .name(let keyword) = token else { throw error("expected a statement, found \(token.shown)") }
                if stops.contains(keyword) {
                    advance()
                    leave()
                    return (nodes, keyword)
                }
                nodes.append(try parseStatement(keyword))
            default: throw error("unexpected \(token.shown)")
            }
        }
    }

    private mutating func parseStatement(_ keyword: String) throws(TemplateError) -> TemplateNode {
        let start = line
        switch keyword {
        case "if": return try parseIf(start)
        case "for": return try parseFor(start)
        case "set": return try parseSet(start)
        case "elif", "else", "endif", "endfor", "endset", "endraw": throw error("\(keyword) closes nothing")
        case "block", "extends", "include", "import", "from", "macro", "call", "filter", "with", "autoescape", "do", "break", "continue":
            throw TemplateError(.unsupported("statement \"\(keyword)\" is not supported in templates"), name: name, line: start)
        default: throw error("unknown statement \"\(keyword)\"")
        }
    }

    private mutating func parseIf(_ start: Int) throws(TemplateError) -> TemplateNode {
        advance()
        var branches: [(condition: TemplateExpression?, body: [TemplateNode])] = []
        var condition: TemplateExpression? = try parseExpression()
        try expect(.blockEnd)
        while true {
            let stops: Set = condition == nil ? ["endif"] : ["elif", "else", "endif"]
            let (body, stop) = try parseBody(until: stops, opened: ("if", start))
            branches.append((condition, body))
            switch stop {
            case "elif": condition = try parseExpression()
            case "else": condition = nil
            default:
                try expect(.blockEnd)
                return .branches(branches)
            }
            try expect(.blockEnd)
        }
    }

    private mutating func parseFor(_ start: Int) throws(TemplateError) -> TemplateNode {
        advance()
        var names = [try expectName()]
        while take(.sign(",")) { names.append(try expectName()) }
        guard take(.name("in")) else { throw error("expected in, found \(token.shown)") }
        let over = try parseOr()
        let filter: TemplateExpression? = take(.name("if")) ? try parseExpression() : nil
        if case .name("recursive") = token {
            throw TemplateError(.unsupported("recursive loops are not supported in templates"), name: name, line: line)
        }
        try expect(.blockEnd)
        let (body, stop) = try parseBody(until: ["else", "endfor"], opened: ("for", start))
        try expect(.blockEnd)
        var otherwise: [TemplateNode] = []
        if stop == "else" {
            (otherwise, _) = try parseBody(until: ["endfor"], opened: ("for", start))
            try expect(.blockEnd)
        }
        return .loop(TemplateNode.Loop(names: names, over: over, filter: filter, body: body, otherwise: otherwise, line: start))
    }

    private mutating func parseSet(_ start: Int) throws(TemplateError) -> TemplateNode {
        advance()
        var names = [try expectName()]
        while take(.sign(",")) { names.append(try expectName()) }
        if take(.sign("=")) {
            let value = try parseTuple()
            try expect(.blockEnd)
            return .set(names, value, line: start)
        }
        guard names.count == 1 else { throw error("expected =, found \(token.shown)") }
        try expect(.blockEnd)
        let (body, _) = try parseBody(until: ["endset"], opened: ("set", start))
        try expect(.blockEnd)
        return .capture(names[0], body)
    }
}
