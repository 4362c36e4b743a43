import MillColumnar
import MillIO
import MillObjectStore

/// Puts small data files together, and writes files anew of which many rows are deleted, within bounds.
///
/// Files of one partition and the table's present spec are gathered up to the target size, oldest first. Rows keep their order, or get the
/// table's. The commit is a `replace`: it conflicts with deletes that others add to the files meanwhile, and is given up then, so that
/// nothing is undone.
package struct Compaction: Sendable {
    package struct Settings: Sendable {
        /// Files of at least this size are left alone, unless deletes hold for them.
        package var targetFileBytes: Int64 = 512 << 20
        /// So many files make it worth while.
        package var filesMin = 5
        /// A file of which at least this share of rows is deleted is written anew, however large.
        package var deletedShareMin = 0.3
        /// A data file for which more delete files hold is written anew, however large.
        package var deleteFilesMax = Int.max
        /// Only files of like size are put together: those of a tier, each of which is so many times as large as the one below. A row is
        /// then written as often as there are tiers and not with every run, however many small files come. Nil for one tier.
        package var tierFactor: Int64?
        /// Bytes that one run reads at most.
        package var bytesMax: Int64 = 4 << 30

        package init() {}

        /// What the table's properties say, where they do.
        package mutating func take(_ properties: [String: String]) {
            if let bytes = properties["write.target-file-size-bytes"].flatMap({ Int64($0) }), bytes > 0 { targetFileBytes = bytes }
        }
    }

    package struct Outcome: Hashable, Sendable {
        package var filesBefore = 0
        package var filesAfter = 0
        package var snapshotID: Int64?

        package init() {}
    }

    /// What is written anew together.
    struct Group {
        var tasks: [ScanPlan.Task]
    }

    package let settings: Settings

    package init(_ settings: Settings = Settings()) { self.settings = settings }

    /// - Returns: the table as it is then, and what was done; nothing when nothing is worth while.
    package func run(_ table: IcebergTable, _ commit: CommitSettings, summary: [(key: String, value: String)] = []) throws(IcebergError)
        -> (table: IcebergTable, outcome: Outcome)
    {
        let plan = try ScanPlan(table, .reference(commit.branch))
        let groups = groups(plan, table.metadata)
        guard !groups.isEmpty, let snapshot = plan.snapshot else { return (table, Outcome()) }
        var writer = try CompactionWriter(table, plan, targetFileBytes: settings.targetFileBytes)
        var change = SnapshotChange(.replace)
        do throws(IcebergError) {
            for group in groups {
                try writer.write(group.tasks)
                change.removed.formUnion(group.tasks.map(\.file.path))
            }
            change.added = try writer.finish()
        } catch {
            writer.abandon()
            throw error
        }
        change.basedOn = snapshot.id
        change.dataSequenceNumber = snapshot.sequenceNumber
        change.summary = summary
        let (done, snapshotID): (IcebergTable, Int64?)
        do throws(IcebergError) { (done, snapshotID) = try SnapshotCommit.run(change, on: table, commit) } catch {
            if !error.isCommitUnknown { try? table.store.remove(change.added.map(\.path)) }  // nobody names them; what stays is an orphan
            throw error
        }
        var outcome = Outcome()
        (outcome.filesBefore, outcome.filesAfter, outcome.snapshotID) = (change.removed.count, change.added.count, snapshotID)
        return (done, outcome)
    }

    func groups(_ plan: ScanPlan, _ metadata: TableMetadata) -> [Group] {
        struct Place: Hashable {
            var specID: Int
            var partition: [Scalar]
            var tier: Int
        }
        // Files of older specs have partition values that do not say where their rows belong now: they are written anew alone.
        var places: [Place: [ScanPlan.Task]] = [:]
        var order: [Place] = []
        for task in plan.tasks where task.file.fileByteCount < settings.targetFileBytes / 4 * 3 || isWorn(task) {
            let place = Place(specID: task.file.specID, partition: task.file.partition, tier: tier(task.file.fileByteCount))
            if places[place] == nil { order.append(place) }
            places[place, default: []].append(task)
        }
        var result: [Group] = []
        var bytesLeft = settings.bytesMax
        for place in order {
            let tasks = (places[place] ?? []).sorted { ($0.entry.sequenceNumber ?? 0) < ($1.entry.sequenceNumber ?? 0) }
            guard tasks.count >= settings.filesMin || tasks.contains(where: isWorn) else { continue }
            var group = Group(tasks: [])
            for task in tasks where task.file.fileByteCount <= bytesLeft {
                bytesLeft -= task.file.fileByteCount
                group.tasks.append(task)
            }
            if group.tasks.count >= min(settings.filesMin, 2) || group.tasks.contains(where: isWorn) { result.append(group) }
        }
        return result
    }

    /// The lowest tier ends at this size.
    private static let lowestTierBytes: Int64 = 64 << 10

    private func tier(_ byteCount: Int64) -> Int {
        guard let factor = settings.tierFactor, factor > 1 else { return 0 }
        var (tier, end) = (0, Self.lowestTierBytes)
        while byteCount >= end, end <= Int64.max / factor {
            tier += 1
            end *= factor
        }
        return tier
    }

    /// Whether so many rows are deleted as far as the manifests tell, or so many delete files have to be read with it.
    private func isWorn(_ task: ScanPlan.Task) -> Bool {
        if task.deletes.count > settings.deleteFilesMax { return true }
        let deleted = task.deletes.filter { DeleteIndex.onlyDataFile($0.file) != nil }.reduce(Int64(0)) { $0.plus($1.file.recordCount) }
        return deleted > 0 && Double(deleted) >= Double(task.file.recordCount) * settings.deletedShareMin
    }
}
