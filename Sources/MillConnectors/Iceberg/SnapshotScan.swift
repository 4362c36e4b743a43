import MillBase
import MillColumnar
import MillConnectorKit
import MillIceberg

/// The rows of one snapshot, file after file.
final class SnapshotScan: TableScan {
    private let table: IcebergTable
    private let plan: ScanPlan
    private let fieldIDs: [Int]
    private let conditions: [ScanCondition]
    private var nextTask = 0
    private var reader: DataFileReader?
    /// Parts of a batch of the file that are still to be given, last one first.
    private var parts: [DeltaBatch] = []

    /// - Parameter columns: by the schema that the table was described with.
    init(_ table: IcebergTable, _ state: CatalogTable, columns: [Int], where bounds: [ScanBound]) throws(IcebergError) {
        self.table = table
        let schema = state.schemaID.flatMap { table.metadata.schema(id: $0) } ?? table.metadata.currentSchema
        guard columns.allSatisfy(schema.fields.indices.contains) else { throw .missing("schema of \(state) that the query was bound with") }
        fieldIDs = columns.map { schema.fields[$0].id }
        conditions = bounds.compactMap { bound in
            guard schema.fields.indices.contains(bound.column) else { return nil }
            return ScanCondition(schema.fields[bound.column].id, ScanCondition.Kind(bound.kind))
        }
        if let id = state.snapshotID {
            var plan = try ScanPlan(table, .snapshot(id), where: conditions)
            // A branch's rows have the table's newest columns, whatever the snapshot was written with.
            plan.schema = schema
            self.plan = plan
        } else {
            plan = try ScanPlan(table, .reference("main"), isNewAllowed: true)
        }
    }

    func next() throws(SQLError) -> DeltaBatch? {
        do throws(IcebergError) {
            while true {
                if let part = parts.popLast() { return part }
                guard let reader else {
                    guard nextTask < plan.tasks.count else { return nil }
                    self.reader = try DataFileReader(plan.tasks[nextTask], plan, table, fieldIDs: fieldIDs, where: conditions)
                    nextTask += 1
                    continue
                }
                guard let batch = try reader.next() else {
                    self.reader = nil
                    continue
                }
                guard batch.count > 0 else { continue }
                DeltaBatch(columns: batch.columns, count: batch.count).forEachPart { parts.append($0) }
                parts.reverse()
            }
        } catch { throw error.sqlError }
    }
}

extension ScanCondition.Kind {
    fileprivate init(_ kind: ScanBound.Kind) {
        switch kind {
        case .between(let lower, let upper): self = .between(lower, upper)
        case .isNull: self = .isNull
        case .isNotNull: self = .isNotNull
        case .oneOf(let values):
            func isLess(_ a: Scalar, _ b: Scalar) -> Bool { ScalarOrder.compare(a, b) < 0 }
            self = values.isEmpty ? .isNotNull : .between(values.min(by: isLess), values.max(by: isLess))
        }
    }
}

/// Rows that are there already.
final class BatchScan: TableScan {
    private var batches: [DeltaBatch]

    init(_ rows: [[Scalar]], _ columns: [Field], wanted: [Int]) {
        batches = DeltaBatch.batches(rows, columns).reversed().map { batch in batch.with(columns: wanted.map { batch.columns[$0] }) }
    }

    func next() throws(SQLError) -> DeltaBatch? { batches.popLast() }
}
