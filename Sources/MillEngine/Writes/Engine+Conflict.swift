import MillBase
import MillBinder
import MillCatalog
import MillColumnar
import MillConnectorKit
import MillPlan

/// INSERT into a table with a primary key: what becomes of rows whose key is there already.
extension Engine {
    /// Without ON CONFLICT a row whose key is there replaces the stored one, and of several rows with one key the last stays
    /// (docs/decisions/007-insert-on-an-existing-key-replaces.md).
    func keyedChanges(
        of rows: [DeltaBatch], _ insert: BoundInsert, session: SessionContext, _ transaction: OpenTransaction
    ) async throws(SQLError) -> RowChanges {
        let table = insert.table
        let stored = try await storedRows(of: table, underKeys: DeltaBatch.keys(of: rows, table), transaction)
        switch insert.conflict {
        case nil: return RowChanges(old: stored, new: Self.lastByKey(rows, table), shown: rows)
        case .nothing:
            let new = Self.split(rows, stored, table).fresh
            return RowChanges(new: new, shown: new)
        case .update(let query, let assigned):
            let (fresh, met, repeated) = Self.split(rows, stored, table)
            guard !repeated else {
                throw SQLError(
                    .cardinalityViolation, "ON CONFLICT DO UPDATE command cannot affect row a second time",
                    hint: "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.")
            }
            let updated = met.isEmpty ? [] : try await queryRun(query, session: session, given: met).collect(session.cancellation)
            var changes = try await replacements(of: updated, table, assigned: assigned, transaction)
            if assigned.contains(where: table.primaryKey.contains) {
                try await checkUnique(changes.new + fresh, replacing: changes.old, table, transaction)
            }
            changes.new += fresh
            changes.shown = changes.new
            return changes
        }
    }

    /// Of rows with equal keys the last one.
    private static func lastByKey(_ batches: [DeltaBatch], _ table: CatalogObject) -> [DeltaBatch] {
        let index = KeyIndex(table)
        let numbers = batches.map(index.numbers)
        var left: Set<Int> = []
        var places: [(batch: Int, row: Int)] = []
        for batch in batches.indices.reversed() {
            for row in numbers[batch].indices.reversed() where left.insert(numbers[batch][row]).inserted { places.append((batch, row)) }
        }
        guard places.count < batches.reduce(0, { $0 + $1.count }) else { return batches }
        var builder = BatchBuilder(table.columns.map(\.type))
        for place in places.reversed() { builder.append(batches[place.batch].columns, row: place.row, weight: 1) }
        return builder.take()
    }

    /// The first row of each key that is not stored; the first of each that is, with the stored row's columns before its own; and
    /// whether there were further ones.
    private static func split(
        _ rows: [DeltaBatch], _ stored: [DeltaBatch], _ table: CatalogObject
    ) -> (fresh: [DeltaBatch], met: [DeltaBatch], repeated: Bool) {
        let types = table.columns.map(\.type)
        let index = KeyIndex(table)
        // A stored row's number is its place.
        var places: [(batch: Int, row: Int)] = []
        for (batch, rows) in stored.enumerated() { for row in index.numbers(of: rows).indices { places.append((batch, row)) } }
        var fresh = BatchBuilder(types)
        var olds = BatchBuilder(types)
        var news = BatchBuilder(types)
        var seen: Set<Int> = []
        var repeated = false
        for batch in rows {
            for (row, number) in index.numbers(of: batch).enumerated() {
                guard seen.insert(number).inserted else {
                    repeated = true
                    continue
                }
                guard number < places.count else {
                    fresh.append(batch.columns, row: row, weight: 1)
                    continue
                }
                olds.append(stored[places[number].batch].columns, row: places[number].row, weight: 1)
                news.append(batch.columns, row: row, weight: 1)
            }
        }
        // Both were filled row by row, so their batches end at the same rows.
        let met = zip(olds.take(), news.take()).map { DeltaBatch(columns: $0.columns + $1.columns, count: $0.count) }
        return (fresh.take(), met, repeated)
    }
}
