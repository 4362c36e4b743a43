package import MillBase
package import MillBinder
import MillCatalog
package import MillColumnar
import MillConnectorKit
import MillDataflow
import MillPlan
import MillState

/// INSERT: a statement becomes the delta it makes, and the delta becomes part of one epoch.
extension Engine {
    /// The rows that an INSERT stores, of all the table's columns.
    package struct InsertedRows: Sendable {
        package var batches: [DeltaBatch]
        package var count: Int
    }

    /// Evaluates an INSERT's rows against the newest state and the session's own uncommitted writes.
    /// - Throws: 23502 for a missing value, 22001 for a text that its column is too short for.
    package func rows(of insert: BoundInsert, session: SessionContext) async throws(SQLError) -> InsertedRows {
        try requireReady([insert.table.id])
        let rows = try await queryRun(insert.query, session: session).collect(session.cancellation)
        for batch in rows {
            for index in insert.notNullColumns {
                for row in 0..<batch.count where batch.columns[index].isNull(row) {
                    let column = insert.table.columns[index].name
                    throw SQLError(
                        .notNullViolation, "null value in column \"\(column)\" of relation \"\(insert.table.name)\" violates not-null constraint",
                        detail: "Failing row contains (\(Self.text(of: batch, row: row))).")
                }
            }
        }
        try Self.checkLengths(rows, insert.table)
        return InsertedRows(
            batches: rows, count: rows.reduce(0) { total, batch in (0..<batch.count).reduce(total) { $0 + Int(batch.weight($1)) } })
    }

    private static func checkLengths(_ rows: [DeltaBatch], _ table: CatalogObject) throws(SQLError) {
        for (index, column) in table.columns.enumerated() {
            guard let length = column.lengthMax else { continue }
            for batch in rows {
                for row in 0..<batch.count where !batch.columns[index].isNull(row) {
                    // A text has no more characters than bytes.
                    let view = batch.columns[index].values(StringView.self)[row]
                    guard view.count > length, String(view).unicodeScalars.count > length else { continue }
                    throw SQLError(
                        .stringDataRightTruncation, "value too long for type character varying(\(length))", detail: "It is for column \"\(column.name)\".")
                }
            }
        }
    }

    /// What inserting rows does to a table as it is stored now.
    ///
    /// A row whose primary key is there already replaces the old one, as RisingWave documents; of several rows with one key the
    /// last stays.
    func delta(of rows: [DeltaBatch], in table: CatalogObject) async -> [DeltaBatch] {
        guard !table.primaryKey.isEmpty else { return rows }
        let kept = Self.lastByKey(rows, key: table.primaryKey, types: table.columns.map(\.type))
        return Self.negated(await storedRows(table.id, withKeysOf: kept, key: table.primaryKey)) + kept
    }

    /// Makes a transaction's inserted rows part of one epoch; they are visible when this returns.
    ///
    /// One transaction commits at a time, so that the rows it replaces are still those it saw.
    /// - Throws: 42P01 when a table was dropped meanwhile; then nothing is stored.
    package func commit(_ writes: [ObjectID: [DeltaBatch]]) async throws(SQLError) {
        await commits.lock()
        defer { commits.unlock() }
        var deltas: [(table: ObjectID, batches: [DeltaBatch])] = []
        for (id, rows) in writes.sorted(by: { $0.key < $1.key }) {
            guard let table = catalog.object(id) else { throw SQLError(.undefinedTable, "a table of this transaction was dropped") }
            let delta = Consolidate.consolidate(await delta(of: rows, in: table))
            if !delta.isEmpty { deltas.append((id, delta)) }
        }
        if !deltas.isEmpty { try await conductor.inject(deltas) }
    }

    /// Rows already stored under the keys of `rows`.
    private func storedRows(_ table: ObjectID, withKeysOf rows: [DeltaBatch], key: [Int]) async -> [DeltaBatch] {
        let (_, parts) = await conductor.onWorkers { circuit -> [DeltaBatch] in
            guard let stored = circuit.materialized(table)?.table else { return [] }
            return rows.flatMap { Self.matches(in: stored, of: $0, key: key) }
        }
        return parts.flatMap { $0 }
    }

    /// On the worker's thread: one probe per key.
    private static func matches(in table: StateTable, of batch: DeltaBatch, key: [Int]) -> [DeltaBatch] {
        let keys = key.map { batch.columns[$0] }
        var hashes = [UInt64](repeating: 0, count: batch.count)
        hashes.withUnsafeMutableBufferPointer { buffer in
            if let base = buffer.baseAddress { RowHash.hash(keys, count: batch.count, into: base) }
        }
        var found: [UInt32] = []
        for row in 0..<batch.count {
            table.forEach(hash: hashes[row]) { number in
                if zip(key, keys).allSatisfy({ table.equals(number, $0, $1, row) }) { found.append(number) }
                return true
            }
        }
        guard !found.isEmpty else { return [] }
        return [DeltaBatch(columns: table.gather(rows: found, count: found.count), count: found.count)]
    }

    /// Of rows with equal keys the last one.
    private static func lastByKey(_ batches: [DeltaBatch], key: [Int], types: [SQLType]) -> [DeltaBatch] {
        let index = KeyIndex(types: key.map { types[$0] })
        var last: [Int: (Int, Int)] = [:]
        for (number, batch) in batches.enumerated() {
            let groups = index.groups(of: batch, key: key)
            for row in 0..<batch.count { last[groups[row]] = (number, row) }
        }
        var builder = BatchBuilder(types)
        for (number, row) in last.values.sorted(by: <) { builder.append(batches[number].columns, row: row, weight: 1) }
        return builder.take()
    }

    private static func negated(_ batches: [DeltaBatch]) -> [DeltaBatch] {
        batches.map { batch in
            let weights = Weights(count: batch.count)
            for row in 0..<batch.count { weights.values[row] = -batch.weight(row) }
            return DeltaBatch(columns: batch.columns, count: batch.count, weights: weights)
        }
    }

    private static func text(of batch: DeltaBatch, row: Int) -> String {
        batch.columns.map { $0.text(row) ?? "null" }.joined(separator: ", ")
    }
}

/// Numbers distinct keys in the order they are first seen.
private final class KeyIndex {
    private let table: StateTable

    init(types: [SQLType]) { table = StateTable(columns: types, payloadBytes: 8) }

    func groups(of batch: DeltaBatch, key: [Int]) -> [Int] {
        var groups: [Int] = []
        var start = 0
        while start < batch.count {
            let part = batch.count <= Limits.batchRowsMax ? batch : batch.slice(start, min(start + Limits.batchRowsMax, batch.count))
            let keys = key.map { part.columns[$0] }
            var hashes = [UInt64](repeating: 0, count: part.count)
            var rows = [RowNumber](repeating: 0, count: part.count)
            var inserted = Selection(capacity: part.count)
            hashes.withUnsafeMutableBufferPointer { hashes in
                rows.withUnsafeMutableBufferPointer { rows in
                    RowHash.hash(keys, count: part.count, into: hashes.baseAddress!)
                    table.findOrInsert(keys, hashes: hashes.baseAddress!, count: part.count, rows: rows.baseAddress!, inserted: &inserted)
                }
            }
            // Rows are numbered in the order of insertion, because nothing is removed.
            groups += rows.map { Int($0) }
            start += part.count
        }
        return groups
    }
}
