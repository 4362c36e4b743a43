package import MillBase
package import MillIO
import MillState

/// What lies in a `state` directory, for people to look at; nothing in it is changed.
package struct StateInspection: Sendable {
    package struct Table: Sendable {
        package var place: TablePlace
        package var isOrdered: Bool
        /// Or ordered keys.
        package var rows: UInt64
        package var pages: Int
        /// Of the blocks that count.
        package var bytes: Int
    }

    package struct Journal: Sendable {
        package var checkpoint: UInt64
        package var entries: Int
        package var last: EpochPosition
    }

    /// Numbers of the records that are there, and whether each is whole, with all its files.
    package private(set) var checkpoints: [(number: UInt64, isWhole: Bool)] = []
    /// The newest whole one: what a start takes.
    package private(set) var record: CheckpointRecord?
    package private(set) var tables: [Table] = []
    package private(set) var journals: [Journal] = []
    /// What a start would find wrong, in words.
    package private(set) var damage: [String] = []

    package static let recordVersion = CheckpointRecord.version

    /// - Parameter verifies: whether to read all blocks that count and compare their checksums.
    package init(directory: String, files: any FileSystem, verifies: Bool) throws(IOFailure) {
        guard files.exists(directory) else { return }
        for name in try files.list(directory) where name.hasPrefix("checkpoint-") {
            guard let number = UInt64(name.dropFirst("checkpoint-".count)) else { continue }
            let whole = try Self.whole("\(directory)/\(name)", directory, files)
            checkpoints.append((number, whole != nil))
            if whole == nil { damage.append("\(name) is not whole, or a file that it names is missing or too short") }
            if let whole, whole.number > record?.number ?? 0 { record = whole }
        }
        checkpoints.sort { $0.number < $1.number }
        if let record { try read(record, directory, files, verifies) }
        journals = try EpochJournal(directory: directory, files: files).inspect()
    }

    private static func whole(_ path: String, _ directory: String, _ files: any FileSystem) throws(IOFailure) -> CheckpointRecord? {
        guard let record = try? CheckpointRecord(try files.open(path, .read).readAll()) else { return nil }
        for file in record.files {
            let path = "\(directory)/pages-\(file.number)"
            guard files.exists(path), try files.open(path, .read).size() >= Int(file.bytes) else { return nil }
        }
        return record
    }

    private mutating func read(_ record: CheckpointRecord, _ directory: String, _ files: any FileSystem, _ verifies: Bool) throws(IOFailure) {
        var open: [UInt64: any File] = [:]
        for file in record.files { open[file.number] = try files.open("\(directory)/pages-\(file.number)", .read) }
        let index = try BlockIndex(record, open)
        if let found = index.damage { damage.append(found) }
        for table in record.tables {
            let blocks = index.blocks(of: table.id)
            tables.append(
                Table(
                    place: table.place, isOrdered: table.shape.kind == .ordered, rows: table.shape.count, pages: Set(blocks.map(\.page)).count,
                    bytes: blocks.reduce(0) { $0 + $1.bytes }))
            guard verifies else { continue }
            do throws(StateCorruption) { try BlockReader(blocks, open).forEachRun { _, _ in } } catch {
                damage.append("state of object \(table.place.job), node \(table.place.node), worker \(table.place.worker): \(error)")
            }
        }
    }
}
