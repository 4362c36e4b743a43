/// Row numbers of a batch, ascending, of rows that pass a filter or go one way. Owned by one thread.
package struct Selection: ~Copyable {
    package let rows: UnsafeMutablePointer<UInt32>
    package var count: Int

    package init(capacity: Int) {
        rows = .allocate(capacity: max(capacity, 1) + 8)
        count = 0
    }

    deinit { rows.deallocate() }

    /// Adds a row; there is room for it.
    @inlinable @inline(__always) package mutating func append(_ row: Int) {
        rows[count] = UInt32(truncatingIfNeeded: row)
        count &+= 1
    }

    /// The rows whose boolean value is present and true.
    package init(whereTrue column: Column) {
        precondition(column.type.physical == .bool8, "a filter is boolean")
        self.init(capacity: column.count)
        let flags = UnsafePointer(column.values(UInt8.self))
        var found = 0
        let total = column.count
        let rows = rows
        // A missing value's byte is zero, so the bytes alone decide. Branchless: a compare-and-branch costs 6 times more.
        for row in 0..<total {
            rows[found] = UInt32(truncatingIfNeeded: row)
            found &+= Int(flags[row] & 1)
        }
        count = found
    }
}
