import MillBase
import MillState

/// In which file the last whole block of every page lies, and how long it is: what says which files are still needed.
struct PageBases: Sendable {
    private struct Base {
        /// 0: none.
        var file: UInt64 = 0
        var bytes = 0
    }

    private var tables: [TableID: [Base]] = [:]
    private var counts: [UInt64: Int] = [:]
    private var liveBytes = 0

    mutating func note(_ block: BlockPlace) {
        guard block.isWhole else { return }
        let page = Int(block.page)
        var bases = tables.removeValue(forKey: block.table) ?? []
        while bases.count <= page { bases.append(Base()) }
        forget(bases[page])
        bases[page] = Base(file: block.file, bytes: block.bytes)
        counts[block.file, default: 0] += 1
        liveBytes += block.bytes
        tables[block.table] = bases
    }

    private mutating func forget(_ base: Base) {
        guard base.file != 0 else { return }
        counts[base.file, default: 0] -= 1
        liveBytes -= base.bytes
    }

    /// Forgets pages that a table no longer has.
    mutating func forget(_ pages: [UInt32], of table: TableID) {
        guard var bases = tables.removeValue(forKey: table) else { return }
        for page in pages where Int(page) < bases.count {
            forget(bases[Int(page)])
            bases[Int(page)] = Base()
        }
        tables[table] = bases
    }

    /// Forgets the tables that are no more.
    mutating func keep(only kept: Set<TableID>) {
        for table in tables.keys where !kept.contains(table) {
            for base in tables.removeValue(forKey: table) ?? [] { forget(base) }
        }
    }

    func pageCount(of file: UInt64) -> Int { counts[file] ?? 0 }

    /// Pages of the oldest files to store anew, about `budget` bytes of them; none while the files are not too long.
    func oldest(files: [CheckpointRecord.PageFile], budget: Int, slack: Int, open: UInt64) -> [TableID: [UInt32]] {
        let total = files.reduce(0) { $0 + Int($1.bytes) }
        guard total > 2 * liveBytes + slack else { return [:] }
        var found: [TableID: [UInt32]] = [:]
        var left = budget
        for file in files where file.number != open && left > 0 && pageCount(of: file.number) > 0 {
            for (table, bases) in tables {
                for (page, base) in bases.enumerated() where base.file == file.number && left > 0 {
                    found[table, default: []].append(UInt32(page))
                    left -= base.bytes
                }
            }
        }
        return found
    }
}
