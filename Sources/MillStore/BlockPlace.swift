import MillBase
import MillState

/// Where a block lies, and what its header says.
struct BlockPlace: Sendable, Hashable {
    var file: UInt64
    var offset: Int
    /// Of the whole block.
    var bytes: Int
    var table: TableID
    var page: UInt32
    /// It holds all of its page.
    var isWhole: Bool

    var end: Int { offset + bytes }

    init(_ block: StateBlock, file: UInt64, offset: Int, bytes: Int) {
        self.file = file
        self.offset = offset
        self.bytes = bytes
        table = TableID(block.table)
        page = block.page
        isWhole = block.kind != .rows
    }
}
