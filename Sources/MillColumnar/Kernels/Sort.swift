import MillBase

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A column of the rows to sort, with its direction.
package struct ColumnOrder: Hashable, Sendable {
    package var column: Int
    package var descending: Bool
    package var nullsFirst: Bool

    /// PostgreSQL's default: nulls are above every value, so last when ascending and first when descending.
    package init(_ column: Int, descending: Bool = false, nullsFirst: Bool? = nil) {
        self.column = column
        self.descending = descending
        self.nullsFirst = nullsFirst ?? descending
    }
}

/// A row of one of several batches.
package struct RowReference: Hashable, Sendable, BitwiseCopyable {
    package var batch: UInt32
    package var row: UInt32

    package init(batch: UInt32, row: UInt32) {
        self.batch = batch
        self.row = row
    }
}

/// Stable sorting of rows by several columns.
///
/// Steps: encode every row's sort columns (`KeyEncoder`); drop the prefix that all keys share, mostly markers and sign
/// bytes; take the next 8 bytes of each key as a number; sort (number, row) pairs, looking at the rest of the keys only where
/// numbers tie and at the row's position where keys tie. Needs about 40 bytes a row beside the keys.
package enum RowSort {
    /// The rows of `batches` in the order of `order`; rows that compare equal keep their order of arrival.
    package static func sort(_ batches: [DeltaBatch], by order: [ColumnOrder]) -> [RowReference] {
        var references: [RowReference] = []
        references.reserveCapacity(batches.reduce(0) { $0 + $1.count })
        for (index, batch) in batches.enumerated() {
            for row in 0..<batch.count { references.append(RowReference(batch: UInt32(index), row: UInt32(row))) }
        }
        guard let first = batches.first, !order.isEmpty, references.count > 1 else { return references }
        let encoder = KeyEncoder(
            order: order.map { KeyOrder(first.columns[$0.column].type, descending: $0.descending, nullsFirst: $0.nullsFirst) })
        var keys = EncodedKeys(capacity: references.count)
        for batch in batches { encoder.append(order.map { batch.columns[$0.column] }, count: batch.count, to: &keys) }
        return sort(keys).map { references[$0] }
    }

    /// The sorted batches themselves, weights kept.
    package static func sorted(_ batches: [DeltaBatch], by order: [ColumnOrder]) -> [DeltaBatch] {
        gather(batches, sort(batches, by: order))
    }

    /// The referenced rows, in that order, with their weights.
    package static func gather(_ batches: [DeltaBatch], _ rows: [RowReference]) -> [DeltaBatch] {
        guard let first = batches.first, !rows.isEmpty else { return [] }
        let starts = stride(from: 0, to: rows.count, by: Limits.batchRowsMax)
        let chunks = starts.map { rows[$0..<min($0 + Limits.batchRowsMax, rows.count)] }
        var columns: [[Column]] = Array(repeating: [], count: chunks.count)
        for index in first.columns.indices {
            let gathering = ColumnGathering(batches.map { $0.columns[index] })
            for (chunk, rows) in chunks.enumerated() { columns[chunk].append(rows.withUnsafeBufferPointer { gathering.gather($0) }) }
        }
        let isPlain = batches.allSatisfy { $0.weights == nil }
        return zip(chunks, columns).map { rows, columns in
            guard !isPlain else { return DeltaBatch(columns: columns, count: rows.count) }
            let weights = rows.map { batches[Int($0.batch)].weight(Int($0.row)) }
            return DeltaBatch(columns: columns, count: rows.count, weights: weights.allSatisfy { $0 == 1 } ? nil : Weights(weights))
        }
    }

    /// The positions of `keys` in ascending order, equal keys by position.
    package static func sort(_ keys: borrowing EncodedKeys) -> [Int] {
        let count = keys.count
        guard count > 0 else { return [] }
        let skip = commonPrefix(keys)
        var entries = UnsafeMutableBufferPointer<Entry>.allocate(capacity: count)
        defer { entries.deallocate() }
        for index in 0..<count {
            let key = keys[index]
            let rest = UnsafeRawBufferPointer(rebasing: key[skip...])
            entries.initializeElement(at: index, to: Entry(head: KeyHead.load(rest), key: rest, index: index))
        }
        entries.sort { a, b in
            if a.head != b.head { return a.head < b.head }
            let order = KeyHead.compare(a.key, b.key)
            return order != 0 ? order < 0 : a.index < b.index
        }
        return entries.map(\.index)
    }

    private static func commonPrefix(_ keys: borrowing EncodedKeys) -> Int {
        let first = keys[0]
        var length = first.count
        for index in 1..<keys.count where length > 0 { length = KeyHead.commonPrefix(first, keys[index], max: length) }
        return length
    }

    private struct Entry {
        var head: UInt64
        var key: UnsafeRawBufferPointer
        var index: Int
    }
}

/// Comparing byte keys: eight bytes at once as a number, and whole.
package enum KeyHead {
    /// The first 8 bytes as a big-endian number, zeros where the key is shorter. Two keys whose heads differ are in the heads'
    /// order; equal heads say nothing.
    @inlinable @inline(__always) package static func load(_ key: UnsafeRawBufferPointer) -> UInt64 {
        if key.count >= 8 { return UInt64(bigEndian: key.baseAddress.unsafelyUnwrapped.loadUnaligned(as: UInt64.self)) }
        var head: UInt64 = 0
        for index in 0..<key.count { head |= UInt64(key[index]) &<< UInt64(56 &- 8 &* index) }
        return head
    }

    /// Negative, zero or positive: bytes first, then length.
    @inlinable @inline(__always) package static func compare(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int {
        let shared = min(a.count, b.count)
        if shared > 0 {
            let order = memcmp(a.baseAddress.unsafelyUnwrapped, b.baseAddress.unsafelyUnwrapped, shared)
            if order != 0 { return Int(order) }
        }
        return a.count &- b.count
    }

    /// How many first bytes both keys share, `max` at most.
    package static func commonPrefix(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer, max limit: Int) -> Int {
        let limit = min(limit, a.count, b.count)
        var length = 0
        while length < limit && a[length] == b[length] { length &+= 1 }
        return length
    }
}
