import MillIO
import MillObjectStore

/// Keeps a table that is written often in a state that readers like: few files, few snapshots, nothing that nobody names.
///
/// Called by a sink after its commits. Each run does what is due: files whose grace is over go; small files are put together; snapshots are
/// forgotten; orphans are looked for. Whoever else commits meanwhile is given way to.
///
/// While the table says `gc.enabled=false` nothing is removed: its files are shared with somebody.
///
/// A file that no snapshot has any more stays for `Settings.grace`: a reader that loaded the table before does not miss it. The list of
/// such files is in memory; after a restart they are orphans, and go when they are old enough.
package struct TableMaintenance {
    package struct Settings: Sendable {
        /// Nil: files stay as they were written.
        package var compaction: Compaction.Settings?
        /// Between looks at what could be put together.
        package var compactionInterval: Duration = .seconds(30)
        /// Nil: snapshots stay.
        package var expiry: SnapshotExpiry.Settings?
        /// So many snapshots are forgotten at once, or fewer when they have waited for `expiryInterval`.
        package var expiryCountMin = 8
        package var expiryInterval: Duration = .seconds(600)
        package var grace: Duration = .seconds(900)
        package var findsOrphans = false
        /// Younger objects may belong to a commit under way.
        package var orphanAge: Duration = .seconds(3 * 24 * 3600)
        package var orphanInterval: Duration = .seconds(24 * 3600)

        package init() {}

        /// For a table that gets a small file every second or minute.
        package static var frequentCompaction: Compaction.Settings {
            var settings = Compaction.Settings()
            settings.filesMin = 8
            settings.tierFactor = 8
            settings.deleteFilesMax = 32
            return settings
        }

        /// For a table that gets a snapshot every second or minute: those of ten minutes, 10 at least and 200 at most.
        package static var frequentExpiry: SnapshotExpiry.Settings {
            var settings = SnapshotExpiry.Settings()
            settings.keepMin = 10
            settings.age = .seconds(600)
            settings.keepMax = 200
            return settings
        }
    }

    package let settings: Settings
    private let commit: CommitSettings
    private var commitCount = 0
    private var nextCompaction: UInt64
    private var nextExpiry: UInt64
    private var nextOrphans: UInt64
    /// Files that nobody names, and when they go.
    private var doomed: [(dueNanos: UInt64, files: [String])] = []

    /// - Parameter nowNanos: of the monotonic clock.
    package init(_ settings: Settings, _ commit: CommitSettings, nowNanos: UInt64) {
        self.settings = settings
        self.commit = commit
        nextCompaction = nowNanos
        // An earlier process may have left as many: nobody has to run for long.
        commitCount = settings.compaction?.filesMin ?? 0
        nextExpiry = nowNanos
        // Not before a server that is started again and again has done its work.
        nextOrphans = Self.after(nowNanos, min(settings.orphanInterval, .seconds(3600)))
    }

    /// Files that are still there for readers that began before.
    package var doomedFileCount: Int { doomed.reduce(0) { $0 + $1.files.count } }

    package mutating func noteCommit() { commitCount += 1 }

    /// Does what is due. What cannot be done keeps nothing else from being done.
    /// - Parameter table: as of now; whatever was done is in it, also after an error.
    /// - Throws: what failed first; `commitConflict` when others were faster: the next run finds what is left.
    package mutating func run(_ table: inout IcebergTable) throws(IcebergError) {
        let now = table.clock.monotonicNanos
        let mayRemove = table.metadata.properties["gc.enabled"] != "false"
        var failure = mayRemove ? removeDoomed(table, now) : nil
        if let settings = settings.compaction, now >= nextCompaction, commitCount >= settings.filesMin {
            nextCompaction = Self.after(now, self.settings.compactionInterval)
            commitCount = 0
            do throws(IcebergError) { table = try Compaction(settings).run(table, commit).table } catch { failure = failure ?? error }
        }
        if mayRemove {
            do throws(IcebergError) { try expire(&table, now) } catch { failure = failure ?? error }
            if settings.findsOrphans, now >= nextOrphans {
                nextOrphans = Self.after(now, settings.orphanInterval)
                removeOrphans(table)
            }
        }
        if let failure { throw failure }
    }

    /// What cannot be removed is tried again later, among what is due then.
    private mutating func removeDoomed(_ table: IcebergTable, _ now: UInt64) -> IcebergError? {
        var failure: IcebergError?
        while let first = doomed.first, first.dueNanos <= now {
            doomed.removeFirst()
            do throws(IOFailure) { try table.store.remove(first.files) } catch {
                failure = failure ?? .io(error)
                doomed.append((Self.after(now, max(settings.grace, Self.retryInterval)), first.files))
            }
        }
        return failure
    }

    private static let retryInterval = Duration.seconds(600)

    private mutating func expire(_ table: inout IcebergTable, _ now: UInt64) throws(IcebergError) {
        guard let settings = settings.expiry else { return }
        let expiry = SnapshotExpiry(settings)
        let count = expiry.expired(table.metadata, nowMillis: table.clock.nowMicros / 1000).count
        guard count > 0, count >= self.settings.expiryCountMin || now >= nextExpiry else { return }
        nextExpiry = Self.after(now, self.settings.expiryInterval)
        let (done, outcome) = try expiry.run(table, removesFiles: false)
        table = done
        if !outcome.filesLeft.isEmpty { doomed.append((Self.after(now, self.settings.grace), outcome.filesLeft)) }
    }

    /// What failed writers left below the table's two directories. Metadata files are the catalog's to remove.
    private func removeOrphans(_ table: IcebergTable) {
        // Ages are told by the store's clock as of the last commit: this machine's may be ahead of it by days.
        guard let list = table.metadata.snapshot(ofBranch: commit.branch)?.manifestList, let newest = try? table.store.look(at: list) else {
            return
        }
        let before = min(table.clock.nowMicros, newest.modifiedMicros) - Int64(settings.orphanAge / .microseconds(1))
        let known = Set(doomed.flatMap(\.files))
        for prefix in Set([table.metadata.dataLocation + "/", table.metadata.metadataDirectory + "/"]).sorted() {
            // Nobody waits for this: what fails is done the next time.
            _ = try? table.store.removeLeftovers(under: prefix, olderThanMicros: before)
            guard let found = try? OrphanSearch.find(table, prefix: prefix, olderThanMicros: before, metadataFiles: []) else { continue }
            let orphans = found.map(\.location).filter { name in
                [".parquet", ".avro", ".puffin"].contains { name.hasSuffix($0) } && !known.contains(name)
            }
            try? table.store.remove(orphans)  // as above
        }
    }

    private static func after(_ now: UInt64, _ duration: Duration) -> UInt64 {
        let (nanos, overflow) = now.addingReportingOverflow(UInt64(max(0, min(duration / .nanoseconds(1), 9e18))))
        return overflow ? .max : nanos
    }
}
