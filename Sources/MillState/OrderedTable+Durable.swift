import MillColumnar

/// Checkpoints of an ordered table: whole pages out, and back in under the same numbers.
///
/// A page is stored without the room between slots and records. What a record has elsewhere, a long key or a long string of the payload,
/// goes to the block's heap part, and its place there takes the place of the address. Which pages are free is not stored: they are those
/// that the root does not lead to.
extension OrderedTable: DurableTable {
    package func track() {
        watch.pointee.reserve(pagesUsed)
        watch.pointee.track()
        // The root page was made before.
        for number in 0..<pagesUsed where !watch.pointee.isBased(UInt32(number)) { prepareToWrite(UInt32(number)) }
    }

    private var shape: TableShape {
        TableShape(kind: .ordered, rowBytes: payloadBytes, layout: pageBytes, used: pagesUsed, count: count, first: root)
    }

    package func seal(table: UInt32, rewriting: [UInt32]) -> SealedPages? {
        let changed = watch.pointee.takeChanged()
        let numbers = rewriting.isEmpty ? changed : Set(changed + rewriting.filter { Int($0) < pagesUsed }).sorted()
        guard !numbers.isEmpty || !watch.pointee.hasSeal else { return nil }
        let entries = numbers.compactMap { number -> SealedOrderedPage? in
            pages[Int(number)].map { SealedOrderedPage(number: number, page: OrderedPage($0), payloadStrings: payloadStrings, table: self) }
        }
        // A page without memory is free.
        let freed = numbers.filter { pages[Int($0)] == nil }
        let seal = SealedPages(table: table, shape: shape, entries, freed: freed)
        watch.pointee.begin(seal)
        for number in freed { watch.pointee.forget(Int(number)) }
        return seal
    }

    package func forgetSeals() { watch.pointee.forgetBases(pagesUsed) }

    // MARK: Restoring

    package func restore(_ shape: TableShape) throws(StateCorruption) {
        guard shape.kind == .ordered, shape.rowBytes == UInt32(payloadBytes), shape.layout == UInt32(pageBytes) else {
            throw StateCorruption("keys with \(shape.rowBytes) bytes are stored where they have \(payloadBytes)")
        }
        guard shape.used < UInt64(OrderedPage.noPage), UInt64(shape.first) < shape.used, shape.count < 1 << 48 else {
            throw StateCorruption("page \(shape.first) of \(shape.used) pages as a root")
        }
        precondition(count == 0 && pagesUsed == 1, "state is given to a table that has none")
        freePage(root)
        freePages = []
        growPageTable(toHold: Int(shape.used))
        pagesUsed = Int(shape.used)
        for number in 0..<pagesUsed { pages[number] = nil }
        root = shape.first
        count = Int(shape.count)
        if !payloadStrings.isEmpty { restoredStrings = StringHeap() }
    }

    package func restore(block: StateBlock) throws(StateCorruption) {
        guard Int(block.page) < pagesUsed else { throw StateCorruption("a block of page \(block.page) in a table of \(pagesUsed) pages") }
        let heapPart = try block.heap()
        let body = block.body
        guard body.count >= OrderedPage.headerBytes else { throw StateCorruption("an ordered page of \(body.count) bytes") }
        let memory: UnsafeMutableRawPointer
        if let present = pages[Int(block.page)] {
            freeLongKeys(OrderedPage(present))
            memory = present
        } else {
            memory = givePage(block.page)
        }
        let page = OrderedPage(memory)
        do throws(StateCorruption) {
            try copy(body, heapPart, to: page)
        } catch {
            // Nothing of it is freed or read afterwards.
            page.format(level: 0, payloadBytes: payloadBytes, pageBytes: pageBytes)
            throw error
        }
    }

    private func copy(_ body: UnsafeRawBufferPointer, _ heapPart: UnsafeRawBufferPointer, to page: OrderedPage) throws(StateCorruption) {
        let source = body.baseAddress.unsafelyUnwrapped
        page.base.copyMemory(from: source, byteCount: OrderedPage.headerBytes)
        let lowBytes = OrderedPage.headerBytes + page.count * OrderedPage.slotBytes
        let highBytes = pageBytes - page.heapStart
        guard page.pageBytes == pageBytes, page.payloadBytes == (page.isLeaf ? payloadBytes : Self.childBytes), highBytes >= 0,
            page.inlineKeyBytesMax == pageBytes / 8, page.level < Self.depthMax, lowBytes + highBytes <= pageBytes,
            lowBytes + highBytes + (heapPart.count + 7) & ~7 <= body.count, page.prefixCount <= OrderedPage.prefixBytesMax,
            page.garbage <= highBytes
        else { throw StateCorruption("an ordered page of \(page.count) entries that is not whole") }
        page.base.copyMemory(from: source, byteCount: lowBytes)
        (page.base + page.heapStart).copyMemory(from: source + lowBytes, byteCount: highBytes)
        for index in 0..<page.count { try restoreEntry(page, index, from: heapPart) }
    }

    private func restoreEntry(_ page: OrderedPage, _ index: Int, from heapPart: UnsafeRawBufferPointer) throws(StateCorruption) {
        let (offset, keyCount) = (page.offset(index), page.keyCount(index))
        guard offset >= page.heapStart, offset & 7 == 0, offset + page.recordBytes(keyCount: keyCount) <= pageBytes,
            keyCount >= page.prefixCount || index < page.firstCompared
        else {
            throw StateCorruption("an entry at \(offset) of an ordered page")
        }
        func part(at start: UInt64, count: Int) throws(StateCorruption) -> UnsafeRawBufferPointer {
            guard start <= UInt64(heapPart.count), UInt64(heapPart.count) - start >= UInt64(count) else {
                throw StateCorruption("\(count) bytes at \(start) of \(heapPart.count)")
            }
            return UnsafeRawBufferPointer(rebasing: heapPart[Int(start)..<Int(start) + count])
        }
        let payload = page.payload(index)
        if page.isLeaf, let restoredStrings {
            for place in payloadStrings {
                let view = payload.load(fromByteOffset: place, as: StringView.self)
                guard !view.isInline else { continue }
                let bytes = try part(at: view.high, count: view.count)
                payload.storeBytes(
                    of: restoredStrings.view(copying: bytes.assumingMemoryBound(to: UInt8.self)), toByteOffset: place, as: StringView.self)
            }
        }
        guard keyCount > page.inlineKeyBytesMax else { return }
        let place = payload + page.payloadBytes
        if let copy = overflowCopy(try part(at: place.load(as: UInt64.self), count: keyCount)) {
            place.storeBytes(of: UInt(bitPattern: copy), as: UInt.self)
        }
    }

    package func finishRestore() throws(StateCorruption) {
        var reached = [Bool](repeating: false, count: pagesUsed)
        var keys = 0
        var level = [root]
        var height: Int?
        while !level.isEmpty {
            var below: [UInt32] = []
            for (index, number) in level.enumerated() {
                guard Int(number) < pagesUsed, pages[Int(number)] != nil, !reached[Int(number)] else {
                    throw StateCorruption("an ordered table leads to page \(number), which is missing or reached twice")
                }
                reached[Int(number)] = true
                let page = page(number)
                // The pages of a level are linked in the order of their keys.
                let previous = index > 0 ? level[index - 1] : OrderedPage.noPage
                let next = index + 1 < level.count ? level[index + 1] : OrderedPage.noPage
                guard page.previous == previous, page.next == next, page.level == height ?? page.level, page.isLeaf || page.count > 0 else {
                    throw StateCorruption("page \(number) of an ordered table does not fit its neighbours")
                }
                height = page.level
                if page.isLeaf { keys += page.count } else { below += (0..<page.count).map { page.child($0) } }
            }
            height = height.map { $0 - 1 }
            level = below
        }
        guard keys == count else { throw StateCorruption("\(keys) keys where the record names \(count)") }
        for number in 0..<pagesUsed where !reached[number] {
            if let base = pages[number] { freeLongKeys(OrderedPage(base)) }
            freePage(UInt32(number))
        }
        watch.pointee.noteRestored(pagesUsed)
    }
}

/// A page of an ordered table in a seal.
private struct SealedOrderedPage: SealedPage {
    let number: UInt32
    let page: OrderedPage
    let payloadStrings: [Int]
    /// Keeps the memory of the page.
    let table: OrderedTable

    func write(to bytes: inout [UInt8], table: UInt32) {
        let start = StateBlock.begin(.orderedPage, table: table, page: number, rows: 0, in: &bytes)
        let lowBytes = OrderedPage.headerBytes + page.count * OrderedPage.slotBytes
        let high = bytes.count + lowBytes
        bytes += UnsafeRawBufferPointer(start: page.base, count: lowBytes)
        bytes += UnsafeRawBufferPointer(start: page.base + page.heapStart, count: page.pageBytes - page.heapStart)
        var heapPart: [UInt8] = []
        let strings = page.isLeaf ? payloadStrings : []
        bytes.withUnsafeMutableBytes { all in
            for index in 0..<page.count {
                let record = all.baseAddress.unsafelyUnwrapped + high + page.offset(index) - page.heapStart
                for place in strings { moveString(record + place, to: &heapPart) }
                let key = page.key(index)
                guard key.count > page.inlineKeyBytesMax else { continue }
                (record + page.payloadBytes).storeBytes(of: UInt64(heapPart.count), as: UInt64.self)
                heapPart += key
            }
        }
        StateBlock.finish(start, heap: heapPart, in: &bytes)
    }
}
