/// Expressions, from the loosest binding to the tightest, in Jinja's order:
/// conditional, `or`, `and`, `not`, comparison, `+ -`, `~`, `* / // %`, `**`, sign, then filters and tests, which bind to
/// the operand before them.
extension TemplateParser {
    mutating func parseExpression() throws(TemplateError) -> TemplateExpression {
        try enter()
        var result = try parseOr()
        while true {
            let start = line
            guard take(.name("if")) else { break }
            try link()
            let condition = try parseOr()
            let otherwise: TemplateExpression? = take(.name("else")) ? try parseExpression() : nil
            result = .conditional(result, condition: condition, otherwise: otherwise, line: start)
        }
        leave()
        return result
    }

    /// An expression, or several with commas between, which make a list.
    mutating func parseTuple() throws(TemplateError) -> TemplateExpression {
        let first = try parseExpression()
        guard case .sign(",") = token else { return first }
        var items = [first]
        while take(.sign(",")) {
            guard token != .blockEnd, token != .printEnd else { break }
            items.append(try parseExpression())
        }
        return .list(items)
    }

    mutating func parseOr() throws(TemplateError) -> TemplateExpression {
        var left = try parseAnd()
        while take(.name("or")) {
            try link()
            left = .or(left, try parseAnd())
        }
        return left
    }

    private mutating func parseAnd() throws(TemplateError) -> TemplateExpression {
        var left = try parseNot()
        while take(.name("and")) {
            try link()
            left = .and(left, try parseNot())
        }
        return left
    }

    private mutating func parseNot() throws(TemplateError) -> TemplateExpression {
        guard case .name("not") = token else { return try parseComparison() }
        try enter()
        advance()
        let operand = try parseNot()
        leave()
        return .not(operand)
    }

    private mutating func parseComparison() throws(TemplateError) -> TemplateExpression {
        let start = line
        let first = try parseSum()
        var rest: [(TemplateExpression.ComparisonOperator, TemplateExpression)] = []
        while let comparison = takeComparison() { rest.append((comparison, try parseSum())) }
        return rest.isEmpty ? first : .comparison(first, rest, line: start)
    }

    private mutating func takeComparison() -> TemplateExpression.ComparisonOperator? {
        switch token {
        case .sign(let sign):
            guard let comparison = TemplateExpression.ComparisonOperator(rawValue: sign) else { return nil }
            advance()
            return comparison
        case .name("in"):
            advance()
            return .contained
        case .name("not") where following == .name("in"):
            advance()
            advance()
            return .notContained
        default: return nil
        }
    }

    private mutating func parseSum() throws(TemplateError) -> TemplateExpression {
        var left = try parseConcatenation()
        while case .sign(let sign) = token, sign == "+" || sign == "-" {
            left = try parseBinary(left, sign) { (parser) throws(TemplateError) in try parser.parseConcatenation() }
        }
        return left
    }

    private mutating func parseConcatenation() throws(TemplateError) -> TemplateExpression {
        var left = try parseProduct()
        while case .sign("~") = token {
            left = try parseBinary(left, "~") { (parser) throws(TemplateError) in try parser.parseProduct() }
        }
        return left
    }

    private mutating func parseProduct() throws(TemplateError) -> TemplateExpression {
        var left = try parsePower()
        while case .sign(let sign) = token, ["*", "/", "//", "%"].contains(sign) {
            left = try parseBinary(left, sign) { (parser) throws(TemplateError) in try parser.parsePower() }
        }
        return left
    }

    private mutating func parsePower() throws(TemplateError) -> TemplateExpression {
        var left = try parseSigned(withFilters: true)
        while case .sign("**") = token {
            left = try parseBinary(left, "**") { (parser) throws(TemplateError) in try parser.parseSigned(withFilters: true) }
        }
        return left
    }

    private mutating func parseBinary(
        _ left: TemplateExpression, _ sign: String, _ operand: (inout TemplateParser) throws(TemplateError) -> TemplateExpression
    ) throws(TemplateError) -> TemplateExpression {
        let start = line
        try link()
        guard let operation = TemplateExpression.BinaryOperator(rawValue: sign) else { throw error("unexpected \(sign)") }
        advance()
        return .binary(operation, left, try operand(&self), line: start)
    }

    /// A sign binds tighter than a filter: `-1 | abs` is `(-1) | abs`.
    private mutating func parseSigned(withFilters: Bool) throws(TemplateError) -> TemplateExpression {
        let start = line
        var result: TemplateExpression
        if case .sign(let sign) = token, sign == "-" || sign == "+" {
            try enter()
            advance()
            let operand = try parseSigned(withFilters: false)
            result = sign == "-" ? .negate(operand, line: start) : operand
            leave()
        } else {
            result = try parsePrimary()
        }
        result = try parsePostfix(result)
        return withFilters ? try parseFiltersAndTests(result) : result
    }

    private mutating func parsePrimary() throws(TemplateError) -> TemplateExpression {
        let start = line
        switch token {
        case .name(let name):
            advance()
            switch name {
            case "true", "True": return .literal(.bool(true))
            case "false", "False": return .literal(.bool(false))
            case "none", "None": return .literal(.none)
            case "and", "or", "not", "in", "is", "if", "else": throw error("expected a value, found \(name)")
            default: return .variable(name, line: start)
            }
        case .string(var value):
            advance()
            while case .string(let more) = token {
                value += more
                advance()
            }
            return .literal(.string(value))
        case .int(let value):
            advance()
            return .literal(.int(value))
        case .float(let value):
            advance()
            return .literal(.float(value))
        case .sign("("):
            advance()
            return try parseParenthesised()
        case .sign("["):
            advance()
            return .list(try parseItems(until: "]"))
        case .sign("{"):
            advance()
            return try parseMap(start)
        default: throw error("expected a value, found \(token.shown)")
        }
    }

    /// `(a)` is `a`; `()`, `(a,)` and `(a, b)` are lists.
    private mutating func parseParenthesised() throws(TemplateError) -> TemplateExpression {
        if take(.sign(")")) { return .list([]) }
        let first = try parseExpression()
        if take(.sign(")")) { return first }
        try expect(.sign(","))
        return .list([first] + (try parseItems(until: ")")))
    }

    private mutating func parseItems(until close: String) throws(TemplateError) -> [TemplateExpression] {
        var items: [TemplateExpression] = []
        while !take(.sign(close)) {
            items.append(try parseExpression())
            if take(.sign(close)) { break }
            try expect(.sign(","))
        }
        return items
    }

    private mutating func parseMap(_ start: Int) throws(TemplateError) -> TemplateExpression {
        var entries: [(key: TemplateExpression, value: TemplateExpression)] = []
        while !take(.sign("}")) {
            let key = try parseExpression()
            try expect(.sign(":"))
            entries.append((key, try parseExpression()))
            if take(.sign("}")) { break }
            try expect(.sign(","))
        }
        return .map(entries, line: start)
    }

    private mutating func parsePostfix(_ base: TemplateExpression) throws(TemplateError) -> TemplateExpression {
        var result = base
        while case .sign(let sign) = token, [".", "[", "("].contains(sign) {
            let start = line
            try link()
            switch sign {
            case ".":
                advance()
                if case .int(let index) = token {
                    advance()
                    result = .item(result, .literal(.int(index)), line: start)
                } else {
                    result = .attribute(result, try expectName(), line: start)
                }
            case "[":
                advance()
                result = try parseSubscript(result, start)
            default: result = .call(result, try parseArguments(), line: start)
            }
        }
        return result
    }

    private mutating func parseSubscript(_ base: TemplateExpression, _ start: Int) throws(TemplateError) -> TemplateExpression {
        let from: TemplateExpression? = token == .sign(":") ? nil : try parseExpression()
        if let from, take(.sign("]")) { return .item(base, from, line: start) }
        try expect(.sign(":"))
        let to: TemplateExpression? = token == .sign("]") ? nil : try parseExpression()
        try expect(.sign("]"))
        return .slice(base, from: from, to: to, line: start)
    }

    private mutating func parseArguments() throws(TemplateError) -> TemplateExpression.Arguments {
        try expect(.sign("("))
        var arguments = TemplateExpression.Arguments()
        while !take(.sign(")")) {
            if case .name(let name) = token, following == .sign("=") {
                advance()
                advance()
                arguments.named.append((name, try parseExpression()))
            } else {
                guard arguments.named.isEmpty else { throw error("a positional argument follows a named one") }
                arguments.positional.append(try parseExpression())
            }
            if take(.sign(")")) { break }
            try expect(.sign(","))
        }
        return arguments
    }

    private mutating func parseFiltersAndTests(_ base: TemplateExpression) throws(TemplateError) -> TemplateExpression {
        var result = base
        while true {
            let start = line
            guard token == .sign("|") || token == .name("is") || token == .sign("(") else { return result }
            try link()
            if take(.sign("|")) {
                let filter = try expectName()
                let arguments = token == .sign("(") ? try parseArguments() : TemplateExpression.Arguments()
                result = .filter(result, filter, arguments, line: start)
            } else if take(.name("is")) {
                result = try parseTest(result, start)
            } else {
                result = .call(result, try parseArguments(), line: start)
            }
        }
    }

    /// `x is [not] test`, whose argument may stand without parentheses: `x is divisibleby 3`.
    private mutating func parseTest(_ base: TemplateExpression, _ start: Int) throws(TemplateError) -> TemplateExpression {
        let negated = take(.name("not"))
        let test: String
        if case .sign(let sign) = token, ["==", "!=", "<", "<=", ">", ">="].contains(sign) {
            throw error("expected the name of a test, found \(sign)")
        } else {
            test = try expectName()
        }
        var arguments: [TemplateExpression] = []
        switch token {
        case .sign("("):
            let parsed = try parseArguments()
            guard parsed.named.isEmpty else { throw error("test \"\(test)\" takes no named arguments") }
            arguments = parsed.positional
        case .int, .float, .string, .sign("["), .sign("{"):
            arguments = [try parsePostfix(try parsePrimary())]
        case .name(let name) where !["else", "or", "and", "if", "is", "in", "not", "recursive"].contains(name):
            arguments = [try parsePostfix(try parsePrimary())]
        default: break
        }
        let result: TemplateExpression = .test(base, test, arguments, line: start)
        return negated ? .not(result) : result
    }
}
