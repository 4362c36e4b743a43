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
    /// What an INSERT does to its table.
    package struct TableDelta: Sendable {
        package var table: ObjectID
        package var batches: [DeltaBatch]
        /// Rows that the statement inserted: the command's count.
        package var insertedCount: Int
        /// The inserted rows, for RETURNING.
        package var inserted: [DeltaBatch]
    }

    /// Evaluates an INSERT against the newest state and the session's own uncommitted writes.
    ///
    /// A row whose primary key is there already replaces the old one, as RisingWave documents; of several rows with one key in
    /// one statement the last stays.
    /// - Throws: 23502 for a missing value.
    package func delta(of insert: BoundInsert, session: SessionContext) async throws(SQLError) -> TableDelta {
        let rows = try await queryRun(insert.query, session: session).collect()
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
        let count = rows.reduce(0) { total, batch in (0..<batch.count).reduce(total) { $0 + Int(batch.weight($1)) } }
        guard !insert.table.primaryKey.isEmpty else {
            return TableDelta(table: insert.table.id, batches: rows, insertedCount: count, inserted: rows)
        }
        let key = insert.table.primaryKey
        let kept = Self.lastByKey(rows, key: key, types: insert.table.columns.map(\.type))
        let replaced = await storedRows(insert.table.id, withKeysOf: kept, key: key)
        let pending = Consolidate.consolidate(replaced + (session.uncommitted[insert.table.id] ?? []))
        let old = Self.rows(of: pending, withKeysOf: kept, key: key)
        return TableDelta(table: insert.table.id, batches: Self.negated(old) + kept, insertedCount: count, inserted: kept)
    }

    /// Makes deltas part of one epoch; they are visible when this returns.
    package func commit(_ deltas: [ObjectID: [DeltaBatch]]) async {
        let rows = deltas.mapValues(Consolidate.consolidate).filter { !$0.value.isEmpty }
        guard !rows.isEmpty else { return }
        _ = await conductor.inject(rows.map { ($0.key, $0.value) })
    }

    /// The lock of a table: statements that write it go one after another.
    package func tableLock(_ id: ObjectID) -> TableLock {
        if let lock = tableLocks[id] { return TableLock(lock: lock) }
        let lock = AsyncLock()
        tableLocks[id] = lock
        return TableLock(lock: lock)
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

    /// The rows of `batches` whose key some row of `wanted` has.
    private static func rows(of batches: [DeltaBatch], withKeysOf wanted: [DeltaBatch], key: [Int]) -> [DeltaBatch] {
        guard let types = (wanted.first ?? batches.first)?.columns.map(\.type) else { return [] }
        let index = KeyIndex(types: key.map { types[$0] })
        for batch in wanted { _ = index.groups(of: batch, key: key) }
        let known = index.count
        var builder = BatchBuilder(types)
        for batch in batches {
            let groups = index.groups(of: batch, key: key)
            for row in 0..<batch.count where groups[row] < known { builder.append(batch.columns, row: row, weight: batch.weight(row)) }
        }
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
    private var seen = 0

    init(types: [SQLType]) { table = StateTable(columns: types, payloadBytes: 8) }

    var count: Int { table.count }

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

/// Held while a statement evaluates and commits its write.
package struct TableLock: Sendable {
    let lock: AsyncLock
    package func acquire() async { await lock.lock() }
    package func release() { lock.unlock() }
}
