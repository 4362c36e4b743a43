package import MillBase
package import MillBinder
import MillCatalog
package import MillColumnar
import MillConnectorKit
import MillPlan

/// INSERT, UPDATE and DELETE: a statement becomes the rows it takes away and the rows it adds, found against what its transaction sees.
/// Nothing is stored before the transaction commits.
extension Engine {
    /// What a statement answers.
    package struct WriteAnswer: Sendable {
        /// Rows inserted, updated or deleted.
        package var count: Int
        /// RETURNING's rows; nil without.
        package var returned: [DeltaBatch]?
    }

    /// The effect of a statement on its table.
    struct RowChanges {
        var old: [DeltaBatch] = []
        var new: [DeltaBatch] = []
        /// What RETURNING is about: a row for each that the statement counts.
        var shown: [DeltaBatch] = []
    }

    /// - Throws: 23502 for a missing value, 22001 for a text that its column is too short for, 21000 and 23505 from ON CONFLICT.
    package func run(_ insert: BoundInsert, session: SessionContext, in transaction: OpenTransaction) async throws(SQLError) -> WriteAnswer {
        try await begin(insert.table, session, transaction)
        return try await add(insert, session: session, to: transaction)
    }

    /// What INSERT does once the transaction may write to the table.
    func add(_ insert: BoundInsert, session: SessionContext, to transaction: OpenTransaction) async throws(SQLError) -> WriteAnswer {
        let table = insert.table
        var rows = Self.repeated(try await queryRun(insert.query, session: session).collect(session.cancellation))
        if let column = table.rowIDColumn { rows = rows.map { numbered($0, column) } }
        try Self.check(rows, table)
        let changes =
            table.primaryKey.isEmpty
            ? RowChanges(new: rows, shown: rows) : try await keyedChanges(of: rows, insert, session: session, transaction)
        return try await finish(changes, table, insert.returning, session, transaction)
    }

    /// - Throws: 23502 and 22001 as INSERT, 23505 when a changed key is another row's.
    package func run(_ update: BoundUpdate, session: SessionContext, in transaction: OpenTransaction) async throws(SQLError) -> WriteAnswer {
        let table = update.table
        try await begin(table, session, transaction)
        let rows = Self.firstByKey(try await queryRun(update.query, session: session).collect(session.cancellation), table)
        let changes = try await replacements(of: rows, table, assigned: update.assigned, transaction)
        return try await finish(changes, table, update.returning, session, transaction)
    }

    package func run(_ delete: BoundDelete, session: SessionContext, in transaction: OpenTransaction) async throws(SQLError) -> WriteAnswer {
        let table = delete.table
        try await begin(table, session, transaction)
        let rows = Self.firstByKey(try await queryRun(delete.query, session: session).collect(session.cancellation), table)
        let old = rows.map { $0.plain(columns: 0..<table.columns.count) }
        return try await finish(RowChanges(old: old, shown: rows), table, delete.returning, session, transaction)
    }

    /// Makes sure that the transaction may write to a table: its lock, or a block's epoch.
    private func begin(_ table: CatalogObject, _ session: SessionContext, _ transaction: OpenTransaction) async throws(SQLError) {
        try await untilRestored(session.cancellation)
        if transaction.isBlock {
            _ = try await pin(transaction)
        } else {
            try await locks.lock(table.id, for: transaction, unless: session.cancellation)
        }
        guard catalog.object(table.id) != nil else { throw SQLError(.undefinedTable, "relation \"\(table.name)\" does not exist") }
        try requireReady([table.id])
    }

    /// Evaluates RETURNING, then adds the changes to the transaction.
    private func finish(
        _ changes: RowChanges, _ table: CatalogObject, _ returning: BoundQuery?, _ session: SessionContext, _ transaction: OpenTransaction
    ) async throws(SQLError) -> WriteAnswer {
        var answer = WriteAnswer(count: changes.shown.reduce(0) { $0 + $1.count })
        if let returning { answer.returned = try await queryRun(returning, session: session, given: changes.shown).collect(session.cancellation) }
        transaction.add(changes.old.map(\.negated) + changes.new, to: table)
        return answer
    }

    // MARK: Rows

    /// Each row once, and as often as its weight says.
    private static func repeated(_ batches: [DeltaBatch]) -> [DeltaBatch] {
        batches.flatMap { batch -> [DeltaBatch] in
            guard batch.weights != nil else { return [batch] }
            var builder = BatchBuilder(batch.columns.map(\.type))
            for row in 0..<batch.count { for _ in 0..<batch.weight(row) { builder.append(batch.columns, row: row, weight: 1) } }
            return builder.take()
        }
    }

    /// The rows with new numbers.
    private func numbered(_ batch: DeltaBatch, _ column: Int) -> DeltaBatch {
        let numbers = Column(.int64, uninitialized: batch.count)
        for row in 0..<batch.count { numbers.values(Int64.self)[row] = nextRowID + Int64(row) }
        nextRowID += Int64(batch.count)
        var columns = batch.columns
        columns[column] = numbers
        return batch.with(columns: columns)
    }

    /// Of several rows about one row of the table the first: a join may find many partners, and only one counts.
    private static func firstByKey(_ batches: [DeltaBatch], _ table: CatalogObject) -> [DeltaBatch] {
        let index = KeyIndex(table)
        var seen = 0
        return batches.compactMap { batch in
            var first = Selection(capacity: batch.count)
            for (row, number) in index.numbers(of: batch).enumerated() where number == seen {
                first.append(row)
                seen += 1
            }
            guard first.count > 0 else { return nil }
            return batch.gather(first.rows, count: first.count).plain(columns: batch.columns.indices)
        }
    }

    /// The changes that rows with a table's columns as they are, and behind these as they will be, amount to.
    func replacements(
        of rows: [DeltaBatch], _ table: CatalogObject, assigned: [Int], _ transaction: OpenTransaction
    ) async throws(SQLError) -> RowChanges {
        let width = table.columns.count
        let old = rows.map { $0.plain(columns: 0..<width) }
        let new = rows.map { $0.plain(columns: width..<2 * width) }
        try Self.check(new, table)
        if assigned.contains(where: table.primaryKey.contains) { try await checkUnique(new, replacing: old, table, transaction) }
        return RowChanges(old: old, new: new, shown: rows)
    }

    // MARK: Constraints

    private static func check(_ rows: [DeltaBatch], _ table: CatalogObject) throws(SQLError) {
        for (index, column) in table.columns.enumerated() where !column.isNullable || column.lengthMax != nil {
            for batch in rows {
                let values = batch.columns[index]
                if !column.isNullable, !values.hasNoNulls, let row = (0..<batch.count).first(where: values.isNull) {
                    throw SQLError(
                        .notNullViolation, "null value in column \"\(column.name)\" of relation \"\(table.name)\" violates not-null constraint",
                        detail: "Failing row contains (\(text(of: batch, row: row, table))).")
                }
                guard let length = column.lengthMax else { continue }
                for row in 0..<batch.count where !values.isNull(row) {
                    // A text has no more characters than bytes.
                    let view = values.values(StringView.self)[row]
                    guard view.count > length, String(view).unicodeScalars.count > length else { continue }
                    throw SQLError(
                        .stringDataRightTruncation, "value too long for type character varying(\(length))", detail: "It is for column \"\(column.name)\".")
                }
            }
        }
    }

    /// Whether the keys of new rows are each others' or those of rows that stay.
    func checkUnique(
        _ new: [DeltaBatch], replacing old: [DeltaBatch], _ table: CatalogObject, _ transaction: OpenTransaction
    ) async throws(SQLError) {
        let index = KeyIndex(table)
        let replaced = Set(old.flatMap(index.numbers))
        var seen: Set<Int> = []
        var others = BatchBuilder(table.columns.map(\.type))
        for batch in new {
            for (row, number) in index.numbers(of: batch).enumerated() {
                guard seen.insert(number).inserted else { throw Self.duplicate(batch, row: row, table) }
                if !replaced.contains(number) { others.append(batch.columns, row: row, weight: 1) }
            }
        }
        let keys = DeltaBatch.keys(of: others.take(), table)
        if let stored = try await storedRows(of: table, underKeys: keys, transaction).first { throw Self.duplicate(stored, row: 0, table) }
    }

    private static func duplicate(_ batch: DeltaBatch, row: Int, _ table: CatalogObject) -> SQLError {
        let names = table.primaryKey.map { table.columns[$0].name }.joined(separator: ", ")
        let values = table.primaryKey.map { batch.columns[$0].text(row) ?? "null" }.joined(separator: ", ")
        return SQLError(
            .uniqueViolation, "duplicate key value violates unique constraint \"\(table.primaryKeyName)\"", detail: "Key (\(names))=(\(values)) already exists.")
    }

    private static func text(of batch: DeltaBatch, row: Int, _ table: CatalogObject) -> String {
        table.columns.indices.filter { !table.columns[$0].isHidden }.map { batch.columns[$0].text(row) ?? "null" }.joined(separator: ", ")
    }
}
