import MillColumnar

/// A checker of the whole structure, for tests and after recovery. O(n).
extension OrderedTable {
    /// Stops the process where an invariant of the table or of a page does not hold.
    package func checkInvariants() {
        var check = Check(table: self)
        check.visit(root, level: page(root).level, low: nil, high: nil)
        precondition(page(root).isLeaf || page(root).count >= 2, "an inner root has at least two children")
        precondition(check.keys == count, "the count of keys is what the leaves hold")
        precondition(check.pages == pageCount, "every page in use is reached once")
        precondition(check.overflowBytes == overflowBytes, "the bytes of long keys are accounted for")
        for level in check.lastPage.indices {
            precondition(page(check.lastPage[level]).next == OrderedPage.noPage, "a level's links end with its last page")
        }
    }

    private struct Check {
        let table: OrderedTable
        var keys = 0
        var pages = 0
        var overflowBytes = 0
        /// Per level, the page visited last.
        var lastPage: [UInt32] = []

        init(table: OrderedTable) {
            self.table = table
            lastPage = Array(repeating: OrderedPage.noPage, count: table.page(table.root).level + 1)
        }

        /// Checks a page and all below; its keys are at or above `low` and below `high`.
        mutating func visit(_ number: UInt32, level: Int, low: UnsafeRawBufferPointer?, high: UnsafeRawBufferPointer?) {
            let page = table.page(number)
            pages += 1
            precondition(page.level == level, "a child is one level below its parent")
            precondition(number == table.root || page.count > 0, "only a root may be empty")
            precondition(page.previous == lastPage[level], "a page is linked to the one before it")
            if lastPage[level] != OrderedPage.noPage {
                precondition(table.page(lastPage[level]).next == number, "a page is linked to the one after it")
            }
            lastPage[level] = number
            checkEntries(page, low, high)
            guard !page.isLeaf else {
                keys += page.count
                return
            }
            for index in 0..<page.count {
                visit(
                    page.child(index), level: level - 1, low: index == 0 ? low : page.key(index),
                    high: index + 1 < page.count ? page.key(index + 1) : high)
            }
        }

        private mutating func checkEntries(_ page: OrderedPage, _ low: UnsafeRawBufferPointer?, _ high: UnsafeRawBufferPointer?) {
            var bytes = 0
            for index in 0..<page.count {
                let key = page.key(index)
                bytes += page.recordBytes(keyCount: key.count)
                if key.count > page.inlineKeyBytesMax { overflowBytes += key.count }
                precondition(page.offset(index) >= page.heapStart && page.offset(index) % 8 == 0, "a record lies in the heap, aligned")
                guard index >= page.firstCompared else {
                    precondition(key.count == 0, "an inner page's first key is empty")
                    continue
                }
                if let low { precondition(KeyHead.compare(low, key) <= 0, "a key is at or above its separator") }
                if let high { precondition(KeyHead.compare(key, high) < 0, "a key is below the next separator") }
                if index > page.firstCompared { precondition(KeyHead.compare(page.key(index - 1), key) < 0, "keys ascend") }
                let skip = page.prefixCount
                precondition(KeyHead.commonPrefix(key, page.prefix, max: skip) == skip, "a key starts with its page's prefix")
                precondition(page.head(index) == KeyHead.load(UnsafeRawBufferPointer(rebasing: key[skip...])), "a head is its key's")
            }
            precondition(bytes + page.garbage == page.pageBytes - page.heapStart, "a heap is records and garbage")
            precondition(page.hasTrueHints, "a hint is the head of its entry")
            precondition(page.contiguousRoom >= 0, "slots and heap do not meet")
        }
    }
}
