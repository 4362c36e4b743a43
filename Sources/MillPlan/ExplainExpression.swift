package import MillColumnar
package import MillExpr

/// Prints expressions as EXPLAIN shows them: SQL-like, with the names of the input's columns.
///
/// The text is for people and golden files, it is not parsed again. A name that several columns bear is followed by the
/// column's number, so that two different expressions never print alike.
package struct ExplainExpression {
    private let names: [String]

    /// For expressions over columns of these names; for a join, those of the left input, then of the right one.
    package init(names: [String]) {
        var uses: [String: Int] = [:]
        for name in names { uses[name, default: 0] += 1 }
        self.names = names.enumerated().map { uses[$1]! > 1 ? "\($1)#\($0)" : $1 }
    }

    package init(_ schema: Schema) {
        self.init(names: schema.map(\.name))
    }

    /// A column by its number.
    package func name(_ column: Int) -> String {
        if names.indices.contains(column) { return names[column] }
        return column < 0 ? "outer.#\(-1 - column)" : "#\(column)"
    }

    package func names(_ columns: [Int]) -> String {
        "[" + columns.map(name).joined(separator: ", ") + "]"
    }

    package func text(_ expression: BoundExpression) -> String {
        text(expression, parent: 0)
    }

    package func text(_ call: AggregateCall) -> String {
        var text = call.function.rawValue + "("
        if call.distinct { text += "distinct " }
        text += call.argument.map { self.text($0) } ?? (call.function == .count ? "*" : "")
        for option in call.options { text += ", " + literal(option, .varchar) }
        text += ")"
        if let filter = call.filter { text += " filter (" + self.text(filter) + ")" }
        return text
    }

    /// `parent` is the binding strength of what stands around it: 0 none, higher binds tighter.
    private func text(_ expression: BoundExpression, parent: Int) -> String {
        func wrapped(_ strength: Int, _ text: String) -> String { strength <= parent ? "(\(text))" : text }
        switch expression {
        case .column(let index, _): return name(index)
        case .literal(let value, let type): return literal(value, type)
        case .parameter(let number, _): return "$\(number)"
        case .call(let function, let arguments, _, _): return call(function, arguments, parent: parent)
        case .cast(let operand, let type, _): return text(operand, parent: 9) + "::" + type.name
        case .and(let operands): return wrapped(2, operands.map { text($0, parent: 2) }.joined(separator: " and "))
        case .or(let operands): return wrapped(1, operands.map { text($0, parent: 1) }.joined(separator: " or "))
        case .not(let operand): return wrapped(3, "not " + text(operand, parent: 3))
        case .isNull(let operand): return wrapped(4, text(operand, parent: 4) + " is null")
        case .isNotDistinct(let left, let right):
            return wrapped(4, text(left, parent: 4) + " is not distinct from " + text(right, parent: 4))
        case .caseWhen(let branches, let otherwise, _):
            var parts = branches.map { "when \(text($0.condition)) then \(text($0.result))" }
            if let otherwise { parts.append("else " + text(otherwise)) }
            return "case " + parts.joined(separator: " ") + " end"
        case .coalesce(let operands, _): return "coalesce(" + operands.map { text($0) }.joined(separator: ", ") + ")"
        case .inList(let operand, let values, let negated):
            let list = values.map { literal($0, operand.type) }.joined(separator: ", ")
            return wrapped(4, text(operand, parent: 4) + (negated ? " not in (" : " in (") + list + ")")
        }
    }

    private func call(_ function: ScalarFunction, _ arguments: [BoundExpression], parent: Int) -> String {
        if arguments.count == 2, let (symbol, strength) = ExplainExpression.infix[function.name] {
            let text = text(arguments[0], parent: strength - 1) + " \(symbol) " + text(arguments[1], parent: strength)
            return strength <= parent ? "(\(text))" : text
        }
        return function.name + "(" + arguments.map { text($0) }.joined(separator: ", ") + ")"
    }

    /// Operators that print between their operands, with how tightly they bind.
    private static let infix: [String: (String, Int)] = [
        "equal": ("=", 4), "not_equal": ("<>", 4), "less": ("<", 4), "less_or_equal": ("<=", 4), "greater": (">", 4), "greater_or_equal": (">=", 4),
        "like": ("like", 5), "not_like": ("not like", 5), "ilike": ("ilike", 5), "not_ilike": ("not ilike", 5), "concatenate": ("||", 6),
        "json_get": ("->", 6), "json_get_text": ("->>", 6), "add": ("+", 7), "subtract": ("-", 7), "multiply": ("*", 8),
        "divide": ("/", 8), "modulo": ("%", 8),
    ]

    private func literal(_ value: Scalar, _ type: SQLType) -> String {
        var text: [UInt8] = []
        switch value {
        case .null: return type == .unknown ? "null" : "null::\(type.name)"
        case .boolean(let value): return value ? "true" : "false"
        case .int(let value):
            switch type {
            case .date: TextOutput.appendDate(Int32(truncatingIfNeeded: value), to: &text)
            case .time: TextOutput.appendTime(value, to: &text)
            case .timestamp: TextOutput.appendTimestamp(value, to: &text)
            case .timestamptz: TextOutput.appendTimestamptz(value, to: &text)
            default: return String(value)
            }
        case .float(let value): return String(value)
        case .decimal(let value):
            TextOutput.append(value, to: &text)
            return String(decoding: text, as: UTF8.self)
        case .string(let value): return "'" + value + "'"
        case .bytes(let bytes): bytes.withUnsafeBufferPointer { TextOutput.appendHex($0, to: &text) }
        case .interval(let value):
            TextOutput.append(value, to: &text)
            return "interval '" + String(decoding: text, as: UTF8.self) + "'"
        }
        return "'" + String(decoding: text, as: UTF8.self) + "'"
    }

    /// Microseconds as seconds with only the digits that are there: `15s`, `0.5s`.
    static func seconds(_ micros: Int64) -> String {
        let (whole, rest) = micros.magnitude.quotientAndRemainder(dividingBy: 1_000_000)
        var text = (micros < 0 ? "-" : "") + String(whole)
        if rest != 0 {
            var digits = String(rest + 1_000_000).dropFirst()
            while digits.last == "0" { digits = digits.dropLast() }
            text += "." + digits
        }
        return text + "s"
    }
}
