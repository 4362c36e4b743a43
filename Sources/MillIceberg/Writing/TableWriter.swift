import MillBase
package import MillColumnar
import MillIO
import MillObjectStore
import MillParquet

/// Brings changes of a relation into a table: rows with weights, epoch by epoch, committed when the caller says so.
///
/// Without a key rows are only added. With one, a row that is taken back is deleted at its place, and a new row of a key that has one takes
/// its place: the table has at most one row for each key. Made for a sink: one thread, calls block.
///
/// After a conflict or an error nothing but `abandon` is called; what was written since the last commit is then written again from the
/// start.
package final class TableWriter {
    package struct Settings: Sendable {
        package var files = DataFileWriter.Settings()
        package var commit: CommitSettings
        /// Keys held in memory.
        package var keysMax = 100_000_000

        package init(_ commit: CommitSettings) { self.commit = commit }
    }

    package private(set) var table: IcebergTable
    private let inputs: [DataFileWriter.Input]
    private let settings: Settings
    /// Places of the key's columns in a batch; nil when rows are only added.
    private let key: [Int]?
    private var places: KeyPlaces?
    private var writer: DataFileWriter?
    private var deletes: [Int32: DeletedPositions] = [:]
    /// Keys of the epoch at hand whose old row is deleted already, though it has not been taken back yet.
    private var owed: Set<[UInt8]> = []
    /// Keys that have had a row taken back since the last commit, and got no other.
    private var takenBack: Set<[UInt8]> = []
    /// Whether the next commit takes away all that the table has.
    private var isCleared = false
    private var epoch: Int64?
    private var rowCount: Int64 = 0
    private var layout: FileLayout
    /// Of files that are sorted when they end: the keys of their rows, as they came.
    private var unplaced: [Int32: [[UInt8]]] = [:]

    /// - Parameter key: which of `inputs` tell rows apart; nil for a relation that only grows.
    package init(_ table: IcebergTable, _ inputs: [DataFileWriter.Input], key: [Int]?, _ settings: Settings) throws(IcebergError) {
        self.table = table
        self.inputs = inputs
        self.key = key
        self.settings = settings
        layout = try FileLayout(table.metadata, inputs)
        if let key {
            guard !key.isEmpty, key.allSatisfy(inputs.indices.contains) else {
                throw .badRequest("an upsert needs a key of columns that are written")
            }
            var places = try KeyPlaces(table.metadata.currentSchema, key.map { inputs[$0].fieldID }, keysMax: settings.keysMax)
            try places.refresh(table, branch: settings.commit.branch)
            self.places = places
        }
        base = table.metadata.snapshot(ofBranch: settings.commit.branch)?.id
    }

    /// The snapshot that `places` are of.
    private var base: Int64?

    /// Rows and deletes since the last commit, emptying the table counting as one, and compressed bytes of files that are not committed.
    package var pendingRowCount: Int64 { rowCount + (isCleared ? 1 : 0) }
    package var pendingByteCount: Int {
        guard let writer else { return 0 }
        return writer.closedFiles.reduce(writer.openByteCount) { $0 + Int(clamping: $1.fileByteCount) }
    }

    /// Empties the table before what is written from here on, and in one step with it: all files go that it has when the commit is made,
    /// whoever wrote them and when. What was written since the last commit is not committed at all. Only of a table with a key.
    package func clear() throws(IcebergError) {
        guard key != nil else { throw .badRequest("a table is emptied by its key, and it has none") }
        dropWriter()
        places?.removeAll()
        (deletes, owed, takenBack, rowCount) = ([:], [], [], 0)
        isCleared = true
    }

    private func dropWriter() {
        writer?.abandon()
        (writer, unplaced) = (nil, [:])
    }

    /// All values of a batch that the table would not take: of rows without them `write` refuses none.
    package func refusals(_ columns: [Column], count: Int) throws(IcebergError) -> [RefusedValue] {
        layout.refusals(try layout.converted(columns, count: count), count: count)
    }

    /// Writes a batch of an epoch. A refused batch (`parquet(.valueDoesNotFit)`) leaves everything as it was.
    /// - Parameter weights: nil when each row comes once.
    package func write(_ columns: [Column], count: Int, weights: Weights?, of epoch: Int64) throws(IcebergError) {
        if epoch != self.epoch { owed = [] }
        self.epoch = epoch
        guard let key else { return try add(columns, count, weights) }
        var added: [UInt32] = []
        var removed: [Int] = []
        for row in 0..<count {
            let weight = weights?.values[row] ?? 1
            if weight < 0 { removed.append(row) }
            // A key has one row, however often it comes.
            if weight > 0 { added.append(UInt32(row)) }
        }
        // First what may be refused.
        let placements = try write(columns, added)
        rowCount += Int64(removed.count + added.count)
        let encoded = places?.keys(try keyColumns(columns, key, count), count: count) ?? []
        for row in removed { takeBack(encoded[row]) }
        let isSorted = writer?.sortsRows == true
        for placement in placements {
            let file = places?.number(of: placement.path) ?? 0
            for (offset, index) in placement.rows.enumerated() {
                let keyBytes = encoded[Int(added[Int(index)])]
                if let old = places?.place(of: keyBytes) {
                    delete(old)
                    owed.insert(keyBytes)
                }
                takenBack.remove(keyBytes)
                try places?.set(keyBytes, .init(file: file, position: placement.firstPosition + Int64(offset)))
                if isSorted { unplaced[file, default: []].append(keyBytes) }
            }
        }
        takeReorderings()
    }

    /// Without a key a row comes as often as its weight says, which may be more often than a batch has rows.
    private func add(_ columns: [Column], _ count: Int, _ weights: Weights?) throws(IcebergError) {
        func weight(_ row: Int) -> Int64 { weights?.values[row] ?? 1 }
        guard (0..<count).allSatisfy({ weight($0) >= 0 }) else {
            throw .badRequest("rows are taken back from a table that is only added to")
        }
        let total = (0..<count).reduce(Int64(0)) { $0.plus(weight($1)) }
        let partMax = max(count, Limits.batchRowsMax)
        if total > Int64(partMax) {
            // Of several parts the first would be written before another is refused.
            let refused = try refusals(columns, count: count).first { weight($0.row) > 0 }
            if let refused { throw .parquet(.valueDoesNotFit(column: refused.column, row: refused.row, refused.reason)) }
        }
        var rows: [UInt32] = []
        for row in 0..<count {
            var left = weight(row)
            while left > 0 {
                let step = min(left, Int64(partMax - rows.count))
                rows.append(contentsOf: repeatElement(UInt32(row), count: Int(step)))
                left -= step
                if rows.count == partMax { try addPart(columns, &rows) }
            }
        }
        try addPart(columns, &rows)
    }

    private func addPart(_ columns: [Column], _ rows: inout [UInt32]) throws(IcebergError) {
        _ = try write(columns, rows)
        rowCount += Int64(rows.count)
        rows.removeAll(keepingCapacity: true)
    }

    /// Rows of files that were sorted are elsewhere than where they came.
    private func takeReorderings() {
        for reordering in writer?.takeReorderings() ?? [] {
            guard let file = places?.number(of: reordering.path), let keys = unplaced.removeValue(forKey: file) else { continue }
            places?.reorder(file, keys, reordering.positions)
            guard let deleted = deletes[file] else { continue }
            deletes[file] = DeletedPositions(deleted.positions.lazy.map { Int64(reordering.positions[Int($0)]) })
        }
    }

    /// The key's columns as the table has them, so that what is read of it later has the same bytes.
    private func keyColumns(_ columns: [Column], _ key: [Int], _ count: Int) throws(IcebergError) -> [Column] {
        var result: [Column] = []
        for place in key {
            guard let field = layout.fields.first(where: { $0.id == inputs[place].fieldID }),
                let column = layout.converted(field.id, columns, count: count)
            else { throw .badRequest("the key has a column that the table lacks") }
            result.append(field.type == .uuid ? column.canonicalUUIDs(count) : column)
        }
        return result
    }

    private func write(_ columns: [Column], _ rows: [UInt32]) throws(IcebergError) -> [DataFileWriter.Placement] {
        guard !rows.isEmpty else { return [] }
        let writer: DataFileWriter
        if let open = self.writer {
            writer = open
        } else {
            var settings = settings.files
            settings.tellsReorderings = key != nil
            writer = try DataFileWriter(table.metadata, inputs, table.store, settings, random: table.random)
            self.writer = writer
        }
        let picked = columns.map { column in
            rows.withUnsafeBufferPointer { column.gather($0.baseAddress.unsafelyUnwrapped, count: $0.count) }
        }
        do throws(IcebergError) { return try writer.append(picked, count: rows.count) } catch {
            guard case .parquet(let refused) = error, case .valueDoesNotFit(let column, let row, let reason) = refused else { throw error }
            throw .parquet(.valueDoesNotFit(column: column, row: Int(rows[row]), reason))
        }
    }

    private func takeBack(_ key: [UInt8]) {
        if owed.remove(key) != nil { return }
        if let place = places?.remove(key) { delete(place) }
        takenBack.insert(key)
    }

    private func delete(_ place: KeyPlaces.Place) { deletes[place.file, default: DeletedPositions()].insert(place.position) }

    /// Commits all that was written, with a summary that says how far it is. A commit without rows is made too: the summary counts.
    /// - Parameters:
    ///   - properties: of the table, set in one step with the snapshot.
    ///   - expected: what properties have to be; nil for one that must not be there. Otherwise: `outrun`.
    /// - Returns: the snapshot.
    /// - Throws: `commitConflict` when others took away rows or files that this would: `abandon`, and begin anew.
    @discardableResult
    package func commit(
        summary: [(key: String, value: String)], properties: [String: String] = [:], expected: [String: String?] = [:]
    ) throws(IcebergError) -> Int64? {
        let files = try writer?.finish() ?? []
        takeReorderings()
        writer = nil
        for file in files { places?.fill(file) }
        let (done, snapshotID): (IcebergTable, Int64?)
        do throws(IcebergError) {
            (done, snapshotID) = try commit(files) { change in
                (change.summary, change.properties, change.expected) = (summary, properties, expected)
            }
        } catch {
            // Of an unknown outcome they may be part.
            if !error.isCommitUnknown { try? table.store.remove(files.map(\.path)) }
            throw error
        }
        try take(done)
        (deletes, takenBack, isCleared) = ([:], [], false)
        rowCount = 0
        base = snapshotID
        return snapshotID
    }

    /// Rows of others have keys, too. So with a key a change is made on top of what it was found by; when others were faster, what they
    /// brought is looked through first. Where all goes nothing needs to be.
    private func commit(_ files: [DataFile], _ fill: (inout SnapshotChange) -> Void) throws(IcebergError) -> (IcebergTable, Int64?) {
        var limits = settings.commit
        limits.take(table.metadata.properties)
        var attempt = 0
        while true {
            attempt += 1
            var change = SnapshotChange.rowDelta(files, rowDeletes(), basedOn: base)
            change.isAlwaysMade = true
            change.isOnlyOnItsBase = key != nil && !isCleared
            if isCleared { (change.operation, change.removesAll) = (files.isEmpty ? .delete : .overwrite, true) }
            fill(&change)
            do throws(IcebergError) { return try SnapshotCommit.run(change, on: table, settings.commit) } catch {
                guard case .commitConflict = error, change.isOnlyOnItsBase, attempt < limits.triesMax else { throw error }
                settings.commit.pause(limits.backoff.next(table.random))
                try takeUpOthers(Set(files.map(\.path)))
            }
        }
    }

    private func rowDeletes() -> [RowDeletes] {
        deletes.sorted { $0.key < $1.key }.compactMap { number, positions in
            guard let file = places?.files[Int(number)] else { return nil }
            return RowDeletes(dataFile: file.path, specID: file.specID, partition: file.partition, positions: positions)
        }
    }

    /// Of a key that others wrote meanwhile the row that is about to be committed stays, and theirs is deleted with it; theirs is also
    /// when the key's row was taken back.
    /// - Throws: `commitConflict` when a file is gone of which rows are deleted.
    private func takeUpOthers(_ pending: Set<String>) throws(IcebergError) {
        var newest = table
        try newest.refresh()
        guard newest.metadata.history(ofBranch: settings.commit.branch, reaches: base) else {
            throw .commitConflict("the snapshot that the change was found by is not one of the branch any more")
        }
        guard let found = try places?.takeUp(newest, branch: settings.commit.branch, pending: pending, takenBack: takenBack) else { return }
        if let number = deletes.keys.first(where: found.gone.contains), let file = places?.files[Int(number)] {
            throw .commitConflict("data file \"\(file.path)\", of which rows are deleted, is not in the table any more")
        }
        for place in found.replaced { delete(place) }
        try take(newest)
        base = newest.metadata.snapshot(ofBranch: settings.commit.branch)?.id
    }

    /// Others may have changed the table's columns.
    private func take(_ table: IcebergTable) throws(IcebergError) {
        if table.metadata.currentSchemaID != self.table.metadata.currentSchemaID { layout = try FileLayout(table.metadata, inputs) }
        self.table = table
    }

    /// Takes up a table that was changed by the same server in between, such as by compaction. Only right after a commit.
    package func resume(_ table: IcebergTable) throws(IcebergError) {
        precondition(pendingRowCount == 0, "what was written is committed first")
        // One whose only batches were refused.
        dropWriter()
        try take(table)
        try places?.refresh(table, branch: settings.commit.branch)
        base = table.metadata.snapshot(ofBranch: settings.commit.branch)?.id
    }

    /// Takes back what was written since the last commit. The writer is of no use afterwards.
    package func abandon() { writer?.abandon() }
}

extension TableMetadata {
    /// Whether a branch was at a snapshot before, or is; nil is what it was at before its first one.
    fileprivate func history(ofBranch branch: String, reaches base: Int64?) -> Bool {
        guard let base else { return true }
        var next = snapshot(ofBranch: branch)
        while let snapshot = next {
            if snapshot.id == base { return true }
            next = snapshot.parentID.flatMap { self.snapshot(id: $0) }
        }
        return false
    }
}
