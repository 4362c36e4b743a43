import MillColumnar

/// Ordered rows with weights, per group: what MIN, MAX, top-N and OVER keep so that any row can be taken back.
///
/// An element is a key, made of the group's bytes, the order columns' bytes and, where rows are told apart by more than
/// their order, the remaining columns' bytes (all by `KeyEncoder`, so a group is a range of keys). Its payload is the sum of
/// its weights, followed by `valueBytes` for what the operator reads back, such as the value itself.
///
/// Invariant: no element has weight 0. A weight may be negative while a retraction has come before its insertion; such an
/// element is not in the multiset yet, so `min` and `max` pass over it. A retraction costs one search at any skew.
///
/// Owned by one thread, as the table it stands on; pointers hold until the next `add`.
package final class OrderedMultiset {
    /// An element in the multiset: its whole key, its weight (positive) and its value bytes.
    package struct Element {
        package let key: UnsafeRawBufferPointer
        package let weight: Int64
        package let value: UnsafeMutableRawPointer
    }

    /// What `add` did.
    package struct Change {
        package let oldWeight: Int64
        package let newWeight: Int64
        /// Where to write the value of an element that was not there before; nil when the element is gone.
        package let value: UnsafeMutableRawPointer?
    }

    package let table: OrderedTable

    /// - Parameter valueBytes: room beside the weight, zeros at first, aligned to 8.
    package init(valueBytes: Int = 0, pageBytes: Int = 16 << 10) {
        table = OrderedTable(payloadBytes: MemoryLayout<Int64>.size + valueBytes, pageBytes: pageBytes)
    }

    /// Distinct elements over all groups, those of negative weight included.
    package var count: Int { table.count }

    package var byteCount: Int { table.byteCount }

    /// Adds `weight`, which may be negative, to an element; at a sum of zero the element goes.
    @discardableResult
    package func add(_ key: UnsafeRawBufferPointer, weight: Int64) -> Change {
        guard weight != 0 else {
            let payload = table.find(key)
            let current = payload?.load(as: Int64.self) ?? 0
            return Change(oldWeight: current, newWeight: current, value: payload.map { $0 + 8 })
        }
        let payload = table.findOrInsert(key).payload
        let old = payload.load(as: Int64.self)
        let new = old &+ weight
        if new == 0 {
            _ = table.remove(key)
            return Change(oldWeight: old, newWeight: 0, value: nil)
        }
        payload.storeBytes(of: new, as: Int64.self)
        return Change(oldWeight: old, newWeight: new, value: payload + 8)
    }

    /// The weight of an element, 0 if it is not there.
    package func weight(_ key: UnsafeRawBufferPointer) -> Int64 { table.find(key)?.load(as: Int64.self) ?? 0 }

    /// The least element of a group.
    package func min(prefix: UnsafeRawBufferPointer) -> Element? { end(prefix, descending: false) }

    /// The greatest element of a group.
    package func max(prefix: UnsafeRawBufferPointer) -> Element? { end(prefix, descending: true) }

    /// Calls `body` for the elements of a group in order until it returns false; top-N stops when enough weight has passed.
    package func scan(prefix: UnsafeRawBufferPointer, descending: Bool = false, _ body: (Element) -> Bool) {
        table.scan(prefix: prefix, descending: descending) { key, payload in
            let weight = payload.load(as: Int64.self)
            return weight <= 0 || body(Element(key: key, weight: weight, value: payload + 8))
        }
    }

    /// The same over keys from `from` (nil: the first) up to but not including `to` (nil: the end).
    package func scan(
        from: UnsafeRawBufferPointer?, to: UnsafeRawBufferPointer?, descending: Bool = false, _ body: (Element) -> Bool
    ) {
        table.scan(from: from, to: to, descending: descending) { key, payload in
            let weight = payload.load(as: Int64.self)
            return weight <= 0 || body(Element(key: key, weight: weight, value: payload + 8))
        }
    }

    /// Drops a group, such as a closed window; returns how many elements it had.
    @discardableResult
    package func removeAll(prefix: UnsafeRawBufferPointer) -> Int { table.removeAll(prefix: prefix) }

    private func end(_ prefix: UnsafeRawBufferPointer, descending: Bool) -> Element? {
        var result: Element?
        scan(prefix: prefix, descending: descending) { element in
            result = element
            return false
        }
        return result
    }
}
