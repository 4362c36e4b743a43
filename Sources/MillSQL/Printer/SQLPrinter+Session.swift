/// Settings, SHOW, EXPLAIN, transactions, cursors, prepared statements, jobs.
extension SQLPrinter {
    /// A dotted setting or option name: each part a word, quoted only for its spelling.
    mutating func write(_ name: SettingName) {
        list(name.name.split(separator: ".", omittingEmptySubsequences: false), separator: ".") { printer, part in
            printer.write(Self.isPlain(String(part)) ? String(part) : Self.quotedAlways(String(part)))
        }
    }

    mutating func write(_ value: SettingValue) {
        switch value {
        case .standard: write("DEFAULT")
        case .list(let values): list(values) { $0.write($1) }
        }
    }

    mutating func write(_ set: SetParameter) {
        write(set.scope == .local ? "SET LOCAL " : "SET ")
        write(set.name)
        write(" = ")
        write(set.value)
    }

    mutating func write(_ show: Show) {
        write("SHOW ")
        switch show {
        case .objects(let list, let schema, let pattern):
            write(list.rawValue)
            if let schema {
                write(" FROM ")
                write(schema)
            }
            writeLike(pattern)
        case .columns(let name, let pattern):
            write("COLUMNS FROM ")
            write(name)
            writeLike(pattern)
        case .create(let kind, let name):
            write("CREATE \(kind.rawValue) ")
            write(name)
        case .parameter(let name): writeShown(name)
        case .allParameters(let pattern):
            write("ALL")
            writeLike(pattern)
        }
    }

    /// A parameter whose name is a word of SHOW itself is quoted.
    private mutating func writeShown(_ name: SettingName) {
        let isTaken = name.name == "all" || name.name == "parameters" || name.name == "create" || name.name == "columns"
        let isList = Show.ObjectList(rawValue: name.name.uppercased()) != nil
        if isTaken || isList { write(Self.quotedAlways(name.name)) } else { write(name) }
    }

    private mutating func writeLike(_ pattern: String?) {
        guard let pattern else { return }
        write(" LIKE ")
        writeString(pattern)
    }

    mutating func write(_ explain: Explain) {
        write(explain.isAnalyze ? "EXPLAIN ANALYZE " : "EXPLAIN ")
        if !explain.options.isEmpty {
            parenthesized(explain.options) { printer, option in
                printer.writeUpperWord(option.name)
                guard let value = option.value else { return }
                printer.write(" ")
                printer.write(value)
            }
            write(" ")
        }
        switch explain.subject {
        case .statement(let statement): write(statement)
        case .materializedView(let name):
            write("MATERIALIZED VIEW ")
            write(name)
        }
    }

    // MARK: Transactions

    mutating func write(_ transaction: Transaction) {
        switch transaction {
        case .begin(let modes):
            write("BEGIN")
            writeModes(modes)
        case .commit(let andChain): write(andChain ? "COMMIT AND CHAIN" : "COMMIT")
        case .rollback(let andChain): write(andChain ? "ROLLBACK AND CHAIN" : "ROLLBACK")
        case .savepoint(let name):
            write("SAVEPOINT ")
            write(name)
        case .rollbackTo(let name):
            write("ROLLBACK TO SAVEPOINT ")
            write(name)
        case .release(let name):
            write("RELEASE SAVEPOINT ")
            write(name)
        case .set(let modes, let isSession):
            write(isSession ? "SET SESSION CHARACTERISTICS AS TRANSACTION" : "SET TRANSACTION")
            writeModes(modes)
        }
    }

    private mutating func writeModes(_ modes: [TransactionMode]) {
        if !modes.isEmpty { write(" ") }
        list(modes) { printer, mode in
            switch mode {
            case .isolation(let level): printer.write("ISOLATION LEVEL \(level)")
            case .readOnly: printer.write("READ ONLY")
            case .readWrite: printer.write("READ WRITE")
            case .deferrable(let isDeferrable): printer.write(isDeferrable ? "DEFERRABLE" : "NOT DEFERRABLE")
            }
        }
    }

    // MARK: Cursors

    mutating func write(_ cursor: CursorStatement) {
        switch cursor {
        case .close(let name):
            write("CLOSE ")
            if let name { write(name) } else { write("ALL") }
        case .fetch(let direction, let name, let isMove):
            write(isMove ? "MOVE " : "FETCH ")
            write(direction)
            write(" FROM ")
            write(name)
        case .declare(let name, let options, let withHold, let input):
            write("DECLARE ")
            write(name)
            for option in options { write(" \(option)") }
            writeCursorInput(input, withHold)
        }
    }

    private mutating func writeCursorInput(_ input: CursorInput, _ withHold: Bool?) {
        switch input {
        case .query(let query):
            write(" CURSOR")
            if let withHold { write(withHold ? " WITH HOLD" : " WITHOUT HOLD") }
            write(" FOR ")
            write(query)
        case .subscription(let name, let since, let isFull):
            write(" SUBSCRIPTION CURSOR FOR ")
            write(name)
            if isFull { write(" FULL") }
            if let since {
                write(" SINCE ")
                write(since)
            }
        }
    }

    private mutating func write(_ direction: FetchDirection) {
        switch direction {
        case .next: write("NEXT")
        case .prior: write("PRIOR")
        case .first: write("FIRST")
        case .last: write("LAST")
        case .absolute(let position): write("ABSOLUTE \(position)")
        case .relative(let offset): write("RELATIVE \(offset)")
        case .forward(let count): write(count.map { "FORWARD \($0)" } ?? "FORWARD ALL")
        case .backward(let count): write(count.map { "BACKWARD \($0)" } ?? "BACKWARD ALL")
        }
    }

    // MARK: Prepared statements and jobs

    mutating func write(_ prepared: PreparedStatement) {
        switch prepared {
        case .prepare(let name, let types, let statement):
            write("PREPARE ")
            write(name)
            if !types.isEmpty {
                write(" ")
                parenthesized(types) { $0.write($1) }
            }
            write(" AS ")
            write(statement)
        case .execute(let name, let arguments):
            write("EXECUTE ")
            write(name)
            if !arguments.isEmpty { parenthesized(arguments) { $0.write($1) } }
        case .deallocate(let name):
            write("DEALLOCATE ")
            if let name { write(name) } else { write("ALL") }
        }
    }

    mutating func write(_ replay: ReplayRejects) {
        write("REPLAY REJECTS FROM ")
        write(replay.source)
        if let condition = replay.condition {
            write(" WHERE ")
            write(condition)
        }
        if let record = replay.record {
            write(" USING ")
            write(record)
        }
    }

    mutating func write(_ control: JobControl) {
        write("\(control.verb.rawValue) \(control.kind.rawValue) ")
        write(control.name)
    }
}
