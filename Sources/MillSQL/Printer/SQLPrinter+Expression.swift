/// Scalar expressions. `Precedence` says where parentheses are needed.
extension SQLPrinter {
    mutating func write(_ expression: Expression) {
        write(expression, minimum: Precedence.or)
    }

    /// In parentheses if it binds more loosely than `minimum`.
    mutating func write(_ expression: Expression, minimum: Int) {
        if Self.precedence(expression) < minimum {
            write("(")
            writeBare(expression)
            write(")")
        } else {
            writeBare(expression)
        }
    }

    static func precedence(_ expression: Expression) -> Int {
        switch expression.kind {
        case .or: Precedence.or
        case .and: Precedence.and
        case .not: Precedence.not
        case .isTest, .isDistinct: Precedence.isTest
        case .between, .like, .inList, .inQuery: Precedence.range
        case .binary(_, let operation, _): precedence(operation)
        case .quantified(let quantified):
            switch quantified.operation.symbol {
            case "~~", "!~~", "~~*", "!~~*": Precedence.range
            default: precedence(quantified.operation)
            }
        case .unary(let operation, _): isSign(operation) ? Precedence.unarySign : Precedence.other
        case .atTimeZone: Precedence.atTimeZone
        case .collate: Precedence.collate
        case .cast: Precedence.cast
        case .literal(.number(let digits)): digits.hasPrefix("-") ? Precedence.unarySign : Precedence.primary
        default: Precedence.primary
        }
    }

    private static func precedence(_ operation: OperatorName) -> Int {
        operation.schema.isEmpty ? Precedence.of(operation.symbol) : Precedence.other
    }

    private static func isSign(_ operation: OperatorName) -> Bool {
        operation.schema.isEmpty && (operation.symbol == "-" || operation.symbol == "+")
    }

    private mutating func writeBare(_ expression: Expression) {
        switch expression.kind {
        case .literal, .typedLiteral, .interval, .parameter, .column, .defaultValue: writeLeaf(expression.kind)
        case .unary, .binary, .and, .or, .not, .isTest, .isDistinct, .quantified, .cast, .collate, .atTimeZone:
            writeOperation(expression.kind)
        case .between, .like, .inList, .inQuery: writeRange(expression.kind)
        case .exists, .subquery, .arrayQuery: writeSubquery(expression.kind)
        case .caseWhen(let value): write(value)
        case .call(let call): write(call)
        case .tryCast(let operand, let type):
            write("TRY_CAST(")
            write(operand)
            write(" AS ")
            write(type)
            write(")")
        case .row, .array, .map, .element, .slice, .field: writeStructured(expression.kind)
        }
    }

    private mutating func writeLeaf(_ kind: Expression.Kind) {
        switch kind {
        case .literal(let literal): write(literal)
        case .typedLiteral(let type, let text):
            write(type)
            write(" ")
            writeString(text)
        case .interval(let text, let fields):
            write("INTERVAL")
            if let fields, fields.from == nil {
                write(fields)
                write(" ")
                writeString(text)
            } else {
                write(" ")
                writeString(text)
                if let fields { write(fields) }
            }
        case .parameter(let number): write("$\(number)")
        case .column(let name): write(name)
        case .defaultValue: write("DEFAULT")
        default: break
        }
    }

    private mutating func write(_ literal: Literal) {
        switch literal {
        case .null: write("NULL")
        case .boolean(let value): write(value ? "TRUE" : "FALSE")
        case .number(let digits): write(digits)
        case .string(let string): writeString(string)
        case .bits(let digits): write("B'\(digits)'")
        case .hexBits(let digits): write("X'\(digits)'")
        }
    }

    // MARK: Operators

    private mutating func writeOperation(_ kind: Expression.Kind) {
        switch kind {
        case .unary(let operation, let operand):
            write(operation)
            // The space keeps `- -1` from becoming a comment.
            write(" ")
            write(operand, minimum: Self.isSign(operation) ? Precedence.unarySign : Precedence.other)
        case .binary(let left, let operation, let right):
            let precedence = Self.precedence(operation)
            write(left, minimum: precedence == Precedence.comparison ? precedence + 1 : precedence)
            write(" ")
            write(operation)
            write(" ")
            write(right, minimum: precedence + 1)
        case .and(let operands): writeChain(operands, " AND ", Precedence.and)
        case .or(let operands): writeChain(operands, " OR ", Precedence.or)
        case .not(let operand):
            write("NOT ")
            write(operand, minimum: Precedence.not)
        case .isTest(let operand, let test, let negated):
            write(operand, minimum: Precedence.isTest + 1)
            write(negated ? " IS NOT " : " IS ")
            switch test {
            case .null: write("NULL")
            case .true: write("TRUE")
            case .false: write("FALSE")
            case .unknown: write("UNKNOWN")
            }
        case .isDistinct(let left, let right, let negated):
            write(left, minimum: Precedence.isTest + 1)
            write(negated ? " IS NOT DISTINCT FROM " : " IS DISTINCT FROM ")
            write(right, minimum: Precedence.isTest + 1)
        case .quantified(let quantified): write(quantified)
        case .cast(let operand, let type):
            write(operand, minimum: Precedence.cast)
            write("::")
            write(type)
        case .collate(let operand, let collation):
            write(operand, minimum: Precedence.collate)
            write(" COLLATE ")
            write(collation)
        case .atTimeZone(let operand, let zone):
            write(operand, minimum: Precedence.atTimeZone)
            write(" AT TIME ZONE ")
            write(zone, minimum: Precedence.atTimeZone + 1)
        default: break
        }
    }

    private mutating func writeChain(_ operands: [Expression], _ word: String, _ precedence: Int) {
        list(operands, separator: word) { $0.write($1, minimum: precedence + 1) }
    }

    mutating func write(_ operation: OperatorName) {
        guard !operation.schema.isEmpty else { return write(operation.symbol) }
        write("OPERATOR(")
        for part in operation.schema {
            write(part)
            write(".")
        }
        write(operation.symbol)
        write(")")
    }

    private mutating func write(_ quantified: Quantified) {
        let word: String? =
            switch quantified.operation.symbol {
            case "~~": "LIKE"
            case "!~~": "NOT LIKE"
            case "~~*": "ILIKE"
            case "!~~*": "NOT ILIKE"
            default: nil
            }
        let isWord = word != nil && quantified.operation.schema.isEmpty
        let precedence = isWord ? Precedence.range : Self.precedence(quantified.operation)
        let isAssociative = precedence != Precedence.comparison && precedence != Precedence.range
        write(quantified.left, minimum: isAssociative ? precedence : precedence + 1)
        write(" ")
        if isWord, let word { write(word) } else { write(quantified.operation) }
        write(quantified.isAll ? " ALL (" : " ANY (")
        switch quantified.operand {
        case .array(let array):
            // A subquery as an array value needs parentheses of its own to be told from a set.
            write(array)
        case .query(let query): write(query)
        }
        write(")")
    }

    // MARK: BETWEEN, LIKE, IN

    private mutating func writeRange(_ kind: Expression.Kind) {
        let inside = Precedence.range + 1
        switch kind {
        case .between(let between):
            write(between.operand, minimum: inside)
            write(between.negated ? " NOT BETWEEN " : " BETWEEN ")
            if between.symmetric { write("SYMMETRIC ") }
            write(between.low, minimum: inside)
            write(" AND ")
            write(between.high, minimum: inside)
        case .like(let like):
            write(like.operand, minimum: inside)
            write(like.negated ? " NOT " : " ")
            switch like.kind {
            case .like: write("LIKE ")
            case .ilike: write("ILIKE ")
            case .similarTo: write("SIMILAR TO ")
            }
            write(like.pattern, minimum: inside)
            if let escape = like.escape {
                write(" ESCAPE ")
                write(escape, minimum: inside)
            }
        case .inList(let operand, let items, let negated):
            write(operand, minimum: inside)
            write(negated ? " NOT IN " : " IN ")
            parenthesized(items) { $0.write($1) }
        case .inQuery(let operand, let query, let negated):
            write(operand, minimum: inside)
            write(negated ? " NOT IN (" : " IN (")
            write(query)
            write(")")
        default: break
        }
    }

    private mutating func writeSubquery(_ kind: Expression.Kind) {
        switch kind {
        case .exists(let query):
            write("EXISTS (")
            write(query)
        case .subquery(let query):
            write("(")
            write(query)
        case .arrayQuery(let query):
            write("ARRAY(")
            write(query)
        default: return
        }
        write(")")
    }

    // MARK: CASE, rows, arrays

    private mutating func write(_ value: Case) {
        write("CASE")
        if let operand = value.operand {
            write(" ")
            write(operand)
        }
        for branch in value.branches {
            write(" WHEN ")
            write(branch.condition)
            write(" THEN ")
            write(branch.result)
        }
        if let otherwise = value.otherwise {
            write(" ELSE ")
            write(otherwise)
        }
        write(" END")
    }

    private mutating func writeStructured(_ kind: Expression.Kind) {
        switch kind {
        case .row(let items):
            if items.count < 2 { write("ROW") }
            parenthesized(items) { $0.write($1) }
        case .array(let items):
            write("ARRAY[")
            list(items) { $0.write($1) }
            write("]")
        case .map(let entries):
            write("MAP {")
            list(entries) { printer, entry in
                printer.write(entry.key)
                printer.write(": ")
                printer.write(entry.value)
            }
            write("}")
        case .element(let base, let position):
            writeBase(base, isField: false)
            write("[")
            write(position)
            write("]")
        case .slice(let base, let from, let to):
            writeBase(base, isField: false)
            write("[")
            if let from { write(from) }
            // The space keeps a parameter or a cast from running into the colon.
            write(" : ")
            if let to { write(to) }
            write("]")
        case .field(let base, let name):
            writeBase(base, isField: true)
            write(".")
            write(name)
        default: break
        }
    }

    /// What a subscript or a field hangs on: bare only where no other reading is possible.
    private mutating func writeBase(_ base: Expression, isField: Bool) {
        switch base.kind {
        case .element, .slice, .field, .parameter: writeBare(base)
        case .column where !isField: writeBare(base)
        default:
            write("(")
            writeBare(base)
            write(")")
        }
    }
}
