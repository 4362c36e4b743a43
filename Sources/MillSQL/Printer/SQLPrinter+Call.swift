/// Calls and windows.
extension SQLPrinter {
    mutating func write(_ call: FunctionCall) {
        switch call.syntax {
        case .ordinary, .star: writeOrdinary(call)
        case .keyword:
            write(call.name.last.name.uppercased())
            if let precision = call.arguments.first {
                write("(")
                write(precision.value)
                write(")")
            }
        case .extract, .position, .trim, .overlay, .substringFrom, .substringFor: writeSpecial(call)
        }
        if !call.withinGroup.isEmpty {
            write(" WITHIN GROUP (ORDER BY ")
            list(call.withinGroup) { $0.write($1) }
            write(")")
        }
        if let filter = call.filter {
            write(" FILTER (WHERE ")
            write(filter)
            write(")")
        }
        switch call.over {
        case nil: break
        case .named(let name):
            write(" OVER ")
            write(name)
        case .inline(let window):
            write(" OVER ")
            write(window)
        }
    }

    private mutating func writeOrdinary(_ call: FunctionCall) {
        writeFunctionName(call.name)
        write("(")
        if call.syntax == .star { write("*") }
        if call.isDistinct { write("DISTINCT ") }
        for (offset, argument) in call.arguments.enumerated() {
            if offset > 0 { write(", ") }
            if call.isVariadic, offset == call.arguments.count - 1 { write("VARIADIC ") }
            if let name = argument.name {
                write(name)
                write(" => ")
            }
            write(argument.value)
            if !argument.partitionBy.isEmpty { writePartition(argument.partitionBy) }
        }
        if !call.orderBy.isEmpty {
            write(" ORDER BY ")
            list(call.orderBy) { $0.write($1) }
        }
        write(")")
    }

    private mutating func writePartition(_ expressions: [Expression]) {
        write(" PARTITION BY ")
        if expressions.count == 1, case .column = expressions[0].kind { return write(expressions[0]) }
        write("(")
        list(expressions) { $0.write($1) }
        write(")")
    }

    /// Words that are calls by themselves stay bare, as do those that may name functions; the others are quoted.
    private mutating func writeFunctionName(_ name: ObjectName) {
        guard name.parts.count == 1, let keyword = Keyword.byText[name.last.name] else { return write(name) }
        switch keyword {
        case .coalesce, .nullif, .greatest, .least, .grouping, .extract, .position, .substring, .overlay: write(keyword.rawValue)
        default: keyword.category == .typeOrFunction ? write(keyword.rawValue) : write(name)
        }
    }

    private mutating func writeSpecial(_ call: FunctionCall) {
        let arguments = call.arguments.map(\.value)
        switch (call.syntax, arguments.count) {
        case (.extract, 2):
            write("EXTRACT(")
            if case .literal(.string(let field)) = arguments[0].kind {
                if Self.isPlain(field) { write(field.uppercased()) } else { writeString(field) }
            }
            write(" FROM ")
            write(arguments[1])
        case (.position, 2):
            write("POSITION(")
            write(arguments[1], minimum: Precedence.range + 1)
            write(" IN ")
            write(arguments[0], minimum: Precedence.range + 1)
        case (.overlay, 3...):
            write("OVERLAY(")
            writeWith(arguments, [" PLACING ", " FROM ", " FOR "])
        case (.substringFrom, 2...):
            write("SUBSTRING(")
            writeWith(arguments, [" FROM ", " FOR "])
        case (.substringFor, 3):
            write("SUBSTRING(")
            writeWith([arguments[0], arguments[2]], [" FOR "])
        default: writeTrim(call, arguments)
        }
        write(")")
    }

    private mutating func writeWith(_ arguments: [Expression], _ words: [String]) {
        for (offset, argument) in arguments.enumerated() {
            if offset > 0, offset <= words.count { write(words[offset - 1]) }
            write(argument)
        }
    }

    private mutating func writeTrim(_ call: FunctionCall, _ arguments: [Expression]) {
        write("TRIM(")
        switch call.name.last.name {
        case "ltrim": write("LEADING ")
        case "rtrim": write("TRAILING ")
        default: write("BOTH ")
        }
        if arguments.count == 2 {
            write(arguments[1])
            write(" FROM ")
            write(arguments[0])
        } else {
            write("FROM ")
            list(arguments) { $0.write($1) }
        }
    }

    // MARK: Windows

    mutating func write(_ window: WindowSpecification) {
        write("(")
        var parts: [(inout SQLPrinter) -> Void] = []
        if let base = window.base { parts.append { $0.write(base) } }
        if !window.partitionBy.isEmpty {
            parts.append { printer in
                printer.write("PARTITION BY ")
                printer.list(window.partitionBy) { $0.write($1) }
            }
        }
        if !window.orderBy.isEmpty {
            parts.append { printer in
                printer.write("ORDER BY ")
                printer.list(window.orderBy) { $0.write($1) }
            }
        }
        if let frame = window.frame { parts.append { $0.write(frame) } }
        list(parts, separator: " ") { $1(&$0) }
        write(")")
    }

    private mutating func write(_ frame: WindowFrame) {
        switch frame.unit {
        case .rows: write("ROWS")
        case .range: write("RANGE")
        case .groups: write("GROUPS")
        }
        write(" BETWEEN ")
        write(frame.start)
        write(" AND ")
        write(frame.end)
        switch frame.exclusion {
        case .noOthers: break
        case .currentRow: write(" EXCLUDE CURRENT ROW")
        case .group: write(" EXCLUDE GROUP")
        case .ties: write(" EXCLUDE TIES")
        }
    }

    private mutating func write(_ bound: WindowFrame.Bound) {
        switch bound {
        case .unboundedPreceding: write("UNBOUNDED PRECEDING")
        case .currentRow: write("CURRENT ROW")
        case .unboundedFollowing: write("UNBOUNDED FOLLOWING")
        case .preceding(let value):
            // AND would end the bound.
            write(value, minimum: Precedence.not)
            write(" PRECEDING")
        case .following(let value):
            write(value, minimum: Precedence.not)
            write(" FOLLOWING")
        }
    }
}
