/// Queries and FROM lists.
extension SQLPrinter {
    mutating func write(_ query: Query) {
        if let with = query.with { write(with) }
        write(query.body, minimum: 1)
        if !query.orderBy.isEmpty {
            write(" ORDER BY ")
            list(query.orderBy) { $0.write($1) }
        }
        if let offset = query.offset {
            write(" OFFSET ")
            write(offset)
        }
        guard let limit = query.limit else { return }
        if query.withTies {
            write(" FETCH FIRST ")
            write(limit, minimum: Precedence.primary)
            write(" ROWS WITH TIES")
        } else {
            write(" LIMIT ")
            write(limit)
        }
    }

    mutating func write(_ with: WithClause) {
        write(with.isRecursive ? "WITH RECURSIVE " : "WITH ")
        list(with.tables) { printer, table in
            printer.write(table.name)
            printer.writeOptionalNames(table.columns)
            printer.write(" AS ")
            if let materialized = table.materialized { printer.write(materialized ? "MATERIALIZED " : "NOT MATERIALIZED ") }
            printer.write("(")
            printer.write(table.query)
            printer.write(")")
        }
        write(" ")
    }

    /// In parentheses if it is a set operation that binds more loosely than `minimum`.
    private mutating func write(_ body: QueryBody, minimum: Int) {
        switch body {
        case .select(let select): write(select)
        case .values(let rows, _):
            write("VALUES ")
            list(rows) { printer, row in printer.parenthesized(row) { $0.write($1) } }
        case .table(let name):
            write("TABLE ")
            write(name)
        case .nested(let query):
            write("(")
            write(query)
            write(")")
        case .setOperation(let operation):
            let precedence = operation.kind == .intersect ? 2 : 1
            if precedence < minimum { write("(") }
            write(operation.left, minimum: precedence)
            switch operation.kind {
            case .union: write(" UNION ")
            case .intersect: write(" INTERSECT ")
            case .except: write(" EXCEPT ")
            }
            if operation.isAll { write("ALL ") }
            write(operation.right, minimum: precedence + 1)
            if precedence < minimum { write(")") }
        }
    }

    mutating func write(_ item: OrderItem) {
        write(item.expression)
        if item.isDescending { write(" DESC") }
        if let nullsFirst = item.nullsFirst { write(nullsFirst ? " NULLS FIRST" : " NULLS LAST") }
    }

    private mutating func write(_ select: Select) {
        write("SELECT")
        switch select.quantifier {
        case .all: break
        case .distinct: write(" DISTINCT")
        case .distinctOn(let keys):
            write(" DISTINCT ON ")
            parenthesized(keys) { $0.write($1) }
        }
        if !select.items.isEmpty {
            write(" ")
            list(select.items) { $0.write($1) }
        }
        if !select.from.isEmpty {
            write(" FROM ")
            list(select.from) { $0.write($1) }
        }
        writeFilter(select.filter)
        if !select.groupBy.isEmpty {
            write(" GROUP BY ")
            list(select.groupBy) { $0.write($1) }
        }
        if let having = select.having {
            write(" HAVING ")
            write(having)
        }
        if !select.windows.isEmpty {
            write(" WINDOW ")
            list(select.windows) { printer, window in
                printer.write(window.name)
                printer.write(" AS ")
                printer.write(window.specification)
            }
        }
    }

    mutating func writeFilter(_ filter: Expression?) {
        guard let filter else { return }
        write(" WHERE ")
        write(filter)
    }

    mutating func write(_ item: SelectItem) {
        switch item {
        case .expression(let expression, let alias):
            write(expression)
            if let alias {
                write(" AS ")
                write(alias)
            }
        case .wildcard(let relation, let exceptions, _):
            if let relation {
                write(relation)
                write(".")
            }
            write("*")
            if !exceptions.isEmpty {
                write(" EXCEPT ")
                parenthesized(exceptions) { $0.write($1) }
            }
        case .fieldWildcard(let expression, _):
            write("(")
            write(expression)
            write(").*")
        }
    }

    private mutating func write(_ element: GroupingElement) {
        switch element {
        case .expression(let expression): write(expression)
        case .empty: write("()")
        case .rollup(let sets, _):
            write("ROLLUP ")
            writeColumnSets(sets)
        case .cube(let sets, _):
            write("CUBE ")
            writeColumnSets(sets)
        case .sets(let elements, _):
            write("GROUPING SETS ")
            parenthesized(elements) { $0.write($1) }
        }
    }

    private mutating func writeColumnSets(_ sets: [[Expression]]) {
        parenthesized(sets) { printer, columns in
            if columns.count == 1 { printer.write(columns[0]) } else { printer.write(Expression(.row(columns))) }
        }
    }

    // MARK: FROM

    mutating func write(_ table: TableReference) {
        switch table {
        case .table(let table): write(table)
        case .function(let function):
            if function.isLateral { write("LATERAL ") }
            write(function.call)
            if function.withOrdinality { write(" WITH ORDINALITY") }
            write(function.alias)
        case .subquery(let derived):
            if derived.isLateral { write("LATERAL ") }
            write("(")
            write(derived.query)
            write(")")
            write(derived.alias)
        case .join(let join): write(join)
        }
    }

    mutating func write(_ table: NamedTable) {
        write(table.name)
        switch table.version {
        case nil: break
        case .time(let expression):
            write(" FOR SYSTEM_TIME AS OF ")
            write(expression)
        case .version(let expression):
            write(" FOR SYSTEM_VERSION AS OF ")
            write(expression)
        }
        write(table.alias)
    }

    private mutating func write(_ alias: TableAlias?) {
        guard let alias else { return }
        write(" AS ")
        write(alias.name)
        writeOptionalNames(alias.columns)
    }

    private mutating func write(_ join: Join) {
        write(join.left)
        if join.isAsOf { write(" ASOF") }
        if case .natural = join.condition { write(" NATURAL") }
        switch join.kind {
        case .inner: write(" JOIN ")
        case .left: write(" LEFT JOIN ")
        case .right: write(" RIGHT JOIN ")
        case .full: write(" FULL JOIN ")
        case .cross: write(" CROSS JOIN ")
        }
        if case .join = join.right {
            write("(")
            write(join.right)
            write(")")
        } else {
            write(join.right)
        }
        switch join.condition {
        case .none, .natural: break
        case .on(let condition):
            write(" ON ")
            write(condition)
        case .using(let columns, let alias):
            write(" USING ")
            writeNames(columns)
            if let alias {
                write(" AS ")
                write(alias)
            }
        }
    }
}
