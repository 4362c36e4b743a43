import CMemory
import MillBase
import MillIO
package import MillColumnar

/// One operator's keyed rows in one worker's shard: hash access. (Ordered access is `OrderedTable`.)
///
/// Rows lie in 16 KiB pages by `RowLayout`; a directory of 8-byte slots maps hashes to row numbers. Calls take a batch:
/// hash, probe, then column by column compare or copy, so that no per-row work depends on a type.
///
/// Invariants (`checkInvariants` verifies them):
/// 1. Each live row has one slot in the directory of an indexed table, and between a slot and its home there is no empty one.
/// 2. A live row's stored hash is not 0; a free row's is, and free rows are linked through their payload start.
/// 3. Views in live rows point into `heap` or are inline.
///
/// Threading: owned by one worker. `snapshot()` gives a reader an immutable image; the heap only grows, so bytes that a
/// snapshot or a batch in flight points at never change; compaction makes a new heap and leaves the old to its holders.
package final class StateTable {
    package let layout: RowLayout
    /// When a batch's row is the same as a stored one: by value for keys and groups, by representation for multisets of rows.
    let equality: RowEquality
    package private(set) var heap = StringHeap()
    private var heapLiveBytes = 0

    private(set) var pages: [StatePage] = []
    private var slab: PageSlab?
    let watch: UnsafeMutablePointer<PageWatch>
    /// Where in the payload strings lie whose bytes belong to the operator, long ones in a heap of its own.
    let payloadStrings: [Int]
    /// Keeps the bytes of those strings.
    let stringsOwner: AnyObject?
    @usableFromInline let rowShift: Int
    @usableFromInline let slotMask: Int
    @usableFromInline let store: UnsafeMutablePointer<RowStore>

    var directory = Directory()
    private let keepsDirectory: Bool
    private var changedRowsCapacity = 0
    /// Has memory handed out while the table is restored.
    var populating: PinnedThread?
    /// For each column whether a row has ever been NULL in it.
    var hasNulls: [Bool]
    /// Where the rows of the batch in work lie.
    private let places = UnsafeMutablePointer<UnsafeMutableRawPointer>.allocate(capacity: Limits.batchRowsMax)
    private let flags = UnsafeMutablePointer<UInt8>.allocate(capacity: Limits.batchRowsMax)

    /// What is read and changed for each row. Behind a fixed address: on the variables of a class every access is checked for
    /// overlap with others, at the price of several instructions a row.
    @usableFromInline struct RowStore {
        @usableFromInline var bases: UnsafeMutablePointer<UnsafeMutableRawPointer>
        var basesCapacity = 16
        var used = 0
        var live = 0
        var freeHead: UInt32 = 0
        /// A bit for each row: changed since the last seal. Only while changes are tracked.
        var changedRows: UnsafeMutablePointer<UInt64>
        var isTracking = false
    }

    /// Pages of a table before it takes memory by the slab.
    private static let singlePagesMax = 64

    /// - Parameters:
    ///   - payloadBytes: room for the operator in every row, zero in a new row; at least 4.
    ///   - indexed: false for rows that are only reached by links from elsewhere.
    ///   - payloadStrings: offsets of `StringView`s in the payload whose long strings the operator keeps.
    ///   - stringsOwner: what of the operator keeps them; it lives as long as a seal that points at them.
    package init(
        columns: [SQLType], payloadBytes: Int, equality: RowEquality = .values, indexed: Bool = true, payloadStrings: [Int] = [],
        stringsOwner: AnyObject? = nil
    ) {
        self.equality = equality
        self.payloadStrings = payloadStrings
        self.stringsOwner = stringsOwner
        layout = RowLayout(columns: columns, payloadBytes: max(payloadBytes, 8))
        let perPage = max(1, StatePage.bytes / layout.stride)
        rowShift = Int.bitWidth - 1 - perPage.leadingZeroBitCount
        slotMask = (1 << rowShift) - 1
        store = .allocate(capacity: 1)
        store.initialize(to: RowStore(bases: .allocate(capacity: 16), changedRows: .allocate(capacity: 0)))
        watch = .allocate(capacity: 1)
        watch.initialize(to: PageWatch())
        keepsDirectory = indexed
        hasNulls = Array(repeating: false, count: columns.count)
    }

    deinit {
        populating?.join()
        watch.deinitialize(count: 1)
        watch.deallocate()
        store.pointee.bases.deallocate()
        store.pointee.changedRows.deallocate()
        store.deallocate()
        directory.free()
        places.deallocate()
        flags.deallocate()
    }

    // MARK: Rows

    /// Live rows.
    package var count: Int { store.pointee.live }

    @usableFromInline @inline(__always) func row(_ number: RowNumber) -> UnsafeMutableRawPointer {
        store.pointee.bases[Int(number) &>> rowShift] + (Int(number) & slotMask) &* layout.stride
    }

    /// The operator's part of a row, for reading.
    @inlinable @inline(__always) package func payload(_ number: RowNumber) -> UnsafeRawPointer { UnsafeRawPointer(preparedPayload(number)) }

    /// The same for changing, of a row for which `prepareToWrite` was called in this epoch, or that came in it.
    @inlinable @inline(__always) package func preparedPayload(_ number: RowNumber) -> UnsafeMutableRawPointer {
        row(number) + layout.payloadOffset
    }

    @inlinable @inline(__always) package func storedHash(_ number: RowNumber) -> UInt64 { row(number).load(as: UInt64.self) }

    /// Bytes held by pages, heap and directory.
    package var byteCount: Int {
        pages.count * ((slotMask + 1) * layout.stride) + heap.byteCount + directory.byteCount
    }

    /// A new row with everything but its hash zero.
    @inline(__always) private func allocateRow(hash: UInt64) -> RowNumber {
        store.pointee.live &+= 1
        if store.pointee.freeHead != 0 { return reuseRow(hash: hash) }
        let used = store.pointee.used
        if used >> rowShift == pages.count { addPage() }
        store.pointee.used = used &+ 1
        let number = RowNumber(truncatingIfNeeded: used)
        prepareToWrite(number)
        row(number).storeBytes(of: hash, as: UInt64.self)
        return number
    }

    private func reuseRow(hash: UInt64) -> RowNumber {
        let number = store.pointee.freeHead - 1
        prepareToWrite(number)
        let row = row(number)
        store.pointee.freeHead = row.load(fromByteOffset: layout.payloadOffset, as: UInt32.self)
        row.storeBytes(of: hash, as: UInt64.self)
        row.storeBytes(of: 0, toByteOffset: layout.payloadOffset, as: UInt32.self)
        return number
    }

    private func addPage() {
        // The directory then has an empty slot for each row.
        precondition(store.pointee.used < 1 << 31 - 1 << rowShift, "a table holds fewer than 2^31 rows")
        if pages.count == store.pointee.basesCapacity {
            let larger = UnsafeMutablePointer<UnsafeMutableRawPointer>.allocate(capacity: pages.count * 2)
            larger.update(from: store.pointee.bases, count: pages.count)
            store.pointee.bases.deallocate()
            store.pointee.bases = larger
            store.pointee.basesCapacity = pages.count * 2
        }
        let page = newPage((slotMask + 1) * layout.stride)
        store.pointee.bases[pages.count] = page.memory
        pages.append(page)
        if watch.pointee.isOn { watch.pointee.reserve(pages.count) }
        if store.pointee.isTracking { reserveChangedRows() }
    }

    private func newPage(_ byteCount: Int) -> StatePage {
        guard pages.count >= Self.singlePagesMax, byteCount <= PageSlab.bytes / 8 else { return StatePage(byteCount: byteCount) }
        if let slab, let page = StatePage(of: slab, byteCount: byteCount) { return page }
        slab = PageSlab()
        return slab.flatMap { StatePage(of: $0, byteCount: byteCount) } ?? StatePage(byteCount: byteCount)
    }

    /// Must be called before a row is changed, at least once in an epoch. Of a table of which snapshots are taken, pointers to rows
    /// of the page are void after; otherwise memory does not move.
    @inline(__always) package func prepareToWrite(_ number: RowNumber) {
        if watch.pointee.isOn { noteWrite(number) }
    }

    private func noteWrite(_ number: RowNumber) {
        let page = Int(number) >> rowShift
        if !watch.pointee.isReady(page) {
            detach(page)
            watch.pointee.list(page)
        }
        if store.pointee.isTracking { store.pointee.changedRows[Int(number) >> 6] |= 1 << UInt64(number & 63) }
    }

    /// Lets go of a page's present bytes: who needs them has them afterwards.
    private func detach(_ page: Int) {
        watch.pointee.settle(page)
        guard watch.pointee.flags[page] & PageWatch.shared != 0 else { return }
        watch.pointee.unshare(page)
        if !isKnownUniquelyReferenced(&pages[page]) {
            pages[page] = StatePage(copying: pages[page])
            store.pointee.bases[page] = pages[page].memory
        }
    }

    /// The operator's part of a row, for changing.
    @inline(__always) package func writablePayload(_ number: RowNumber) -> UnsafeMutableRawPointer {
        prepareToWrite(number)
        return preparedPayload(number)
    }

    // MARK: For checkpoints (`StateTable+Durable.swift`)

    func startTracking() {
        watch.pointee.reserve(pages.count)
        watch.pointee.track()
        store.pointee.isTracking = true
        reserveChangedRows()
    }

    /// Called before memory changes that rows point at: who needs the present bytes has them afterwards. The rows stay what they are.
    package func settle() { watch.pointee.settleAll() }

    private func reserveChangedRows() {
        let words = (pages.count << rowShift + 63) / 64
        guard words > changedRowsCapacity else { return }
        let capacity = max(words, 2 * changedRowsCapacity)
        let larger = UnsafeMutablePointer<UInt64>.allocate(capacity: capacity)
        larger.initialize(repeating: 0, count: capacity)
        larger.update(from: store.pointee.changedRows, count: changedRowsCapacity)
        store.pointee.changedRows.deallocate()
        store.pointee.changedRows = larger
        changedRowsCapacity = capacity
    }

    /// Empty pages for rows that are to be given back, which the blocks of a checkpoint then fill.
    func restorePages(used: Int, count: Int, freeHead: UInt32) {
        while pages.count << rowShift < used { addPage() }
        store.pointee.used = used
        store.pointee.live = count
        store.pointee.freeHead = freeHead
    }

    func setHeapBytes(_ bytes: Int) { heapLiveBytes = bytes }
    func noteNulls(_ index: Int) { hasNulls[index] = true }
    var isIndexed: Bool { keepsDirectory }

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
        let differing = findOrInsertSimilar(columns, hashes: hashes, count: batchCount, rows: rows, inserted: &inserted)
        for position in 0..<differing.count {
            resolveCollision(columns, hashes: hashes, batchRow: Int(differing.rows[position]), rows: rows, inserted: &inserted)
        }
    }

    /// Finds a row whose hash is similar to that of each of `count` rows, inserting what is missing.
    /// - Returns: the batch rows for which another row was found than they are; `resolveCollision` finds or inserts theirs.
    func findOrInsertSimilar(
        _ columns: [Column], hashes: UnsafePointer<UInt64>, count batchCount: Int, rows: UnsafeMutablePointer<RowNumber>, inserted: inout Selection
    ) -> Selection {
        precondition(batchCount <= Limits.batchRowsMax, "a batch has at most \(Limits.batchRowsMax) rows")
        directory.reserve(count + batchCount)
        probe(hashes, batchCount, rows: rows, inserted: &inserted)
        for (index, column) in columns.enumerated() { write(column, to: index, batchRows: inserted, rows: rows) }
        var differing = Selection(capacity: batchCount)
        if inserted.count < batchCount { verify(columns, count: batchCount, rows: rows, differing: &differing) }
        return differing
    }

    /// For each hash the first row with its tag, or a new row. Only reads the directory: whether a row found is the right one is seen
    /// by its columns, and by then its bytes have come.
    private func probe(_ hashes: UnsafePointer<UInt64>, _ batchCount: Int, rows: UnsafeMutablePointer<RowNumber>, inserted: inout Selection) {
        inserted.count = 0
        let directory = directory
        let slots = directory.slots
        let mask = directory.mask
        let isLarge = directory.isLarge
        let ahead = 24
        if isLarge { for index in 0..<min(ahead, batchCount) { mill_prefetch(slots + directory.home(hashes[index])) } }
        for index in 0..<batchCount {
            if isLarge, index &+ ahead < batchCount { mill_prefetch(slots + directory.home(hashes[index &+ ahead])) }
            let hash = max(hashes[index], 1)
            var slot = directory.home(hash)
            let tag = Directory.tag(hash)
            while true {
                let entry = slots[slot]
                if entry == 0 {
                    let number = allocateRow(hash: hash)
                    slots[slot] = Directory.entry(hash, number)
                    rows[index] = number
                    inserted.append(index)
                    break
                }
                if Directory.tag(entry) == tag {
                    rows[index] = Directory.row(entry)
                    if isLarge { mill_prefetch(row(rows[index])) }
                    break
                }
                slot = (slot &+ 1) & mask
            }
        }
    }

    /// Appends rows without looking for equal ones, without a directory entry.
    package func append(_ columns: [Column], hashes: UnsafePointer<UInt64>, count batchCount: Int, rows: UnsafeMutablePointer<RowNumber>) {
        for index in 0..<batchCount { rows[index] = allocateRow(hash: max(hashes[index], 1)) }
        write(columns, count: batchCount, rows: rows)
    }

    /// Writes the columns of new rows that have none yet.
    package func write(_ columns: [Column], count batchCount: Int, rows: UnsafePointer<RowNumber>) {
        var all = Selection(capacity: batchCount)
        for index in 0..<batchCount { all.rows[index] = UInt32(truncatingIfNeeded: index) }
        all.count = batchCount
        for (index, column) in columns.enumerated() { write(column, to: index, batchRows: all, rows: rows) }
    }

    /// A row without columns yet, with a payload of zeros and without a directory entry.
    package func append(hash: UInt64) -> RowNumber { allocateRow(hash: max(hash, 1)) }

    /// The row equal to each batch row, or `notFound`.
    package func find(_ columns: [Column], hashes: UnsafePointer<UInt64>, count batchCount: Int, rows: UnsafeMutablePointer<RowNumber>) {
        precondition(batchCount <= Limits.batchRowsMax, "a batch has at most \(Limits.batchRowsMax) rows")
        guard count > 0 else { return rows.update(repeating: Self.notFound, count: batchCount) }
        let directory = directory
        let slots = directory.slots
        let mask = directory.mask
        let isLarge = directory.isLarge
        let ahead = 24
        // Positions in the batch of the rows that have a candidate, and their candidates.
        var found = Selection(capacity: batchCount)
        if isLarge { for index in 0..<min(ahead, batchCount) { mill_prefetch(slots + directory.home(hashes[index])) } }
        for index in 0..<batchCount {
            if isLarge, index &+ ahead < batchCount { mill_prefetch(slots + directory.home(hashes[index &+ ahead])) }
            let hash = max(hashes[index], 1)
            let tag = Directory.tag(hash)
            var slot = directory.home(hash)
            rows[index] = Self.notFound
            while slots[slot] != 0 {
                if Directory.tag(slots[slot]) == tag {
                    rows[index] = Directory.row(slots[slot])
                    if isLarge { mill_prefetch(row(rows[index])) }
                    found.append(index)
                    break
                }
                slot = (slot &+ 1) & mask
            }
        }
        guard found.count > 0 else { return }
        var differing = Selection(capacity: batchCount)
        if found.count == batchCount {
            verify(columns, count: batchCount, rows: rows, differing: &differing)
        } else {
            // The others are compared with some row, and the answer ignored.
            let some = rows[Int(found.rows[0])]
            withUnsafeTemporaryAllocation(of: RowNumber.self, capacity: batchCount) { candidates in
                for index in 0..<batchCount { candidates[index] = rows[index] == Self.notFound ? some : rows[index] }
                verify(columns, count: batchCount, rows: candidates.baseAddress.unsafelyUnwrapped, differing: &differing)
            }
        }
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

    package static let notFound = RowNumber.max

    /// Two different rows with one 64-bit hash: found by comparing values, one row at a time. Runs for rows that share a key in a
    /// table hashed by it, and for one value in several representations.
    func resolveCollision(
        _ columns: [Column], hashes: UnsafePointer<UInt64>, batchRow: Int, rows: UnsafeMutablePointer<RowNumber>, inserted: inout Selection
    ) {
        let hash = max(hashes[batchRow], 1)
        let slots = directory.slots
        let mask = directory.mask
        var slot = directory.home(hash)
        while slots[slot] != 0 {
            let number = Directory.row(slots[slot])
            if storedHash(number) == hash, equals(number, columns, batchRow) {
                rows[batchRow] = number
                return
            }
            slot = (slot &+ 1) & mask
        }
        let number = allocateRow(hash: hash)
        slots[slot] = Directory.entry(hash, number)
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
        let slots = directory.slots
        let mask = directory.mask
        var slot = directory.home(hash)
        while slots[slot] != 0 {
            let number = Directory.row(slots[slot])
            if storedHash(number) == hash, !body(number) { return }
            slot = (slot &+ 1) & mask
        }
    }

    /// Whether no other row has its hash.
    func isOnly(_ number: RowNumber, hash: UInt64) -> Bool {
        let hash = max(hash, 1)
        let slots = directory.slots
        let mask = directory.mask
        var slot = directory.home(hash)
        while slots[slot] != 0 {
            if Directory.tag(slots[slot]) == Directory.tag(hash), Directory.row(slots[slot]) != number { return false }
            slot = (slot &+ 1) & mask
        }
        return true
    }

    // MARK: Removing

    /// Makes a row's columns ready to be written anew.
    func clear(_ number: RowNumber) {
        prepareToWrite(number)
        let row = row(number)
        if layout.hasStrings { heapLiveBytes -= stringBytes(row) }
        for word in 0..<layout.nullWords { row.storeBytes(of: 0, toByteOffset: RowLayout.nullOffset + 8 * word, as: UInt64.self) }
    }

    /// Frees a row; its number may be given to a later one.
    package func remove(_ number: RowNumber) {
        if keepsDirectory { removeFromDirectory(number) }
        prepareToWrite(number)
        let row = row(number)
        if layout.hasStrings { heapLiveBytes -= stringBytes(row) }
        row.initializeMemory(as: UInt8.self, repeating: 0, count: layout.stride)
        row.storeBytes(of: store.pointee.freeHead, toByteOffset: layout.payloadOffset, as: UInt32.self)
        store.pointee.freeHead = number + 1
        store.pointee.live -= 1
    }

    /// Backward-shift deletion: entries after the hole move into it while that brings them nearer to their home.
    private func removeFromDirectory(_ number: RowNumber) {
        let slots = directory.slots
        let mask = directory.mask
        var slot = directory.home(storedHash(number))
        while Directory.row(slots[slot]) != number {
            precondition(slots[slot] != 0, "a live row has a directory slot")
            slot = (slot &+ 1) & mask
        }
        var hole = slot
        var next = (slot &+ 1) & mask
        while slots[next] != 0 {
            let origin = directory.home(slots[next])
            if (next &- origin) & mask >= (next &- hole) & mask {
                slots[hole] = slots[next]
                hole = next
            }
            next = (next &+ 1) & mask
        }
        slots[hole] = 0
    }

    /// Rewrites the heap without dead strings when they outweigh the live ones. Call between batches.
    package func compactHeapIfWorthwhile() {
        guard layout.hasStrings, heap.byteCount > 1 << 20, heap.byteCount > 2 * heapLiveBytes + (1 << 20) else { return }
        let fresh = StringHeap(firstChunkBytes: 1 << 20)
        // The rows stay what they are; only the memory of their strings is another.
        for page in pages.indices where watch.pointee.isOn { detach(page) }
        forEachRow { number in
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

    /// Where each of `count` rows lies, until a row is added or a page is prepared for writing.
    @inline(__always)
    func places(of rows: UnsafePointer<RowNumber>, count: Int) -> UnsafePointer<UnsafeMutableRawPointer> {
        for index in 0..<count { places[index] = row(rows[index]) }
        return UnsafePointer(places)
    }

    /// A zero for each of `count` rows.
    func clearedFlags(count: Int) -> UnsafeMutablePointer<UInt8> {
        flags.update(repeating: 0, count: count)
        return flags
    }

    // MARK: Scanning

    /// Calls `body` with every live row, in page order.
    package func forEachRow(_ body: (RowNumber) -> Void) {
        for number in 0..<store.pointee.used where storedHash(RowNumber(number)) != 0 { body(RowNumber(number)) }
    }

    /// The live rows with `lower <= hash`, until about `limit` rows; `next` is the hash to go on from, nil at the end. Every row with
    /// a hash below `next` and at least `lower` is among them.
    ///
    /// Whole clusters of occupied slots at a time, each slot read once: a row lies between its home and the next empty slot, so when
    /// a cluster has been read, so have all rows whose home is before its end. A cluster may take the result over the limit.
    package func rows(fromHash lower: UInt64, limit: Int) -> (rows: [RowNumber], next: UInt64?) {
        var found: [RowNumber] = []
        let (slots, count) = (directory.slots, directory.count)
        let first = directory.home(lower)
        var slot = first
        func take(_ entry: UInt64) {
            let number = Directory.row(entry)
            if storedHash(number) >= lower { found.append(number) }
        }
        while slot < count, found.count < limit || slots[slot] != 0 {
            // A row of an earlier home has a smaller hash; one that wrapped around from the end is read with the last cluster.
            let entry = slots[slot]
            if entry != 0, directory.home(entry) >= first, directory.home(entry) <= slot { take(entry) }
            slot += 1
        }
        guard slot == count else { return (found, UInt64(slot) << UInt64(64 - directory.bits)) }
        // The last cluster goes on at the start of the directory.
        slot = 0
        while slots[count - 1] != 0, slots[slot] != 0 {
            let entry = slots[slot]
            if directory.home(entry) > slot, directory.home(entry) >= first { take(entry) }
            slot += 1
        }
        return (found, nil)
    }

    /// An immutable image of all rows as of now, for readers on other threads.
    package func snapshot() -> TableSnapshot {
        watch.pointee.share(pages.count)
        return TableSnapshot(layout: layout, pages: pages, rowsPerPage: slotMask + 1, rowsUsed: store.pointee.used, count: count, heap: heap)
    }
}
