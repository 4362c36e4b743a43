/// Bounds that hold in every part. Each has its own error where it is met.
package enum Limits {
    /// Rows of a batch at most: a batch's fixed-width column then stays within 64 KiB to 96 KiB.
    package static let batchRowsMax = 4096
    /// Bytes of string heap after which a batch ends.
    package static let batchHeapBytesMax = 1 << 20
    /// Columns of a relation at most, as in PostgreSQL.
    package static let columnsMax = 1600
    /// Bytes of an identifier at most; PostgreSQL truncates at 63, we refuse instead of renaming silently.
    package static let identifierBytesMax = 255
    /// Bytes of one statement.
    package static let statementBytesMax = 16 << 20
    /// Nesting of expressions and queries: deeper text is refused (54001) before it can exhaust a thread's stack.
    package static let nestingDepthMax = 256
    /// Bytes of one value.
    package static let valueBytesMax = 1 << 30
}
