package import MillColumnar

/// The ordered access path of a state table: a B+tree from byte keys to payloads of a fixed size, in memory.
///
/// MIN/MAX with retraction, top-N, OVER and range look-ups keep their rows here, under keys made by `KeyEncoder`, so that
/// `memcmp` order is SQL order and everything of one group is one range of keys.
///
/// Invariants (checked by `checkInvariants`):
/// - all leaves are on one level; a page's keys ascend strictly and lie between the separators above it;
/// - no page but a root leaf is empty; an inner root has at least two children;
/// - leaves are linked in key order, by page number; page numbers stay while a page's memory may be replaced, so a checkpoint
///   can seal a page and the next change go to a copy;
/// - a page's heads and shared prefix agree with its keys; its garbage is what its removed records took.
///
/// Algorithm: a search goes down by `OrderedPage.lowerBound`. A page without room is compacted if removed records hold enough,
/// else split in the middle by bytes (at the right end when keys arrive in ascending order, which leaves full pages behind);
/// the separator is the shortest key that parts the halves. A page that falls under a quarter is merged with a neighbour
/// of the same parent when both fit three quarters; an empty page is unlinked. Keys over an eighth of a page lie
/// outside, so any page takes at least four entries.
///
/// One writer, which is also the only reader: pointers given out hold until the next mutation, and a scan's body must not
/// change the table. Nothing here is durable by itself.
package final class OrderedTable {
    /// Bytes of a page, a power of two from 1 KiB (tests) to 32 KiB.
    package let pageBytes: Int
    /// Bytes of a payload, rounded up to 8; payloads are aligned to 8 and start as zeros.
    package let payloadBytes: Int
    /// Keys in the table.
    package internal(set) var count = 0

    var root: UInt32 = 0
    var pages: UnsafeMutablePointer<UnsafeMutableRawPointer?>
    var pagesCapacity = 64
    var pagesUsed = 0
    var freePages: [UInt32] = []
    private var arena: OrderedArena
    /// Bytes of keys held outside pages.
    var overflowBytes = 0
    /// A page to build a new layout in.
    let scratch: OrderedPage
    /// The way down to the last position sought with `descend`.
    var path = Path()
    let watch: UnsafeMutablePointer<PageWatch>
    /// Where in the payload strings lie whose bytes belong to the owner, long ones in a heap of its own.
    let payloadStrings: [Int]
    /// Keeps the bytes of those strings, as long as a seal keeps the table.
    private let stringsOwner: AnyObject?
    /// Long strings in payloads that came back from a checkpoint.
    package internal(set) var restoredStrings: StringHeap?

    /// Inner pages' payload: a page number.
    static let childBytes = 8
    static let depthMax = 24

    /// - Parameters:
    ///   - payloadStrings: offsets of `StringView`s in the payload whose long strings the owner keeps.
    ///   - stringsOwner: what keeps them.
    package init(payloadBytes: Int, pageBytes: Int = 16 << 10, payloadStrings: [Int] = [], stringsOwner: AnyObject? = nil) {
        precondition(pageBytes >= 1024 && pageBytes <= 32 << 10 && pageBytes & (pageBytes - 1) == 0, "a page is 1 KiB to 32 KiB")
        self.pageBytes = pageBytes
        self.payloadStrings = payloadStrings
        self.stringsOwner = stringsOwner
        watch = .allocate(capacity: 1)
        watch.initialize(to: PageWatch())
        self.payloadBytes = (payloadBytes + 7) & ~7
        precondition(payloadBytes >= 0 && self.payloadBytes <= pageBytes / 16, "a payload takes a sixteenth of a page at most")
        pages = .allocate(capacity: pagesCapacity)
        arena = OrderedArena(pageBytes: pageBytes)
        scratch = OrderedPage(.allocate(byteCount: pageBytes, alignment: 64))
        root = makePage(level: 0)
    }

    deinit {
        for number in 0..<pagesUsed {
            if let base = pages[number] { freeLongKeys(OrderedPage(base)) }
        }
        watch.deinitialize(count: 1)
        watch.deallocate()
        pages.deallocate()
        scratch.base.deallocate()
        path.steps.deallocate()
    }

    /// Pages in use.
    package var pageCount: Int { pagesUsed - freePages.count }

    /// Memory held: pages in use and kept for use, keys outside pages, the page table.
    package var byteCount: Int { arena.byteCount + overflowBytes + pagesCapacity * 8 }

    // MARK: One key

    /// The payload of a key, or nil. Valid until the next mutation.
    package func find(_ key: UnsafeRawBufferPointer) -> UnsafeRawPointer? {
        var page = page(root)
        while !page.isLeaf { page = self.page(page.child(page.childIndex(key))) }
        let found = page.lowerBound(key)
        return found.isEqual ? UnsafeRawPointer(page.payload(found.index)) : nil
    }

    /// The payload of a key for changing, which is inserted with a payload of zeros if it is not there. Valid until the next mutation.
    package func findOrInsert(_ key: UnsafeRawBufferPointer) -> (payload: UnsafeMutableRawPointer, inserted: Bool) {
        precondition(key.count <= Int(UInt32.max), "a key is shorter than 4 GiB")
        let leaf = descend(key)
        prepareToWrite(path.steps[path.count - 1].page)
        let found = leaf.lowerBound(key)
        if found.isEqual { return (leaf.payload(found.index), false) }
        count += 1
        return (insert(key, at: found.index, depth: path.count - 1), true)
    }

    /// Removes a key; false if it was not there.
    package func remove(_ key: UnsafeRawBufferPointer) -> Bool {
        let leaf = descend(key)
        let found = leaf.lowerBound(key)
        guard found.isEqual else { return false }
        removeEntries(found.index..<found.index + 1)
        return true
    }

    /// Removes every key that starts with `prefix`; returns how many there were.
    @discardableResult
    package func removeAll(prefix: UnsafeRawBufferPointer) -> Int {
        var end = KeyBuffer()
        return Self.successor(prefix, &end) ? removeAll(from: prefix, to: end.bytes) : removeAll(from: prefix, to: nil)
    }

    /// Removes the keys from `from` (nil: the first) up to but not including `to` (nil: the end); returns how many there were.
    @discardableResult
    package func removeAll(from: UnsafeRawBufferPointer?, to: UnsafeRawBufferPointer?) -> Int {
        let before = count
        var start = KeyBuffer()
        if let from { start.append(from) }
        while true {
            var leaf = descend(start.bytes)
            var low = leaf.lowerBound(start.bytes).index
            if low == leaf.count {
                // The range begins with the next leaf: take its way down.
                guard leaf.next != OrderedPage.noPage else { break }
                let key = page(leaf.next).key(0)
                start.removeAll()
                start.append(key)
                leaf = descend(start.bytes)
                low = leaf.lowerBound(start.bytes).index
            }
            let high = to.map { leaf.lowerBound($0).index } ?? leaf.count
            guard high > low else { break }
            let isLast = high < leaf.count
            removeEntries(low..<high)
            if isLast { break }
        }
        return before - count
    }

    /// Removes everything and gives the memory back.
    package func removeAll() {
        watch.pointee.settleAll()
        for number in 0..<pagesUsed {
            if let base = pages[number] { freeLongKeys(OrderedPage(base)) }
        }
        arena = OrderedArena(pageBytes: pageBytes)
        pagesUsed = 0
        freePages = []
        count = 0
        root = makePage(level: 0)
    }

    // MARK: Pages

    @inline(__always) func page(_ number: UInt32) -> OrderedPage { OrderedPage(pages[Int(number)].unsafelyUnwrapped) }

    /// Must be called before a page changes, at least once between two seals. Its memory stays where it is.
    @inline(__always) func prepareToWrite(_ number: UInt32) {
        guard watch.pointee.isOn, !watch.pointee.isReady(Int(number)) else { return }
        watch.pointee.settle(Int(number))
        watch.pointee.list(Int(number))
    }

    /// Called before memory changes that payloads point at: who needs the present bytes has them afterwards.
    package func settle() { watch.pointee.settleAll() }

    func makePage(level: Int) -> UInt32 {
        let number: UInt32
        if let free = freePages.popLast() {
            number = free
        } else {
            if pagesUsed == pagesCapacity { growPageTable() }
            number = UInt32(pagesUsed)
            pagesUsed += 1
            if watch.pointee.isOn { watch.pointee.reserve(pagesUsed) }
        }
        prepareToWrite(number)
        let base = givePage(number)
        OrderedPage(base).format(level: level, payloadBytes: level == 0 ? payloadBytes : Self.childBytes, pageBytes: pageBytes)
        return number
    }

    /// Memory of undefined content for a page that has none.
    func givePage(_ number: UInt32) -> UnsafeMutableRawPointer {
        let base = arena.take()
        pages[Int(number)] = base
        return base
    }

    func growPageTable(toHold count: Int) {
        while pagesCapacity < count { growPageTable() }
    }

    func freePage(_ number: UInt32) {
        prepareToWrite(number)
        if let base = pages[Int(number)] { arena.giveBack(base) }
        pages[Int(number)] = nil
        freePages.append(number)
    }

    private func growPageTable() {
        let larger = UnsafeMutablePointer<UnsafeMutableRawPointer?>.allocate(capacity: pagesCapacity * 2)
        larger.update(from: pages, count: pagesUsed)
        pages.deallocate()
        pages = larger
        pagesCapacity *= 2
    }

    func freeLongKeys(_ page: OrderedPage) {
        for index in 0..<page.count { freeLongKey(page, index) }
    }

    func freeLongKey(_ page: OrderedPage, _ index: Int) {
        let key = page.key(index)
        guard key.count > page.inlineKeyBytesMax else { return }
        overflowBytes -= key.count
        UnsafeMutableRawPointer(mutating: key.baseAddress)?.deallocate()
    }

    /// A copy of a key that is too long for a page, or nil.
    func overflowCopy(_ key: UnsafeRawBufferPointer) -> UnsafeMutableRawPointer? {
        guard key.count > pageBytes / 8 else { return nil }
        let copy = UnsafeMutableRawPointer.allocate(byteCount: key.count, alignment: 8)
        copy.copyMemory(from: key.baseAddress.unsafelyUnwrapped, byteCount: key.count)
        overflowBytes += key.count
        return copy
    }

    // MARK: Ways down

    /// Page numbers from the root to a leaf, and in each inner page the entry taken.
    struct Path {
        var count = 0
        /// `depthMax` steps; freed with the table.
        let steps: UnsafeMutablePointer<(page: UInt32, index: Int)> = .allocate(capacity: OrderedTable.depthMax)
    }

    /// The leaf where `key` is or belongs; leaves the way in `path`.
    func descend(_ key: UnsafeRawBufferPointer) -> OrderedPage {
        var number = root
        var page = page(root)
        var depth = 0
        let steps = path.steps
        while !page.isLeaf {
            let index = page.childIndex(key)
            steps[depth] = (number, index)
            depth &+= 1
            number = page.child(index)
            page = self.page(number)
        }
        steps[depth] = (number, 0)
        path.count = depth &+ 1
        return page
    }

    /// Writes the least key above all keys that start with `prefix`; false when there is none.
    static func successor(_ prefix: UnsafeRawBufferPointer, _ buffer: inout KeyBuffer) -> Bool {
        var length = prefix.count
        while length > 0 && prefix[length - 1] == 0xFF { length -= 1 }
        guard length > 0 else { return false }
        buffer.append(UnsafeRawBufferPointer(rebasing: prefix[..<(length - 1)]))
        buffer.append(prefix[length - 1] + 1)
        return true
    }
}
