import MillBase
import MillColumnar
import MillExpr

/// A small reader of SQL expressions, enough for the cases of `postgres-15-expressions.txt`; the product's is MillBinder.
struct ExpressionReader {
    struct Unreadable: Error {}

    private enum Token: Equatable {
        case word(String)
        case string(String)
        case number(String)
        case symbol(String)
        case end
    }

    private var tokens: [Token] = []
    private var at = 0

    static func read(_ text: String) throws -> BoundExpression {
        var reader = try ExpressionReader(text)
        let expression = try reader.expression(0)
        guard reader.peek == .end else { throw Unreadable() }
        return expression.type == .unknown ? try Coercion.coerce(expression, to: .varchar) : expression
    }

    private init(_ text: String) throws {
        var rest = Substring(text)
        while let character = rest.first {
            if character == " " { rest.removeFirst(); continue }
            if character == "'" {
                rest.removeFirst()
                var value = ""
                while let next = rest.popFirst() {
                    if next == "'" { if rest.first == "'" { rest.removeFirst() } else { break } }
                    value.append(next)
                }
                tokens.append(.string(value))
            } else if character.isNumber {
                var value = rest.prefix { $0.isNumber || $0 == "." }
                rest = rest.dropFirst(value.count)
                if rest.first == "e" {
                    let exponent = rest.prefix { "e+-".contains($0) || $0.isNumber }
                    value += exponent
                    rest = rest.dropFirst(exponent.count)
                }
                tokens.append(.number(String(value)))
            } else if character.isLetter || character == "_" {
                let value = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
                rest = rest.dropFirst(value.count)
                tokens.append(.word(value.lowercased()))
            } else if "(),".contains(character) {
                tokens.append(.symbol(String(character)))
                rest.removeFirst()
            } else {
                var value = rest.prefix { "+-*/<>=~!@#%^&|?:".contains($0) }
                guard !value.isEmpty else { throw Unreadable() }
                // PostgreSQL's rule: a symbol of several characters does not end in a sign.
                while value.count > 1, value.last == "-" || value.last == "+", !value.contains(where: { "~!@#%^&|?".contains($0) }) { value.removeLast() }
                rest = rest.dropFirst(value.count)
                tokens.append(.symbol(String(value)))
            }
        }
    }

    private var peek: Token { at < tokens.count ? tokens[at] : .end }
    private mutating func next() -> Token { defer { at += 1 }; return peek }
    private mutating func accept(_ token: Token) -> Bool {
        guard peek == token else { return false }
        at += 1
        return true
    }
    private mutating func expect(_ token: Token) throws { guard accept(token) else { throw Unreadable() } }

    private func strength(_ symbol: String) -> Int {
        switch symbol {
        case "<", ">", "=", "<=", ">=", "<>", "!=": 4
        case "+", "-": 7
        case "*", "/", "%": 8
        case "^": 9
        default: 6
        }
    }

    private mutating func expression(_ least: Int) throws -> BoundExpression {
        var left = try prefix()
        while true {
            switch peek {
            case .symbol("::"):
                at += 1
                left = try Coercion.coerce(left, to: typeName(), .explicit)
            case .symbol(let symbol) where symbol != ")" && symbol != ",":
                guard strength(symbol) > least else { return left }
                at += 1
                left = try binary(symbol, left, expression(strength(symbol)))
            case .word(let word):
                guard let combined = try infix(word, left, least) else { return left }
                left = combined
            default: return left
            }
        }
    }

    private func binary(_ symbol: String, _ left: BoundExpression, _ right: BoundExpression) throws -> BoundExpression {
        try FunctionRegistry.resolveOperator(symbol, left: left.type, right: right.type).call([left, right])
    }

    private mutating func infix(_ word: String, _ left: BoundExpression, _ least: Int) throws -> BoundExpression? {
        switch word {
        case "and" where least < 2: at += 1; return .and([try boolean(left), try boolean(expression(2))])
        case "or" where least < 1: at += 1; return .or([try boolean(left), try boolean(expression(1))])
        case "is" where least < 4:
            at += 1
            let negated = accept(.word("not"))
            if accept(.word("null")) { return negated ? .not(.isNull(left)) : .isNull(left) }
            try expect(.word("distinct"))
            try expect(.word("from"))
            let right = try expression(4)
            let type = try Coercion.common([left.type, right.type])
            let same = BoundExpression.isNotDistinct(try Coercion.coerce(left, to: type), try Coercion.coerce(right, to: type))
            return negated ? same : .not(same)
        case "not" where least < 5:
            at += 1
            if case .word("in") = peek { return .not(try list(left)) }
            return try pattern("!~~", left)
        case "like" where least < 5: return try pattern("~~", left)
        case "ilike" where least < 5: return try pattern("~~", left)
        case "in" where least < 5: return try list(left)
        case "between" where least < 5:
            at += 1
            let low = try expression(5)
            try expect(.word("and"))
            return .and([try binary(">=", left, low), try binary("<=", left, expression(5))])
        case "at" where least < 9:
            at += 1
            try expect(.word("time"))
            try expect(.word("zone"))
            let zone = try expression(9)
            return try FunctionRegistry.resolve(name: "at_time_zone", arguments: [left.type, zone.type]).call([left, zone])
        default: return nil
        }
    }

    private mutating func pattern(_ symbol: String, _ left: BoundExpression) throws -> BoundExpression {
        let folds = next() == .word("ilike")
        return try binary(symbol + (folds ? "*" : ""), left, expression(5))
    }

    private mutating func list(_ left: BoundExpression) throws -> BoundExpression {
        at += 1
        try expect(.symbol("("))
        var values: [Scalar] = []
        repeat {
            guard case .literal(let scalar, _) = try expression(0).folded() else { throw Unreadable() }
            values.append(scalar)
        } while accept(.symbol(","))
        try expect(.symbol(")"))
        return .inList(left, values, negated: false)
    }

    private func boolean(_ expression: BoundExpression) throws -> BoundExpression { try Coercion.coerce(expression, to: .boolean) }

    private mutating func typeName() throws -> SQLType {
        guard case .word(var name) = next() else { throw Unreadable() }
        if name == "double" { try expect(.word("precision")); name = "double precision" }
        var modifiers: [Int] = []
        if accept(.symbol("(")) {
            repeat { if case .number(let value) = next() { modifiers.append(Int(value) ?? 0) } } while accept(.symbol(","))
            try expect(.symbol(")"))
        }
        guard let type = TypeNames.type(named: name, modifiers: modifiers) else { throw Unreadable() }
        return type
    }

    private mutating func prefix() throws -> BoundExpression {
        switch next() {
        case .number(let text):
            if let value = Int64(text) { return .literal(.int(value), value <= Int32.max ? .int32 : .int64) }
            return .literal(try TextInput.scalar(text, as: .numeric), .numeric)
        case .string(let text): return .literal(.string(text), .unknown)
        case .symbol("("):
            let inner = try expression(0)
            try expect(.symbol(")"))
            return inner
        case .symbol(let symbol):
            let operand = try expression(symbol == "-" || symbol == "+" ? 10 : 6)
            return try FunctionRegistry.resolveOperator(symbol, left: nil, right: operand.type).call([operand])
        case .word(let word): return try keyword(word)
        case .end: throw Unreadable()
        }
    }

    private mutating func keyword(_ word: String) throws -> BoundExpression {
        switch word {
        case "null": return .literal(.null, .unknown)
        case "true", "false": return .literal(.boolean(word == "true"), .boolean)
        case "not": return .not(try boolean(expression(3)))
        case "case": return try caseWhen()
        case "interval":
            guard case .string(let text) = next() else { throw Unreadable() }
            return .cast(.literal(.string(text), .unknown), .interval, nil)
        default: break
        }
        try expect(.symbol("("))
        var arguments: [BoundExpression] = []
        if !accept(.symbol(")")) {
            repeat { arguments.append(try expression(0)) } while accept(.symbol(",")) || accept(.word("from"))
            try expect(.symbol(")"))
        }
        switch word {
        case "coalesce":
            let type = try Coercion.common(arguments.map(\.type), of: "COALESCE")
            return .coalesce(try arguments.map { try Coercion.coerce($0, to: type) }, type)
        case "nullif":
            let same = try binary("=", arguments[0], arguments[1])
            return .caseWhen([.init(same, .literal(.null, arguments[0].type))], otherwise: arguments[0], arguments[0].type)
        default: return try FunctionRegistry.resolve(name: word, arguments: arguments.map(\.type)).call(arguments)
        }
    }

    private mutating func caseWhen() throws -> BoundExpression {
        var pairs: [(BoundExpression, BoundExpression)] = []
        while accept(.word("when")) {
            let condition = try expression(0)
            try expect(.word("then"))
            pairs.append((condition, try expression(0)))
        }
        let otherwise = accept(.word("else")) ? try expression(0) : nil
        try expect(.word("end"))
        let type = try Coercion.common(pairs.map(\.1.type) + (otherwise.map { [$0.type] } ?? []))
        let branches = try pairs.map { BoundExpression.CaseBranch($0.0, try Coercion.coerce($0.1, to: type)) }
        return .caseWhen(branches, otherwise: try otherwise.map { try Coercion.coerce($0, to: type) }, type)
    }
}
