import CMemory
import MillColumnar
import MillIO

/// Checkpoints of a table: pages and changed rows out, and back in where they were.
///
/// A row is stored as it lies in memory, free rows with their links included; only the address of a long string becomes its place in the
/// block's heap part. The directory is not stored: it follows from the hashes.
extension StateTable: DurableTable {
    package func track() { startTracking() }

    private var shape: TableShape {
        TableShape(
            kind: .rows, rowBytes: layout.stride, layout: layout.payloadOffset, used: store.pointee.used, count: count,
            first: store.pointee.freeHead)
    }

    package func seal(table: UInt32, rewriting: [UInt32]) -> SealedPages? {
        let changed = watch.pointee.takeChanged()
        let whole = Set(rewriting)
        var entries: [any SealedPage] = []
        for page in changed {
            let rows = takeChangedRows(page)
            let isWhole = whole.contains(page) || !watch.pointee.isBased(page) || rows.count * 4 > usedRows(page) * 3
            entries.append(entry(page, isWhole ? nil : rows))
        }
        let listed = Set(changed)
        for page in rewriting where !listed.contains(page) && Int(page) < pages.count { entries.append(entry(page, nil)) }
        guard !changed.isEmpty || !entries.isEmpty || !watch.pointee.hasSeal else { return nil }
        entries.sort { $0.number < $1.number }
        let seal = SealedPages(table: table, shape: shape, entries)
        watch.pointee.begin(seal)
        return seal
    }

    package func forgetSeals() { watch.pointee.forgetBases(pages.count) }

    private func entry(_ page: UInt32, _ rows: [UInt16]?) -> SealedRows {
        SealedRows(
            number: page, memory: pages[Int(page)], usedRows: usedRows(page), rows: rows, layout: layout, stringOffsets: stringOffsets,
            heap: heap, stringsOwner: stringsOwner)
    }

    /// Rows of a page that were ever used.
    private func usedRows(_ page: UInt32) -> Int { min(slotMask + 1, store.pointee.used - Int(page) << rowShift) }

    /// The rows of a page that changed since the last seal, by slot, and none from now on.
    private func takeChangedRows(_ page: UInt32) -> [UInt16] {
        let first = Int(page) << rowShift
        var rows: [UInt16] = []
        var number = first
        let end = first + usedRows(page)
        while number < end {
            // A word at a time: pages of 64 rows and more begin with one.
            var word = store.pointee.changedRows[number >> 6] >> UInt64(number & 63)
            let width = min(64 - number & 63, slotMask + 1 - (number - first))
            if width < 64 { word &= 1 << UInt64(width) - 1 }
            store.pointee.changedRows[number >> 6] &= ~(word << UInt64(number & 63))
            while word != 0 {
                rows.append(UInt16(truncatingIfNeeded: number - first + word.trailingZeroBitCount))
                word &= word - 1
            }
            number += width
        }
        return rows
    }

    /// Where in a row strings lie, the operator's own included.
    private var stringOffsets: [Int] {
        zip(layout.columns, layout.offsets).filter { $0.0.physical == .string }.map(\.1) + payloadStrings.map { layout.payloadOffset + $0 }
    }

    // MARK: Restoring

    package func restore(_ shape: TableShape) throws(StateCorruption) {
        guard shape.kind == .rows, shape.rowBytes == UInt32(layout.stride), shape.layout == UInt32(layout.payloadOffset) else {
            throw StateCorruption("rows of \(shape.rowBytes) bytes are stored where rows of \(layout.stride) bytes are kept")
        }
        guard shape.used < 1 << 31, shape.count <= shape.used, shape.first <= shape.used else {
            throw StateCorruption("a table with \(shape.count) of \(shape.used) rows, \(shape.first) free first")
        }
        precondition(store.pointee.used == 0, "state is given to a table that has none")
        restorePages(used: Int(shape.used), count: Int(shape.count), freeHead: shape.first)
        if isIndexed { directory.reserve(count) }
        populateAhead()
    }

    /// Memory is handed out by another thread while blocks are read: the directory's, then that of the pages from the last one on.
    private func populateAhead() {
        guard isIndexed, directory.isVeryLarge else { return }
        let directory = SharedDirectory(directory: directory)
        var slabs: [PageSlab] = []
        for (index, page) in pages.enumerated() {
            if let slab = page.slab(after: index > 0 ? pages[index - 1] : nil) { slabs.append(slab) }
        }
        // Whoever needs a part before gets it as ever.
        // Without it memory is handed out as ever.
        populating = try? PinnedThread(stackBytes: 1 << 20) { [slabs] in
            directory.directory.populate()
            for slab in slabs.reversed() { slab.populate() }
        }
    }

    package func restore(block: StateBlock) throws(StateCorruption) {
        // Rows that the table no longer had at the checkpoint cannot be: pages never leave a table.
        guard Int(block.page) < pages.count else { throw StateCorruption("a block of page \(block.page) in a table of \(pages.count) pages") }
        let (stride, rowCount) = (layout.stride, block.rowCount)
        let body = block.body
        let heapPart = try block.heap()
        let slotBytes = block.kind == .rows ? (2 * rowCount + 7) & ~7 : 0
        guard rowCount <= slotMask + 1, slotBytes + rowCount * stride <= body.count - (heapPart.count + 7) & ~7 else {
            throw StateCorruption("a block of \(body.count) bytes cannot hold \(rowCount) rows of \(stride) bytes")
        }
        let page = pages[Int(block.page)].memory
        let strings = stringOffsets
        for index in 0..<rowCount {
            let slot = block.kind == .rows ? Int(body.loadUnaligned(fromByteOffset: 2 * index, as: UInt16.self)) : index
            guard slot <= slotMask else { throw StateCorruption("row \(slot) of a page of \(slotMask + 1) rows") }
            let row = page + slot * stride
            row.copyMemory(from: body.baseAddress.unsafelyUnwrapped + slotBytes + index * stride, byteCount: stride)
            for offset in strings { try restoreString(row + offset, from: heapPart) }
        }
    }

    private func restoreString(_ place: UnsafeMutableRawPointer, from bytes: UnsafeRawBufferPointer) throws(StateCorruption) {
        let view = place.load(as: StringView.self)
        guard !view.isInline else { return }
        guard view.high <= UInt64(bytes.count), UInt64(bytes.count) - view.high >= UInt64(view.count) else {
            throw StateCorruption("a string of \(view.count) bytes at \(view.high) of \(bytes.count)")
        }
        let part = UnsafeRawBufferPointer(rebasing: bytes[Int(view.high)..<Int(view.high) + view.count])
        place.storeBytes(of: heap.view(copying: part.assumingMemoryBound(to: UInt8.self)), as: StringView.self)
    }

    package func finishRestore() throws(StateCorruption) {
        populating?.join()
        populating = nil
        var (live, heapBytes) = (0, 0)
        let strings = zip(layout.columns, layout.offsets).filter { $0.0.physical == .string }.map(\.1)
        var nulls = [UInt64](repeating: 0, count: layout.nullWords)
        forEachRow { number in
            live += 1
            let row = row(number)
            if directory.isLarge { prefetchSlot(of: Int(number) + Self.rowsAhead) }
            for word in 0..<layout.nullWords { nulls[word] |= row.load(fromByteOffset: RowLayout.nullOffset + 8 * word, as: UInt64.self) }
            for offset in strings {
                let view = row.load(fromByteOffset: offset, as: StringView.self)
                if !view.isInline { heapBytes += view.count }
            }
            if isIndexed, live <= count { directory.insert(storedHash(number), number) }
        }
        guard live == count else { throw StateCorruption("\(live) rows where the record names \(count)") }
        try checkFreeRows()
        for index in layout.columns.indices where nulls[index / 64] >> UInt64(index % 64) & 1 != 0 { noteNulls(index) }
        setHeapBytes(heapBytes)
        watch.pointee.noteRestored(pages.count)
        if payloadStrings.isEmpty { compactHeapIfWorthwhile() }
    }
}

extension StateTable {
    /// Every free row is reached from the first one, and nothing else is: rows are given out again from there.
    private func checkFreeRows() throws(StateCorruption) {
        let used = store.pointee.used
        var (free, left) = (store.pointee.freeHead, used - count)
        while free != 0 {
            guard left > 0, Int(free) <= used, storedHash(free - 1) == 0 else { throw StateCorruption("row \(free) is not free") }
            free = row(free - 1).load(fromByteOffset: layout.payloadOffset, as: UInt32.self)
            left -= 1
        }
        guard left == 0 else { throw StateCorruption("\(left) free rows are not known") }
    }

    /// Rows whose slots are asked for before they are filled.
    private static let rowsAhead = 16

    /// Asks for the directory's slot of a row that may not be there.
    @inline(__always) private func prefetchSlot(of number: Int) {
        guard number < store.pointee.used else { return }
        mill_prefetch(directory.slots + directory.home(storedHash(RowNumber(truncatingIfNeeded: number))))
    }
}

/// The slots of a directory that does not grow meanwhile, for a thread that only touches their memory.
private struct SharedDirectory: @unchecked Sendable {
    let directory: Directory
}

/// A page of rows in a seal.
private struct SealedRows: SealedPage {
    let number: UInt32
    let memory: StatePage
    let usedRows: Int
    /// The rows that changed; nil for all.
    let rows: [UInt16]?
    let layout: RowLayout
    let stringOffsets: [Int]
    /// Both keep the strings that the rows point at, also when the table is gone.
    let heap: StringHeap
    let stringsOwner: AnyObject?

    func write(to bytes: inout [UInt8], table: UInt32) {
        let stride = layout.stride
        let count = rows?.count ?? usedRows
        bytes.reserveCapacity(bytes.count + StateBlock.headerBytes + count * (stride + 2) + 16)
        let start = StateBlock.begin(rows == nil ? .page : .rows, table: table, page: number, rows: count, in: &bytes)
        if let rows {
            rows.withUnsafeBytes { bytes += $0 }
            while (bytes.count - start) & 7 != 0 { bytes.append(0) }
        }
        let firstRow = bytes.count
        if let rows {
            for slot in rows { bytes += UnsafeRawBufferPointer(start: memory.memory + Int(slot) * stride, count: stride) }
        } else {
            bytes += UnsafeRawBufferPointer(start: memory.memory, count: count * stride)
        }
        var heapPart: [UInt8] = []
        if !stringOffsets.isEmpty {
            bytes.withUnsafeMutableBytes { all in
                for row in 0..<count {
                    for offset in stringOffsets { moveString(all.baseAddress.unsafelyUnwrapped + firstRow + row * stride + offset, to: &heapPart) }
                }
            }
        }
        StateBlock.finish(start, heap: heapPart, in: &bytes)
    }
}

/// Gives a long string its place in the heap part instead of its address.
func moveString(_ place: UnsafeMutableRawPointer, to heapPart: inout [UInt8]) {
    let view = place.loadUnaligned(as: StringView.self)
    guard !view.isInline else { return }
    place.storeBytes(of: StringView(low: view.low, high: UInt64(heapPart.count)), as: StringView.self)
    heapPart += UnsafeBufferPointer(start: view.pointer, count: view.count)
}

extension Directory {
    /// A slot for a row that has none; there is room.
    mutating func insert(_ hash: UInt64, _ row: RowNumber) {
        var slot = home(hash)
        while slots[slot] != 0 { slot = (slot &+ 1) & mask }
        slots[slot] = Self.entry(hash, row)
    }
}
