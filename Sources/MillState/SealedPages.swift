import CMemory
import Synchronization

/// The changes of one table as of one epoch, on their way to a checkpoint.
///
/// Sealing copies nothing: an entry's bytes are made when the checkpoint's writer comes to it, or by the table's worker just before
/// it changes the page again, whoever is first. So a worker waits for at most one page, and copies only what it changes while the
/// writer is at work.
///
/// Safe to share: an entry belongs to the thread that claimed it; its bytes are read after its state says that they are there.
package final class SealedPages: @unchecked Sendable {
    /// What the checkpoint's blocks are named by.
    package let table: UInt32
    package let shape: TableShape
    /// Pages that the table no longer has: what is stored of them need not stay.
    package let freed: [UInt32]
    private let entries: [any SealedPage]
    private let states: UnsafeMutablePointer<Atomic<UInt8>>
    private let taken: UnsafeMutablePointer<[UInt8]>

    private static let pending: UInt8 = 0
    private static let claimed: UInt8 = 1
    private static let ready: UInt8 = 2

    init(table: UInt32, shape: TableShape, _ entries: [any SealedPage], freed: [UInt32] = []) {
        self.table = table
        self.shape = shape
        self.freed = freed
        self.entries = entries
        states = .allocate(capacity: entries.count)
        taken = .allocate(capacity: entries.count)
        for index in entries.indices { (states + index).initialize(to: Atomic(Self.pending)) }
        taken.initialize(repeating: [], count: entries.count)
    }

    deinit {
        states.deinitialize(count: entries.count)
        states.deallocate()
        taken.deinitialize(count: entries.count)
        taken.deallocate()
    }

    package var count: Int { entries.count }

    func page(_ index: Int) -> UInt32 { entries[index].number }

    /// By the table's worker: afterwards the page may change.
    func take(_ index: Int) {
        guard claim(index) else {
            waitUntilReady(index)
            return
        }
        var bytes: [UInt8] = []
        entries[index].write(to: &bytes, table: table)
        taken[index] = bytes
        states[index].store(Self.ready, ordering: .releasing)
    }

    /// By the writer: appends the block of an entry. The entries are written once each, in order.
    package func write(_ index: Int, to bytes: inout [UInt8]) {
        if claim(index) {
            entries[index].write(to: &bytes, table: table)
            states[index].store(Self.ready, ordering: .releasing)
        } else {
            waitUntilReady(index)
            bytes += taken[index]
            taken[index] = []
        }
    }

    /// The other thread is copying the page: microseconds, unless the system has put it aside.
    private func waitUntilReady(_ index: Int) {
        while states[index].load(ordering: .acquiring) != Self.ready { mill_yield() }
    }

    private func claim(_ index: Int) -> Bool {
        states[index].compareExchange(expected: Self.pending, desired: Self.claimed, ordering: .acquiringAndReleasing).exchanged
    }

}

/// A page in a seal: how its bytes are made from the memory of its table.
protocol SealedPage {
    var number: UInt32 { get }
    /// Appends a block (`docs/internals/state.md`).
    func write(to bytes: inout [UInt8], table: UInt32)
}

/// What must be known of a table besides its pages.
package struct TableShape: Hashable, Sendable {
    package enum Kind: UInt8, Sendable {
        case rows = 1
        case ordered = 2
    }

    package var kind: Kind
    /// Bytes of a row, or of an ordered table's payload; a table of another layout refuses the state.
    package var rowBytes: UInt32
    /// Bytes of an ordered page, or where a row's payload begins.
    package var layout: UInt32
    /// Rows ever used, or pages.
    package var used: UInt64
    /// Live rows, or keys.
    package var count: UInt64
    /// The first free row's number + 1 (0: none), or the root page.
    package var first: UInt32

    package init(kind: Kind, rowBytes: UInt32, layout: UInt32, used: UInt64, count: UInt64, first: UInt32) {
        self.kind = kind
        self.rowBytes = rowBytes
        self.layout = layout
        self.used = used
        self.count = count
        self.first = first
    }

    init(kind: Kind, rowBytes: Int, layout: Int, used: Int, count: Int, first: UInt32) {
        self.init(
            kind: kind, rowBytes: UInt32(truncatingIfNeeded: rowBytes), layout: UInt32(truncatingIfNeeded: layout),
            used: UInt64(truncatingIfNeeded: used), count: UInt64(truncatingIfNeeded: count), first: first)
    }
}

/// Stored state that does not fit its table, with what was found.
package struct StateCorruption: Error, Sendable, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}

/// A table whose content outlives the process: sealed at epochs, restored page by page.
///
/// Restoring: `restore` once, on a table that nothing was put into, then `restore(block:)` for every block in the order in which they
/// were written, then `finishRestore`. Row numbers are then what they were.
package protocol DurableTable: AnyObject {
    /// From now on changes are noted. Before the first row comes in, or right after `finishRestore`.
    func track()
    /// The changes since the last seal; nil when there are none. Between two epochs.
    /// - Parameters:
    ///   - table: what to name the blocks by.
    ///   - rewriting: pages to be sealed whole whether or not they have changed.
    func seal(table: UInt32, rewriting: [UInt32]) -> SealedPages?
    /// The next seal holds everything, because the last one is lost.
    func forgetSeals()
    func restore(_ shape: TableShape) throws(StateCorruption)
    func restore(block: StateBlock) throws(StateCorruption)
    func finishRestore() throws(StateCorruption)
}
