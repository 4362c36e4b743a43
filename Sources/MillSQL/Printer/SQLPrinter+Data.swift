/// INSERT, UPDATE, DELETE, TRUNCATE, COPY.
extension SQLPrinter {
    mutating func write(_ insert: Insert) {
        if let with = insert.with { write(with) }
        write("INSERT INTO ")
        write(insert.table)
        if let alias = insert.alias {
            write(" AS ")
            write(alias)
        }
        writeOptionalNames(insert.columns)
        switch insert.input {
        case .defaultValues: write(" DEFAULT VALUES")
        case .query(let query):
            write(" ")
            write(query)
        }
        if let conflict = insert.onConflict { write(conflict) }
        writeReturning(insert.returning)
    }

    private mutating func writeReturning(_ items: [SelectItem]) {
        guard !items.isEmpty else { return }
        write(" RETURNING ")
        list(items) { $0.write($1) }
    }

    private mutating func write(_ conflict: OnConflict) {
        write(" ON CONFLICT")
        switch conflict.target {
        case nil: break
        case .constraint(let name):
            write(" ON CONSTRAINT ")
            write(name)
        case .columns(let keys, let filter):
            write(" ")
            parenthesized(keys) { $0.write($1) }
            writeFilter(filter)
        }
        switch conflict.action {
        case .nothing: write(" DO NOTHING")
        case .update(let assignments, let filter):
            write(" DO UPDATE SET ")
            list(assignments) { $0.write($1) }
            writeFilter(filter)
        }
    }

    private mutating func write(_ assignment: Assignment) {
        if assignment.isRow {
            parenthesized(assignment.columns) { $0.write($1) }
        } else {
            list(assignment.columns) { $0.write($1) }
        }
        write(" = ")
        write(assignment.value)
    }

    mutating func write(_ update: Update) {
        if let with = update.with { write(with) }
        write("UPDATE ")
        write(update.table)
        write(" SET ")
        list(update.assignments) { $0.write($1) }
        if !update.from.isEmpty {
            write(" FROM ")
            list(update.from) { $0.write($1) }
        }
        writeFilter(update.filter)
        writeReturning(update.returning)
    }

    mutating func write(_ delete: Delete) {
        if let with = delete.with { write(with) }
        write("DELETE FROM ")
        write(delete.table)
        if !delete.using.isEmpty {
            write(" USING ")
            list(delete.using) { $0.write($1) }
        }
        writeFilter(delete.filter)
        writeReturning(delete.returning)
    }

    mutating func write(_ truncate: Truncate) {
        write("TRUNCATE TABLE ")
        list(truncate.tables) { $0.write($1) }
        if truncate.cascade { write(" CASCADE") }
    }

    mutating func write(_ copy: Copy) {
        write("COPY ")
        switch copy.subject {
        case .query(let query):
            write("(")
            write(query)
            write(")")
        case .table(let name, let columns):
            write(name)
            writeOptionalNames(columns)
        }
        write(copy.isFrom ? " FROM " : " TO ")
        switch copy.endpoint {
        case .stdin: write("STDIN")
        case .stdout: write("STDOUT")
        case .file(let path): writeString(path)
        }
        writeOptions(copy.options)
    }
}
