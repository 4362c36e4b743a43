package import MillColumnar

/// One operator's keyed rows in one worker's shard: hash access. (Ordered access is `OrderedTable`.)
///
/// Rows lie in 16 KiB pages by `RowLayout`; a directory of 8-byte slots maps hashes to row numbers. Calls take a batch:
/// hash, probe, then column by column compare or copy, so that no per-row work depends on a type.
///
/// Invariants (`checkInvariants` verifies them):
/// 1. A directory slot is 0 (empty) or `hash's upper 32 bits << 32 | row number + 1`. Its home is the hash's highest bits, so
///    growing needs no row, and slots lie in ascending order of hash but for collisions: backfill scans rows by hash.
/// 2. Linear probing without tombstones: between a slot and its home there is no empty slot.
/// 3. A live row's stored hash is not 0; a free row's is, and free rows are linked through their payload start.
/// 4. Views in live rows point into `heap` or are inline.
///
/// Threading: owned by one worker. `snapshot()` gives a reader an immutable image; the heap only grows, so bytes that a
/// snapshot or a batch in flight points at never change; compaction makes a new heap and leaves the old to its holders.
package final class StateTable {
    package let layout: RowLayout
    /// When a batch's row is the same as a stored one: by value for keys and groups, by representation for multisets of rows.
    let equality: RowEquality
    /// Live rows.
    package internal(set) var count = 0
    package private(set) var heap = StringHeap()
    private var heapLiveBytes = 0

    private var pages: [StatePage] = []
    private var bases: UnsafeMutablePointer<UnsafeMutableRawPointer>
    private var basesCapacity = 16
    /// For each page whether a snapshot may hold it; empty while no page is shared.
    private var shared: [Bool] = []
    private let rowShift: Int
    private let slotMask: Int
    private var rowsUsed = 0
    private var freeHead: UInt32 = 0

    var directory: UnsafeMutablePointer<UInt64>
    var directoryBits = 6
    private let keepsDirectory: Bool

    /// - Parameters:
    ///   - payloadBytes: room for the operator in every row, zero in a new row; at least 4.
    ///   - indexed: false for rows that are only reached by links from elsewhere.
    package init(columns: [SQLType], payloadBytes: Int, equality: RowEquality = .values, indexed: Bool = true) {
        self.equality = equality
        layout = RowLayout(columns: columns, payloadBytes: max(payloadBytes, 8))
        let perPage = max(1, StatePage.bytes / layout.stride)
        rowShift = Int.bitWidth - 1 - perPage.leadingZeroBitCount
        slotMask = (1 << rowShift) - 1
        bases = .allocate(capacity: basesCapacity)
        keepsDirectory = indexed
        directory = .allocate(capacity: 1 << directoryBits)
        directory.initialize(repeating: 0, count: 1 << directoryBits)
    }

    deinit {
        bases.deallocate()
        directory.deallocate()
    }

    // MARK: Rows

    @inline(__always) package func row(_ number: RowNumber) -> UnsafeMutableRawPointer {
        bases[Int(number) >> rowShift] + (Int(number) & slotMask) * layout.stride
    }

    @inline(__always) package func payload(_ number: RowNumber) -> UnsafeMutableRawPointer {
        row(number) + layout.payloadOffset
    }

    @inline(__always) package func storedHash(_ number: RowNumber) -> UInt64 { row(number).load(as: UInt64.self) }

    /// Bytes held by pages, heap and directory.
    package var byteCount: Int {
        pages.count * ((slotMask + 1) * layout.stride) + heap.byteCount + 8 << directoryBits
    }

    /// A new row with everything but its hash zero.
    private func allocateRow(hash: UInt64) -> RowNumber {
        count += 1
        if freeHead != 0 {
            let number = freeHead - 1
            prepareToWrite(number)
            let row = row(number)
            freeHead = row.load(fromByteOffset: layout.payloadOffset, as: UInt32.self)
            row.storeBytes(of: hash, as: UInt64.self)
            row.storeBytes(of: 0, toByteOffset: layout.payloadOffset, as: UInt32.self)
            return number
        }
        if rowsUsed >> rowShift == pages.count { addPage() }
        let number = RowNumber(rowsUsed)
        rowsUsed += 1
        prepareToWrite(number)
        row(number).storeBytes(of: hash, as: UInt64.self)
        return number
    }

    private func addPage() {
        precondition(rowsUsed < Int(UInt32.max) - 1 << rowShift, "a table holds fewer than 2^32 rows")
        if pages.count == basesCapacity {
            let larger = UnsafeMutablePointer<UnsafeMutableRawPointer>.allocate(capacity: basesCapacity * 2)
            larger.update(from: bases, count: basesCapacity)
            bases.deallocate()
            bases = larger
            basesCapacity *= 2
        }
        let page = StatePage(byteCount: (slotMask + 1) * layout.stride)
        bases[pages.count] = page.memory
        pages.append(page)
        if !shared.isEmpty { shared.append(false) }
    }

    /// Must be called before a row that may be shared with a snapshot is changed. Pointers to rows of its page are void after.
    @inline(__always) package func prepareToWrite(_ number: RowNumber) {
        if !shared.isEmpty { unshare(Int(number) >> rowShift) }
    }

    private func unshare(_ page: Int) {
        guard shared[page] else { return }
        shared[page] = false
        if !isKnownUniquelyReferenced(&pages[page]) {
            pages[page] = StatePage(copying: pages[page])
            bases[page] = pages[page].memory
        }
    }

    // MARK: Finding and inserting

    /// Finds the row equal to each of `count` rows of `columns` (in the table's sense, NULL equal to NULL), inserting what is missing.
    ///
    /// - Parameters:
    ///   - hashes: a hash per row of a subset of the columns; equal rows have equal hashes. Never 0 in state: 0 becomes 1.
    ///   - rows: receives the row numbers.
    ///   - inserted: receives the batch rows that were inserted, ascending.
    package func findOrInsert(
        _ columns: [Column], hashes: UnsafePointer<UInt64>, count batchCount: Int, rows: UnsafeMutablePointer<RowNumber>, inserted: inout Selection
    ) {
        reserve(batchCount)
        inserted.count = 0
        let directory = directory
        let shift = UInt64(64 - directoryBits)
        let mask = 1 << directoryBits - 1
        for index in 0..<batchCount {
            let hash = max(hashes[index], 1)
            var slot = Int(truncatingIfNeeded: hash &>> shift)
            let tag = hash & 0xFFFF_FFFF_0000_0000
            while true {
                let entry = directory[slot]
                if entry == 0 {
                    let number = allocateRow(hash: hash)
                    directory[slot] = tag | UInt64(number + 1)
                    rows[index] = number
                    inserted.rows[inserted.count] = UInt32(truncatingIfNeeded: index)
                    inserted.count &+= 1
                    break
                }
                if entry & 0xFFFF_FFFF_0000_0000 == tag {
                    let number = UInt32(truncatingIfNeeded: entry) &- 1
                    if storedHash(number) == hash {
                        rows[index] = number
                        break
                    }
                }
                slot = (slot &+ 1) & mask
            }
        }
        for (index, column) in columns.enumerated() { write(column, to: index, batchRows: inserted, rows: rows) }
        guard inserted.count < batchCount else { return }
        var differing = Selection(capacity: batchCount)
        verify(columns, count: batchCount, rows: rows, differing: &differing)
        for position in 0..<differing.count {
            resolveCollision(columns, hashes: hashes, batchRow: Int(differing.rows[position]), rows: rows, inserted: &inserted)
        }
    }

    /// Appends rows without looking for equal ones, without a directory entry.
    package func append(_ columns: [Column], hashes: UnsafePointer<UInt64>, count batchCount: Int, rows: UnsafeMutablePointer<RowNumber>) {
        var all = Selection(capacity: batchCount)
        for index in 0..<batchCount {
            rows[index] = allocateRow(hash: max(hashes[index], 1))
            all.rows[index] = UInt32(truncatingIfNeeded: index)
        }
        all.count = batchCount
        for (index, column) in columns.enumerated() { write(column, to: index, batchRows: all, rows: rows) }
    }

    /// The row equal to each batch row, or `notFound`.
    package func find(_ columns: [Column], hashes: UnsafePointer<UInt64>, count batchCount: Int, rows: UnsafeMutablePointer<RowNumber>) {
        guard count > 0 else { return rows.update(repeating: Self.notFound, count: batchCount) }
        let mask = 1 << directoryBits - 1
        withUnsafeTemporaryAllocation(of: RowNumber.self, capacity: batchCount) { candidates in
            let candidates = candidates.baseAddress.unsafelyUnwrapped
            for index in 0..<batchCount {
                let hash = max(hashes[index], 1)
                rows[index] = Self.notFound
                // A row without a candidate is compared with the first row, and the answer ignored.
                candidates[index] = 0
                var slot = home(hash)
                while directory[slot] != 0 {
                    let number = UInt32(truncatingIfNeeded: directory[slot]) &- 1
                    if directory[slot] >> 32 == hash >> 32, storedHash(number) == hash {
                        rows[index] = number
                        candidates[index] = number
                        break
                    }
                    slot = (slot &+ 1) & mask
                }
            }
            var differing = Selection(capacity: batchCount)
            verify(columns, count: batchCount, rows: candidates, differing: &differing)
            for position in 0..<differing.count {
                let batchRow = Int(differing.rows[position])
                guard rows[batchRow] != Self.notFound else { continue }
                rows[batchRow] = Self.notFound
                forEach(hash: hashes[batchRow]) { number in
                    guard equals(number, columns, batchRow) else { return true }
                    rows[batchRow] = number
                    return false
                }
            }
        }
    }

    package static let notFound = RowNumber.max

    /// Two different rows with one 64-bit hash: found by comparing values, one row at a time. Runs for rows that share a key in a
    /// table hashed by it, and for one value in several representations.
    private func resolveCollision(
        _ columns: [Column], hashes: UnsafePointer<UInt64>, batchRow: Int, rows: UnsafeMutablePointer<RowNumber>, inserted: inout Selection
    ) {
        let hash = max(hashes[batchRow], 1)
        let mask = 1 << directoryBits - 1
        var slot = home(hash)
        while directory[slot] != 0 {
            let number = UInt32(truncatingIfNeeded: directory[slot]) &- 1
            if storedHash(number) == hash, equals(number, columns, batchRow) {
                rows[batchRow] = number
                return
            }
            slot = (slot + 1) & mask
        }
        let number = allocateRow(hash: hash)
        directory[slot] = hash & 0xFFFF_FFFF_0000_0000 | UInt64(number + 1)
        rows[batchRow] = number
        var one = Selection(capacity: 1)
        one.rows[0] = UInt32(batchRow)
        one.count = 1
        for (index, column) in columns.enumerated() { write(column, to: index, batchRows: one, rows: rows) }
        // Keeps `inserted` ascending.
        var position = inserted.count
        while position > 0, inserted.rows[position - 1] > UInt32(batchRow) {
            inserted.rows[position] = inserted.rows[position - 1]
            position -= 1
        }
        inserted.rows[position] = UInt32(batchRow)
        inserted.count += 1
    }

    /// Calls `body` with the rows whose stored hash is `hash`, until it returns false.
    package func forEach(hash: UInt64, _ body: (RowNumber) -> Bool) {
        let hash = max(hash, 1)
        let mask = 1 << directoryBits - 1
        var slot = home(hash)
        while directory[slot] != 0 {
            let number = UInt32(truncatingIfNeeded: directory[slot]) &- 1
            if storedHash(number) == hash, !body(number) { return }
            slot = (slot + 1) & mask
        }
    }

    // MARK: Removing

    /// Frees a row; its number may be given to a later one.
    package func remove(_ number: RowNumber) {
        if keepsDirectory { removeFromDirectory(number) }
        prepareToWrite(number)
        let row = row(number)
        if layout.hasStrings { heapLiveBytes -= stringBytes(row) }
        row.initializeMemory(as: UInt8.self, repeating: 0, count: layout.stride)
        row.storeBytes(of: freeHead, toByteOffset: layout.payloadOffset, as: UInt32.self)
        freeHead = number + 1
        count -= 1
    }

    /// Backward-shift deletion: entries after the hole move into it while that brings them nearer to their home.
    private func removeFromDirectory(_ number: RowNumber) {
        let mask = 1 << directoryBits - 1
        var slot = home(storedHash(number))
        while UInt32(truncatingIfNeeded: directory[slot]) != number + 1 {
            precondition(directory[slot] != 0, "a live row has a directory slot")
            slot = (slot + 1) & mask
        }
        var hole = slot
        var next = (slot + 1) & mask
        while directory[next] != 0 {
            let origin = home(directory[next])
            if (next &- origin) & mask >= (next &- hole) & mask {
                directory[hole] = directory[next]
                hole = next
            }
            next = (next + 1) & mask
        }
        directory[hole] = 0
    }

    /// Rewrites the heap without dead strings when they outweigh the live ones. Call between batches.
    package func compactHeapIfWorthwhile() {
        guard layout.hasStrings, heap.byteCount > 1 << 20, heap.byteCount > 2 * heapLiveBytes + (1 << 20) else { return }
        let fresh = StringHeap(firstChunkBytes: 1 << 20)
        forEachRow { number in
            prepareToWrite(number)
            let row = row(number)
            for (index, column) in layout.columns.enumerated() where column.physical == .string {
                let slot = (row + layout.offsets[index]).assumingMemoryBound(to: StringView.self)
                slot.pointee = fresh.view(copying: slot.pointee)
            }
        }
        heap = fresh
    }

    private func stringBytes(_ row: UnsafeMutableRawPointer) -> Int {
        var total = 0
        for (index, column) in layout.columns.enumerated() where column.physical == .string {
            let view = row.load(fromByteOffset: layout.offsets[index], as: StringView.self)
            if !view.isInline { total += view.count }
        }
        return total
    }

    func noteHeapBytes(_ bytes: Int) { heapLiveBytes += bytes }

    // MARK: Directory

    @inline(__always) func home(_ hash: UInt64) -> Int { Int(truncatingIfNeeded: hash >> UInt64(64 - directoryBits)) }

    /// Room for `more` rows at a load of at most one half.
    private func reserve(_ more: Int) {
        guard (count + more) * 2 > 1 << directoryBits else { return }
        var bits = directoryBits
        while (count + more) * 2 > 1 << bits { bits += 1 }
        // Twice what is needed now, so that growing stays rare.
        let old = directory
        let oldSlots = 1 << directoryBits
        directoryBits = bits + 1
        directory = .allocate(capacity: 1 << directoryBits)
        directory.initialize(repeating: 0, count: 1 << directoryBits)
        let mask = 1 << directoryBits - 1
        for index in 0..<oldSlots where old[index] != 0 {
            var slot = home(old[index])
            while directory[slot] != 0 { slot = (slot + 1) & mask }
            directory[slot] = old[index]
        }
        old.deallocate()
    }

    // MARK: Scanning

    /// Calls `body` with every live row, in page order.
    package func forEachRow(_ body: (RowNumber) -> Void) {
        for number in 0..<rowsUsed where storedHash(RowNumber(number)) != 0 { body(RowNumber(number)) }
    }

    /// The live rows with `lower <= hash`, until about `limit` rows; `next` is the hash to go on from, nil at the end. Every row with
    /// a hash below `next` and at least `lower` is among them.
    ///
    /// Whole clusters of occupied slots at a time, each slot read once: a row lies between its home and the next empty slot, so when
    /// a cluster has been read, so have all rows whose home is before its end. A cluster may take the result over the limit.
    package func rows(fromHash lower: UInt64, limit: Int) -> (rows: [RowNumber], next: UInt64?) {
        var found: [RowNumber] = []
        let slots = 1 << directoryBits
        let first = home(lower)
        var slot = first
        func take(_ entry: UInt64) {
            let number = UInt32(truncatingIfNeeded: entry) &- 1
            if storedHash(number) >= lower { found.append(number) }
        }
        while slot < slots, found.count < limit || directory[slot] != 0 {
            // A row of an earlier home has a smaller hash; one that wrapped around from the end is read with the last cluster.
            let entry = directory[slot]
            if entry != 0, home(entry) >= first, home(entry) <= slot { take(entry) }
            slot += 1
        }
        guard slot == slots else { return (found, UInt64(slot) << UInt64(64 - directoryBits)) }
        // The last cluster goes on at the start of the directory.
        slot = 0
        while directory[slots - 1] != 0, directory[slot] != 0 {
            let entry = directory[slot]
            if home(entry) > slot, home(entry) >= first { take(entry) }
            slot += 1
        }
        return (found, nil)
    }

    /// An immutable image of all rows as of now, for readers on other threads.
    package func snapshot() -> TableSnapshot {
        shared = Array(repeating: true, count: pages.count)
        return TableSnapshot(layout: layout, pages: pages, rowsPerPage: slotMask + 1, rowsUsed: rowsUsed, count: count, heap: heap)
    }
}
