import MillBase
import MillColumnar
import MillConnectorKit
import MillIceberg
import MillIO
import Synchronization

/// Watches a table for new snapshots, and says what rows follow upon a place in it.
///
/// It asks the catalog every so often once somebody listens, and whenever it is told to. A catalog that is away changes nothing: `status`
/// says so. Threading: any thread; `refresh` and `rows` block.
final class TableFollower: Sendable {
    /// What a table was when the catalog was asked last.
    struct Head: Sendable {
        var table: IcebergTable
        /// Of the main branch, newest first.
        var lineage: [Snapshot]
        /// For each column of the source, the table's.
        var fieldIDs: [Int]

        /// Behind the newest snapshot; nil when its number is beyond what can be counted, which the reader tells.
        var end: TablePosition? { try? TablePosition(lineage.first?.sequenceNumber ?? 0, .done) }
    }

    private struct State {
        var head: Head?
        /// What was wrong when the catalog was asked last.
        var failure: SQLError?
        /// Goes up when either changes.
        var version = 0
        var tableUUID: String?
        /// Those that the columns had first.
        var fieldIDs: [Int]?
        var listeners: [Int: @Sendable () -> Void] = [:]
        var listenerCount = 0
        var watch: Task<Void, Never>?
    }

    private let options: IcebergSourceOptions
    private let source: @Sendable () throws(SQLError) -> IcebergCatalog.Source
    private let fields: [Field]
    private let clock: any Clock
    private let gate = FetchGate()
    private let state = Mutex(State())

    init(
        _ options: IcebergSourceOptions, _ source: @escaping @Sendable () throws(SQLError) -> IcebergCatalog.Source, fields: [Field],
        clock: any Clock
    ) {
        self.options = options
        self.source = source
        self.fields = fields
        self.clock = clock
    }

    deinit { state.withLock { $0.watch }?.cancel() }

    // MARK: What is known

    var status: String? { state.withLock { $0.failure }.flatMap { $0.mayPass ? $0.message : nil } }
    var tableUUID: String? { state.withLock { $0.tableUUID } }
    func expect(tableUUID: String) { state.withLock { $0.tableUUID = tableUUID } }
    /// nil before the catalog has answered.
    var head: Head? { state.withLock { $0.head } }
    /// Another one when there may be other answers.
    var version: Int { state.withLock { $0.version } }

    // MARK: Watching

    /// Calls `body`, from any thread, when `version` has changed, until `stopListening` is called with the answer.
    func listen(_ body: @escaping @Sendable () -> Void) -> Int {
        state.withLock { state in
            state.listenerCount += 1
            state.listeners[state.listenerCount] = body
            if state.watch == nil { state.watch = watch() }
            return state.listenerCount
        }
    }

    func stopListening(_ listener: Int) { state.withLock { $0.listeners[listener] = nil } }

    /// Does not keep the follower alive.
    private func watch() -> Task<Void, Never> {
        let (clock, interval) = (clock, options.interval)
        return Task { [weak self] in
            repeat {
                guard let follower = self else { return }
                await follower.refreshApart()
            } while (try? await clock.sleep(for: interval)) != nil  // Only cancellation throws.
        }
    }

    private func refreshApart() async {
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            gate.run { [self] _ in
                _ = try? refresh()  // What is wrong is kept.
                done.resume()
            }
        }
    }

    /// Runs a body on a thread that may wait.
    func run(_ body: @escaping FetchGate.Body) { gate.run(body) }

    /// Asks the catalog.
    /// - Throws: 08xxx and the like when it does not answer, 42704 when there is no such table, 55000 when it is not what it was.
    @discardableResult
    func refresh() throws(SQLError) -> Head {
        do throws(SQLError) {
            let head = try load()
            note(head, nil)
            return head
        } catch {
            note(nil, error)
            throw error
        }
    }

    private func note(_ head: Head?, _ failure: SQLError?) {
        let listeners = state.withLock { state in
            let isNew = failure != state.failure || head.map { $0.lineage.first?.id != state.head?.lineage.first?.id || state.head == nil } ?? false
            state.failure = failure
            // Of two questions at once the later one may be answered first.
            if let head, head.table.metadata.lastSequenceNumber >= state.head?.table.metadata.lastSequenceNumber ?? 0 { state.head = head }
            guard isNew else { return [@Sendable () -> Void]() }
            state.version += 1
            return Array(state.listeners.values)
        }
        for listener in listeners { listener() }
    }

    private func load() throws(SQLError) -> Head {
        let name = "table \"\(options.table)\""
        let source = try source()
        let table: IcebergTable
        let lineage: [Snapshot]
        do throws(IcebergError) {
            table = try source.open(options.table)
            lineage = try table.metadata.lineage()
        } catch { throw error.remoteError(of: name) }
        let uuid = table.metadata.tableUUID
        let first = state.withLock { state in
            state.tableUUID = state.tableUUID ?? uuid
            return state.tableUUID
        }
        guard first == uuid else {
            throw SQLError(
                .objectNotInPrerequisiteState, "\(name) was dropped and made anew", hint: "Drop the source and create it again.")
        }
        guard table.metadata.formatVersion >= 2 else {
            throw SQLError(
                .featureNotSupported, "\(name) has format version \(table.metadata.formatVersion), whose commits are not numbered",
                hint: "Upgrade it to format version 2, or query it by catalog.namespace.table.")
        }
        let found = try fieldIDs(table.metadata.currentSchema, name)
        let known = state.withLock { state in
            state.fieldIDs = state.fieldIDs ?? found
            return state.fieldIDs ?? found
        }
        if let place = zip(known, found).map({ $0 != $1 }).firstIndex(of: true) {
            throw SQLError(
                .objectNotInPrerequisiteState, "column \"\(fields[place].name)\" of \(name) is another one than it was",
                detail: "It was dropped or renamed, and another got its name.", hint: "Create the source again.")
        }
        return Head(table: table, lineage: lineage, fieldIDs: found)
    }

    private func fieldIDs(_ schema: IcebergSchema, _ name: String) throws(SQLError) -> [Int] {
        var found: [Int] = []
        for field in fields {
            let names = schema.fields.map(\.name)
            guard let place = ColumnNames.place(of: field.name, among: names) else {
                throw SQLError(
                    .objectNotInPrerequisiteState, "\(name) has no column \"\(field.name)\"",
                    detail: "Its columns are: \(names.map { "\"\($0)\"" }.joined(separator: ", ")).",
                    hint: "If it was renamed or dropped, create the source again with the columns as they are.")
            }
            guard let type = schema.fields[place].type.sqlType, type == field.type else {
                let type = schema.fields[place].type.sqlType.map(\.name) ?? "\(schema.fields[place].type)"
                throw SQLError(
                    .objectNotInPrerequisiteState, "column \"\(field.name)\" of \(name) is \(type), and \(field.type.name) in the source",
                    hint: "Create the source with the table's types; (*) takes all its columns.")
            }
            found.append(schema.fields[place].id)
        }
        return found
    }

    // MARK: What follows

    /// Rows, none of them when a snapshot has none for a follower, and where those who have read them are.
    struct Step: Sendable {
        var rows: SnapshotRows?
        var end: TablePosition
    }

    /// What comes next for a reader.
    ///
    /// Who has read nothing yet begins with the newest snapshot that does not lie behind its aim, so that old ones may expire.
    /// - Returns: nil when there is nothing yet.
    /// - Throws: 55000 when a snapshot that is missing to it has expired, is no longer of the branch, or took rows away.
    func step(from place: TablePosition, to aim: TablePosition?) throws(SQLError) -> Step? {
        let (known, failure) = state.withLock { ($0.head, $0.failure) }
        if let failure, !failure.mayPass { throw failure }
        guard let head = known else { return nil }
        let lineage = head.lineage
        switch place.phase {
        case .whole:
            if place.row == 0 {
                guard let begin = lineage.first(where: { Self.leads($0, to: aim) }), begin.sequenceNumber >= place.sequenceNumber else {
                    guard place.sequenceNumber == 0, lineage.last?.parentID == nil else { throw expired(place) }
                    return Step(rows: nil, end: try TablePosition(0, .done))
                }
                guard begin.sequenceNumber == place.sequenceNumber else {
                    return Step(rows: nil, end: try TablePosition(begin.sequenceNumber, .whole))
                }
            }
            let snapshot = try snapshot(at: place, head)
            let plan: ScanPlan
            do throws(IcebergError) { plan = try ScanPlan(head.table, .snapshot(snapshot.id)) } catch {
                throw error.remoteError(of: "table \"\(options.table)\"")
            }
            return try step(plan, of: snapshot, .whole, head)
        case .added: return try added(by: try snapshot(at: place, head), head)
        case .done:
            // Its rows are to be read whole by those who have read nothing: nobody gets from here into the middle of that.
            if let aim, aim.phase == .whole, aim.sequenceNumber > place.sequenceNumber {
                throw SQLError(
                    .objectNotInPrerequisiteState, "views over table \"\(options.table)\" read different snapshots of it",
                    hint: "REBUILD the view that stands still.")
            }
            guard let newest = lineage.first, newest.sequenceNumber >= place.sequenceNumber else {
                guard place.sequenceNumber == 0 else { throw rolledBack(place) }
                return nil
            }
            guard let index = lineage.lastIndex(where: { $0.sequenceNumber > place.sequenceNumber }) else { return nil }
            let next = lineage[index]
            if index + 1 < lineage.count {
                guard lineage[index + 1].sequenceNumber == place.sequenceNumber else { throw rolledBack(place) }
            } else if next.parentID == nil {
                guard place.sequenceNumber == 0 else { throw rolledBack(place) }
            } else if next.sequenceNumber != place.sequenceNumber + 1 {
                // Numbers have no gaps where no other branch has commits, and of those that have expired nobody knows.
                throw expired(place)
            }
            return try added(by: next, head)
        }
    }

    /// Whether all rows at a snapshot are on the way to a place.
    private static func leads(_ snapshot: Snapshot, to aim: TablePosition?) -> Bool {
        guard let aim else { return true }
        if aim.phase == .whole { return snapshot.sequenceNumber == aim.sequenceNumber }
        return snapshot.sequenceNumber < aim.sequenceNumber || aim.phase == .done && snapshot.sequenceNumber == aim.sequenceNumber
    }

    private func snapshot(at place: TablePosition, _ head: Head) throws(SQLError) -> Snapshot {
        if let found = head.lineage.first(where: { $0.sequenceNumber == place.sequenceNumber }) { return found }
        guard let oldest = head.lineage.last, oldest.sequenceNumber > place.sequenceNumber, oldest.parentID != nil else { throw rolledBack(place) }
        throw expired(place)
    }

    private func added(by snapshot: Snapshot, _ head: Head) throws(SQLError) -> Step {
        let effect: SnapshotEffect
        do throws(IcebergError) { effect = try head.table.effect(of: snapshot, schema: head.table.metadata.currentSchema) } catch {
            throw error.remoteError(of: "table \"\(options.table)\"")
        }
        switch effect {
        case .added(let plan): return try step(plan, of: snapshot, .added, head)
        case .none: return Step(rows: nil, end: try TablePosition(snapshot.sequenceNumber, .done))
        case .removed:
            let operation = snapshot.summaryValue("operation") ?? "overwrite"
            guard operation == "delete" ? options.skipsDeletes : options.skipsOverwrites else {
                throw SQLError(
                    .objectNotInPrerequisiteState,
                    "snapshot \(snapshot.id) of table \"\(options.table)\" takes rows away or changes them (\(operation))",
                    detail: "A source only adds rows: what was read before would stay, and nothing is passed over silently.",
                    hint: "To pass such snapshots over, rows that they add included, create the source with streaming-skip-\(operation == "delete" ? "delete" : "overwrite")-snapshots = 'true'; to begin with the table as it is now, create it again or REBUILD the view that reads it."
                )
            }
            return Step(rows: nil, end: try TablePosition(snapshot.sequenceNumber, .done))
        }
    }

    private func step(_ plan: ScanPlan, of snapshot: Snapshot, _ phase: TablePosition.Phase, _ head: Head) throws(SQLError) -> Step {
        var plan = plan
        // Whatever the columns were called when the snapshot was made.
        plan.schema = head.table.metadata.currentSchema
        let rows = try SnapshotRows(head.table, plan, at: TablePosition(snapshot.sequenceNumber, phase), fieldIDs: head.fieldIDs)
        return Step(rows: rows, end: try TablePosition(snapshot.sequenceNumber, .done))
    }

    private func expired(_ place: TablePosition) -> SQLError {
        let what = place.phase == .done ? "after number \(place.sequenceNumber)" : "number \(place.sequenceNumber)"
        return SQLError(
            .objectNotInPrerequisiteState, "a snapshot of table \"\(options.table)\" that is to be read has expired",
            detail: "The next one to read is that with sequence \(what).",
            hint:
                "REBUILD the view that reads it, or create the source again: it begins with the table as it is now. Keep snapshots longer than readers take (history.expire.max-snapshot-age-ms, or snapshot_expiration_max_age_millis of the sink that writes them)."
        )
    }

    private func rolledBack(_ place: TablePosition) -> SQLError {
        SQLError(
            .objectNotInPrerequisiteState,
            "table \"\(options.table)\" was set back: the snapshot with sequence number \(place.sequenceNumber), which was read, is no longer in its history",
            hint: "Create the source again: it begins with the table as it is now.")
    }

    /// Rows between two places, by what snapshots say of themselves; nil when one does not.
    func recordCount(from start: TablePosition, to end: TablePosition) -> Int64? {
        guard start < end else { return 0 }
        guard let head else { return nil }
        var total: Int64 = 0
        for snapshot in head.lineage where snapshot.sequenceNumber <= end.sequenceNumber {
            guard snapshot.sequenceNumber >= start.sequenceNumber else { break }
            if snapshot.sequenceNumber == start.sequenceNumber, start.phase == .done { break }
            let isWhole = snapshot.sequenceNumber == start.sequenceNumber && start.phase == .whole
            if !isWhole, snapshot.summaryValue("operation") == "replace" { continue }
            // An append that says nothing added nothing.
            let count = isWhole ? snapshot.summaryValue("total-records").flatMap { Int64($0) } : Int64(snapshot.summaryValue("added-records") ?? "0")
            guard let count, count >= 0 else { return nil }
            total = total.addingReportingOverflow(count).partialValue
        }
        return max(total - start.row, 0)
    }
}
