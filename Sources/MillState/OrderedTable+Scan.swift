import MillColumnar

/// Reading in key order.
extension OrderedTable {
    /// A key and its payload, valid until the next mutation.
    package typealias Entry = (key: UnsafeRawBufferPointer, payload: UnsafeRawPointer)

    /// Calls `body` for the keys from `from` (nil: the first) up to but not including `to` (nil: the end), in ascending or
    /// descending order, until it returns false. The body must not change the table.
    package func scan(
        from: UnsafeRawBufferPointer? = nil, to: UnsafeRawBufferPointer? = nil, descending: Bool = false,
        _ body: (_ key: UnsafeRawBufferPointer, _ payload: UnsafeRawPointer) -> Bool
    ) {
        if descending { scanDown(from, to, body) } else { scanUp(from, to, body) }
    }

    /// Calls `body` for the keys that start with `prefix`, until it returns false.
    package func scan(
        prefix: UnsafeRawBufferPointer, descending: Bool = false,
        _ body: (_ key: UnsafeRawBufferPointer, _ payload: UnsafeRawPointer) -> Bool
    ) {
        if !descending {
            // One comparison a key instead of a second bound: most scans end after a few.
            scanUp(prefix, nil) { key, payload in
                KeyHead.commonPrefix(key, prefix, max: prefix.count) == prefix.count && body(key, payload)
            }
            return
        }
        var end = KeyBuffer()
        if Self.successor(prefix, &end) { scanDown(prefix, end.bytes, body) } else { scanDown(prefix, nil, body) }
    }

    /// The least key that starts with `prefix`.
    package func first(prefix: UnsafeRawBufferPointer) -> Entry? {
        var result: Entry?
        scan(prefix: prefix) { key, payload in
            result = (key, payload)
            return false
        }
        return result
    }

    /// The greatest key that starts with `prefix`.
    package func last(prefix: UnsafeRawBufferPointer) -> Entry? {
        var result: Entry?
        scan(prefix: prefix, descending: true) { key, payload in
            result = (key, payload)
            return false
        }
        return result
    }

    private func scanUp(
        _ from: UnsafeRawBufferPointer?, _ to: UnsafeRawBufferPointer?, _ body: (UnsafeRawBufferPointer, UnsafeRawPointer) -> Bool
    ) {
        let from = from ?? UnsafeRawBufferPointer(start: nil, count: 0)
        var page = leaf(from)
        var index = page.lowerBound(from).index
        while true {
            let end = to.map { page.lowerBound($0).index } ?? page.count
            while index < end {
                guard body(page.key(index), page.payload(index)) else { return }
                index += 1
            }
            guard end == page.count, page.next != OrderedPage.noPage else { return }
            page = self.page(page.next)
            index = 0
        }
    }

    private func scanDown(
        _ from: UnsafeRawBufferPointer?, _ to: UnsafeRawBufferPointer?, _ body: (UnsafeRawBufferPointer, UnsafeRawPointer) -> Bool
    ) {
        var page = to.map { leaf($0) } ?? lastLeaf()
        var index = (to.map { page.lowerBound($0).index } ?? page.count) - 1
        while true {
            let start = from.map { page.lowerBound($0).index } ?? 0
            while index >= start {
                guard body(page.key(index), page.payload(index)) else { return }
                index -= 1
            }
            guard start == 0, page.previous != OrderedPage.noPage else { return }
            page = self.page(page.previous)
            index = page.count - 1
        }
    }

    private func leaf(_ key: UnsafeRawBufferPointer) -> OrderedPage {
        var page = page(root)
        while !page.isLeaf { page = self.page(page.child(page.childIndex(key))) }
        return page
    }

    private func lastLeaf() -> OrderedPage {
        var page = page(root)
        while !page.isLeaf { page = self.page(page.child(page.count - 1)) }
        return page
    }
}
