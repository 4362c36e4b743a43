import MillColumnar

/// Splits and merges: everything that changes the shape of the tree. The way down to the page concerned is in `path`.
extension OrderedTable {
    /// Inserts into the page at `depth` of the path, splitting upwards as needed; returns the new entry's payload.
    func insert(_ key: UnsafeRawBufferPointer, at index: Int, depth: Int) -> UnsafeMutableRawPointer {
        let number = path.steps[depth].page
        prepareToWrite(number)
        let page = page(number)
        let needed = page.recordBytes(keyCount: key.count) + OrderedPage.slotBytes
        if page.contiguousRoom < needed {
            guard page.contiguousRoom + page.garbage >= needed else { return split(key, at: index, depth: depth) }
            rebuild(page, 0..<page.count)
        }
        return page.insert(at: index, key, overflow: overflowCopy(key))
    }

    private func split(_ key: UnsafeRawBufferPointer, at index: Int, depth: Int) -> UnsafeMutableRawPointer {
        let leftNumber = path.steps[depth].page
        let left = page(leftNumber)
        let rightNumber = makePage(level: left.level)
        let right = page(rightNumber)
        link(right, rightNumber, after: left, leftNumber)
        let isAscending = index == left.count && right.next == OrderedPage.noPage
        let middle = isAscending ? left.count : middleByBytes(left)
        let goesRight = index > middle || isAscending
        var separator = KeyBuffer()
        let leftLast = !goesRight && index == middle ? key : left.key(middle - 1)
        let rightFirst = isAscending ? key : left.key(middle)
        // A leaf's separator may be cut short; an inner page's is the key its first child was reached by.
        let length = left.isLeaf ? KeyHead.commonPrefix(leftLast, rightFirst, max: .max) + 1 : rightFirst.count
        separator.append(UnsafeRawBufferPointer(rebasing: rightFirst[..<length]))

        right.append(left, middle..<left.count)
        rebuild(left, 0..<middle)
        let side = goesRight ? right : left
        let payload = side.insert(at: goesRight ? index - middle : index, key, overflow: overflowCopy(key))
        if !right.isLeaf { forgetFirstKey(right) }
        insertChild(separator.bytes, rightNumber, beside: leftNumber, depth: depth)
        return payload
    }

    /// The key of an inner page's first entry is never compared: a long one would only hold memory twice.
    private func forgetFirstKey(_ page: OrderedPage) {
        freeLongKey(page, 0)
        page.forgetFirstKey()
    }

    /// Puts a new page into the parent of the page at `depth`, or grows a root above both.
    private func insertChild(_ separator: UnsafeRawBufferPointer, _ number: UInt32, beside left: UInt32, depth: Int) {
        if depth > 0 {
            insert(separator, at: path.steps[depth - 1].index + 1, depth: depth - 1).storeBytes(of: number, as: UInt32.self)
            return
        }
        let level = page(left).level + 1
        precondition(level < Self.depthMax, "a tree is as deep as its page table allows")
        root = makePage(level: level)
        let top = page(root)
        top.insert(at: 0, UnsafeRawBufferPointer(start: nil, count: 0), overflow: nil).storeBytes(of: left, as: UInt32.self)
        top.insert(at: 1, separator, overflow: overflowCopy(separator)).storeBytes(of: number, as: UInt32.self)
    }

    /// The first entry at or after half of the page's bytes, with entries on both sides.
    private func middleByBytes(_ page: OrderedPage) -> Int {
        let half = page.usedBytes / 2
        var bytes = 0
        var index = 0
        while index < page.count - 1 && bytes < half {
            bytes += page.recordBytes(keyCount: page.keyCount(index)) + OrderedPage.slotBytes
            index += 1
        }
        return max(index, 1)
    }

    /// Lays a page out anew with only the entries of `range`; what is dropped has been copied elsewhere or freed.
    private func rebuild(_ page: OrderedPage, _ range: Range<Int>) {
        scratch.format(level: page.level, payloadBytes: page.payloadBytes, pageBytes: pageBytes)
        scratch.next = page.next
        scratch.previous = page.previous
        scratch.append(page, range)
        page.base.copyMemory(from: scratch.base, byteCount: pageBytes)
    }

    private func link(_ right: OrderedPage, _ rightNumber: UInt32, after left: OrderedPage, _ leftNumber: UInt32) {
        right.previous = leftNumber
        right.next = left.next
        if left.next != OrderedPage.noPage {
            prepareToWrite(left.next)
            page(left.next).previous = rightNumber
        }
        left.next = rightNumber
    }

    private func unlink(_ page: OrderedPage) {
        if page.previous != OrderedPage.noPage {
            prepareToWrite(page.previous)
            self.page(page.previous).next = page.next
        }
        if page.next != OrderedPage.noPage {
            prepareToWrite(page.next)
            self.page(page.next).previous = page.previous
        }
    }

    /// Removes entries of the leaf at the end of the path and repairs the tree above.
    func removeEntries(_ range: Range<Int>) {
        prepareToWrite(path.steps[path.count - 1].page)
        let leaf = page(path.steps[path.count - 1].page)
        for index in range { freeLongKey(leaf, index) }
        leaf.remove(range)
        count -= range.count
        shrink(depth: path.count - 1)
    }

    /// Called when entries have left the page at `depth`: unlinks it when empty, merges it when nearly so.
    private func shrink(depth: Int) {
        let number = path.steps[depth].page
        let page = page(number)
        guard depth > 0 else {
            collapseRoot()
            return
        }
        let parent = self.page(path.steps[depth - 1].page)
        let index = path.steps[depth - 1].index
        if page.count == 0 {
            unlink(page)
            freePage(number)
            removeChild(path.steps[depth - 1].page, index)
            shrink(depth: depth - 1)
        } else if page.usedBytes < (pageBytes - OrderedPage.headerBytes) / 4 {
            let parentNumber = path.steps[depth - 1].page
            let isMerged = index + 1 < parent.count && merge(parentNumber, index) || index > 0 && merge(parentNumber, index - 1)
            if isMerged { shrink(depth: depth - 1) }
        }
    }

    private func removeChild(_ parentNumber: UInt32, _ index: Int) {
        prepareToWrite(parentNumber)
        let parent = page(parentNumber)
        freeLongKey(parent, index)
        parent.remove(index..<index + 1)
        if index == 0 && parent.count > 0 { forgetFirstKey(parent) }
    }

    /// Moves the entries of the child after `index` into the child at `index` if both fit three quarters of a page.
    private func merge(_ parentNumber: UInt32, _ index: Int) -> Bool {
        let parent = page(parentNumber)
        let leftNumber = parent.child(index)
        let left = page(leftNumber)
        let rightNumber = parent.child(index + 1)
        let right = page(rightNumber)
        let separator = parent.key(index + 1)
        // An inner page's first entry gets back the key by which it was reached.
        let extra = left.isLeaf ? 0 : left.recordBytes(keyCount: separator.count)
        guard left.usedBytes + right.usedBytes + extra <= (pageBytes - OrderedPage.headerBytes) / 4 * 3 else { return false }
        prepareToWrite(leftNumber)
        prepareToWrite(rightNumber)
        rebuild(left, 0..<left.count)
        if left.isLeaf {
            left.append(right, 0..<right.count)
        } else {
            left.append(right, 0..<right.count, firstKey: (separator, overflowCopy(separator)))
        }
        unlink(right)
        freePage(rightNumber)
        removeChild(parentNumber, index + 1)
        return true
    }

    private func collapseRoot() {
        while !page(root).isLeaf && page(root).count <= 1 {
            let old = root
            if page(old).count == 1 {
                root = page(old).child(0)
                prepareToWrite(old)
                freeLongKey(page(old), 0)
                freePage(old)
            } else {
                freePage(old)
                root = makePage(level: 0)
            }
        }
    }
}
