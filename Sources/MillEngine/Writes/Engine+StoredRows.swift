import MillBase
import MillCatalog
import MillColumnar
import MillDataflow
import MillState

/// Which rows of tables a transaction sees.
extension Engine {
    /// The epoch that a block sees, with images of everything stored: what it reads later belongs to the same moment.
    func pin(_ transaction: OpenTransaction) async throws(SQLError) -> OpenTransaction.Pin {
        if let pin = transaction.pin { return pin }
        let stored = catalog.objects.filter { ($0.kind == .table || $0.kind == .materializedView) && !creating.contains($0.id) }
        let (record, tables) = try await conductor.snapshots(stored.map(\.id))
        let pin = OpenTransaction.Pin(record: record, tables: tables)
        transaction.pin = pin
        return pin
    }

    /// Images of stored rows as a transaction sees them, without what it or others have not published; of the last epoch without one.
    func images(
        _ ids: [ObjectID], _ transaction: OpenTransaction?
    ) async throws(SQLError) -> (record: EpochRecord, tables: [ObjectID: [TableSnapshot]]) {
        guard let transaction, transaction.isBlock else { return try await conductor.snapshots(ids) }
        var pin = try await pin(transaction)
        // What was created after the block began is seen as it first was read.
        let missing = ids.filter { pin.tables[$0] == nil }
        if !missing.isEmpty {
            pin.tables.merge(try await conductor.snapshots(missing).tables) { old, _ in old }
            transaction.pin = pin
        }
        return (pin.record, pin.tables)
    }

    /// What a transaction adds to images of an epoch: changes that are ordered but not in it yet, and the transaction's own.
    func unpublished(_ table: ObjectID, after record: EpochRecord, _ staged: [StagedTransaction], _ transaction: OpenTransaction?) -> [DeltaBatch] {
        staged.filter { $0.position > record.dmlPosition }.flatMap { $0.changes[table]?.batches ?? [] } + (transaction?.changes[table]?.batches ?? [])
    }

    /// The rows of a table under some keys, as a transaction sees them; as published without one.
    ///
    /// - Parameter keys: batches of the columns of the table's `rowKey`, no key twice.
    func storedRows(of table: CatalogObject, underKeys keys: [DeltaBatch], _ transaction: OpenTransaction?) async throws(SQLError) -> [DeltaBatch] {
        guard !keys.isEmpty else { return [] }
        var rows: [DeltaBatch]
        switch transaction {
        case nil: rows = try await publishedRows(of: table, underKeys: keys).rows
        case let transaction? where transaction.isBlock: rows = try await pinnedRows(of: table, underKeys: keys, transaction)
        default: rows = try await newestRows(of: table, underKeys: keys)
        }
        rows += transaction?.changes[table.id]?.rows(underKeys: keys) ?? []
        return Consolidate.consolidate(rows)
    }

    /// The rows under some keys with all changes that are ordered. They stay so while the table's write lock is held.
    func newestRows(of table: CatalogObject, underKeys keys: [DeltaBatch]) async throws(SQLError) -> [DeltaBatch] {
        // Before the look-up: what is published meanwhile is still in this list, and left out by its position.
        let staged = staged
        let (record, rows) = try await publishedRows(of: table, underKeys: keys)
        return Consolidate.consolidate(
            rows + staged.filter { $0.position > record.dmlPosition }.flatMap { $0.changes[table.id]?.rows(underKeys: keys) ?? [] })
    }

    /// So few keys are found sooner than all workers are woken.
    private static let keysLookedForAtOnceMax = 64

    private func publishedRows(
        of table: CatalogObject, underKeys keys: [DeltaBatch]
    ) async throws(SQLError) -> (record: EpochRecord, rows: [DeltaBatch]) {
        let (id, key) = (table.id, table.rowKey)
        let find: @Sendable (WorkerCircuit) -> [DeltaBatch] = { circuit in
            guard let stored = circuit.materialized(id)?.table else { return [] }
            return keys.flatMap { stored.rows(underKeys: $0, in: key) }
        }
        let areFew = keys.reduce(0) { $0 + $1.count } <= Self.keysLookedForAtOnceMax
        let (record, parts) = areFew ? try await conductor.look(find) : try await conductor.onWorkers(find)
        return (record, parts.flatMap { $0 })
    }

    /// The rows under some keys in the epoch that a block sees: those of now while nobody changed the table since, else found by
    /// reading all hashes of the image, which has no directory.
    private func pinnedRows(
        of table: CatalogObject, underKeys keys: [DeltaBatch], _ transaction: OpenTransaction
    ) async throws(SQLError) -> [DeltaBatch] {
        let (record, images) = try await images([table.id], transaction)
        let rows = try await publishedRows(of: table, underKeys: keys).rows
        if lastChanges[table.id] ?? .zero <= record.dmlPosition { return rows }
        var hashes: Set<UInt64> = []
        for batch in keys {
            withUnsafeTemporaryAllocation(of: UInt64.self, capacity: batch.count) { buffer in
                guard let base = buffer.baseAddress else { return }
                RowHash.hash(batch.columns, count: batch.count, into: base)
                for row in 0..<batch.count { hashes.insert(max(base[row], 1)) }
            }
        }
        let candidates = TableChanges(table)
        for image in images[table.id] ?? [] {
            candidates.add(
                image.batches(columns: Array(table.columns.indices), weightOffset: MaterializeOperator.weightOffset) { hashes.contains($0) })
        }
        return candidates.rows(underKeys: keys)
    }
}
