package import MillBase
import MillCatalog
import MillColumnar
import MillDataflow
import MillLog

/// A transaction that has its place among all others, and may not be visible yet.
struct StagedTransaction: Sendable {
    var position: DMLPosition
    var changes: [ObjectID: TableChanges]
    /// Handed to the tables' inputs: an epoch will have it.
    var isInjected = false
}

/// How a transaction takes effect.
///
/// 1. Its tables' write locks are taken. A statement outside a block has them since it began; a block takes them in the order of ids,
///    and finds out whether the rows it changes are still those it saw.
/// 2. Staged: it gets its position. Who writes to the tables next sees its changes, so the locks are free again: while it is synced,
///    others are evaluated, and their syncs are shared.
/// 3. Durable: the DML log has synced its record, and those of all before it.
/// 4. Injected, in the order of positions, into one epoch.
/// 5. Visible once a published epoch names its position; only now the statement is answered.
///
/// When the log fails nothing that waits for it takes effect, and nothing is accepted after.
extension Engine {
    /// Ends a transaction: its changes are durable and visible when this returns.
    ///
    /// - Throws: 40001 when others changed the same rows, 42P01 when a table was dropped meanwhile (nothing is stored); 58030 when the
    ///   log failed, 57P01 when the server stops before the changes are visible; its detail says whether they are stored.
    package func commit(_ transaction: OpenTransaction) async throws(SQLError) {
        defer { locks.unlockAll(of: transaction) }
        let changed = transaction.changes.filter { !$0.value.isEmpty }.keys.sorted()
        guard !changed.isEmpty else { return }
        if transaction.isBlock {
            for id in changed { try await locks.lock(id, for: transaction, unless: nil) }
            for id in changed { if let changes = transaction.changes[id] { try await validate(changes, try table(id)) } }
        }
        let position = try stage(transaction, changed)
        locks.unlockAll(of: transaction)
        try await publish(upTo: position)
    }

    /// Forgets a transaction that will not be committed.
    nonisolated func abandon(_ transaction: OpenTransaction) { locks.unlockAll(of: transaction) }

    private func table(_ id: ObjectID) throws(SQLError) -> CatalogObject {
        guard let table = catalog.object(id) else { throw SQLError(.undefinedTable, "a table of this transaction was dropped") }
        return table
    }

    /// Whether a block's changes still fit the rows that are there: what it takes away is there, and what it adds has no other row's
    /// key.
    private func validate(_ changes: TableChanges, _ table: CatalogObject) async throws(SQLError) {
        var rows = changes.batches
        // A new row's number is nobody else's.
        if table.rowIDColumn != nil { rows = rows.compactMap(Self.taken) }
        let now = try await newestRows(of: table, underKeys: DeltaBatch.keys(of: rows, table))
        let after = Consolidate.consolidate(now + rows)
        let index = KeyIndex(table)
        var seen: Set<Int> = []
        for batch in after {
            for (row, number) in index.numbers(of: batch).enumerated() {
                guard batch.weight(row) == 1, seen.insert(number).inserted else {
                    throw SQLError(
                        .serializationFailure, "could not serialize access due to concurrent update",
                        detail: "Another transaction changed a row of table \"\(table.name)\" that this one changes too.", hint: "Run the transaction again.")
                }
            }
        }
    }

    /// The rows of negative weight; nil when there are none.
    private static func taken(_ batch: DeltaBatch) -> DeltaBatch? {
        var rows = Selection(capacity: batch.count)
        for row in 0..<batch.count where batch.weight(row) < 0 {
            rows.append(row)
        }
        return rows.count == 0 ? nil : batch.gather(rows.rows, count: rows.count)
    }

    // MARK: The order of transactions

    /// Gives a transaction its position; without waiting for anything, so the order is that of the log.
    private func stage(_ transaction: OpenTransaction, _ changed: [ObjectID]) throws(SQLError) -> DMLPosition {
        for id in changed { _ = try table(id) }
        if let trouble = keeper?.publishingTrouble { throw trouble }
        let changes = transaction.changes.filter { changed.contains($0.key) }
        let position: DMLPosition
        if let dmlLog {
            let tables = changed.map { DMLTransaction.TableChange(table: $0, batches: changes[$0]?.batches ?? []) }
            do throws(LogError) { position = try dmlLog.write(DMLTransaction(changes: tables, nextRowID: nextRowID)) } catch { throw error.sqlError }
        } else {
            position = lastPosition.next
        }
        lastPosition = position
        for id in changed { lastChanges[id] = position }
        staged.append(StagedTransaction(position: position, changes: changes))
        return position
    }

    private func publish(upTo position: DMLPosition) async throws(SQLError) {
        if let dmlLog {
            do throws(LogError) { try await dmlLog.sync(upTo: position) } catch {
                staged.removeAll { $0.position == position }
                var error = error.sqlError
                error.detail = "Whether the transaction was stored shows when the server is started again."
                error.hint = "Nothing more can be written until the server is started again."
                throw error
            }
        }
        injectStaged(upTo: position)
        let record: EpochRecord
        do throws(SQLError) { record = try await conductor.wait { $0.dmlPosition >= position } } catch {
            var error = error
            if dmlLog != nil { error.detail = "The transaction is stored: its changes are visible after the next start." }
            throw error
        }
        staged.removeAll { $0.isInjected && $0.position <= record.dmlPosition }
    }

    /// Hands durable transactions to the tables, all that are due at once.
    private func injectStaged(upTo position: DMLPosition) {
        var rows: [(table: ObjectID, batches: [DeltaBatch])] = []
        for index in staged.indices where !staged[index].isInjected && staged[index].position <= position {
            staged[index].isInjected = true
            rows += staged[index].changes.sorted { $0.key < $1.key }.map { ($0.key, $0.value.batches) }
        }
        if !rows.isEmpty { conductor.inject(rows, upTo: position) }
    }

    // MARK: Recovery

    /// Rows that recovery puts into one epoch, about.
    private static let replayRowsMin = 65_536

    private static func joined(_ batches: [DeltaBatch]) -> [DeltaBatch] {
        guard let first = batches.first else { return [] }
        var builder = BatchBuilder(first.columns.map(\.type))
        for batch in batches { builder.append(batch) }
        return builder.take()
    }

    /// Puts what the DML log has into the tables, behind what each of them holds; visible when this returns. Before anything is written,
    /// and after the tables exist.
    ///
    /// - Parameters:
    ///   - position: the last transaction that the rows of tables have.
    ///   - stored: the same of tables that have fewer.
    /// - Returns: the last transaction in the log.
    /// - Throws: XX001 when the log cannot be read.
    @discardableResult
    package func replay(after position: DMLPosition, tables stored: [ObjectID: DMLPosition] = [:]) async throws(SQLError) -> DMLPosition {
        guard let dmlLog else { return lastPosition }
        let first = stored.values.min().map { min($0, position) } ?? position
        let catalog = catalog
        let conductor = conductor
        let gate = restoration.gate
        // An epoch that is run again has the transactions that it had.
        let cuts = Set(conductor.rerunPositions)
        let last = try await offActor { () throws(SQLError) in
            var last = first
            var pending: [ObjectID: [DeltaBatch]] = [:]
            var rowCount = 0
            func inject() {
                // Small changes of a table become one batch: an epoch has many transactions here.
                let rows = pending.sorted { $0.key < $1.key }.map { (table: $0.key, batches: Self.joined($0.value)) }
                conductor.inject(rows, upTo: max(last, position))
                (pending, rowCount) = ([:], 0)
            }
            try dmlLog.read(from: first.next, types: { catalog.object($0)?.columns.map(\.type) }) { (number, transaction) throws(SQLError) in
                if let failure = gate.failure { throw failure }
                for change in transaction.changes where number > stored[change.table] ?? position {
                    pending[change.table, default: []] += change.batches
                    rowCount += change.batches.reduce(0) { $0 + $1.count }
                }
                last = number
                if rowCount >= Self.replayRowsMin || cuts.contains(number) { inject() }
            }
            inject()
            return last
        }
        lastPosition = dmlLog.durablePosition
        nextRowID = max(nextRowID, dmlLog.nextRowID)
        let reached = last
        try await conductor.wait { $0.dmlPosition >= reached }
        return lastPosition
    }
}
