import MillColumnar
import MillIO
import MillObjectStore
import MillTestKit
import Synchronization

@testable import MillIceberg

/// A catalog in memory that keeps the rules of a real one, and lets others commit in between.
final class TestCatalog: TableCatalog {
    private struct State {
        var tables: [TableIdentifier: TableMetadata] = [:]
        var files: [TableIdentifier: String] = [:]
        var commits = 0
        var before: (@Sendable (Int) throws(IcebergError) -> Void)?
        var after: (@Sendable (Int) throws(IcebergError) -> Void)?
    }

    private let state = Mutex(State())
    let store: any ObjectStore
    private let number: Int

    /// - Parameter number: of several that have one store: their files have other names.
    init(_ store: any ObjectStore, number: Int = 0) {
        self.store = store
        self.number = number
    }

    /// Called with the number of each commit before it is looked at, and after it was made.
    func setHooks(
        before: (@Sendable (Int) throws(IcebergError) -> Void)? = nil, after: (@Sendable (Int) throws(IcebergError) -> Void)? = nil
    ) {
        state.withLock { ($0.before, $0.after) = (before, after) }
    }

    func metadataFile(_ table: TableIdentifier) -> String? { state.withLock { $0.files[table] } }

    func create(_ identifier: TableIdentifier, _ metadata: TableMetadata) throws -> IcebergTable {
        try save(identifier, metadata)
        return IcebergTable(
            identifier, metadata: metadata, catalog: self, store: store, clock: VirtualClock(), random: SeededSource(7 + UInt64(number)))
    }

    private func save(_ identifier: TableIdentifier, _ metadata: TableMetadata) throws(IcebergError) {
        let number = state.withLock { state in
            state.commits += 1
            return state.commits
        }
        let file = "\(metadata.metadataDirectory)/\(10_000 + number)-\(self.number).metadata.json"
        do throws(IOFailure) { try store.put(file, Array(metadata.json.text.utf8), .isMissing) } catch { throw .io(error) }
        state.withLock { state in
            state.tables[identifier] = metadata
            state.files[identifier] = file
        }
    }

    /// What another client would do to a table: a new schema, other properties.
    func change(_ table: inout IcebergTable, _ body: (inout TableMetadata) -> Void) throws {
        try table.refresh()
        body(&table.metadata)
        try save(table.identifier, table.metadata)
    }

    func load(_ table: TableIdentifier) throws(IcebergError) -> LoadedTable {
        guard let found = state.withLock({ $0.tables[table] }) else { throw .missing("table \(table)") }
        return LoadedTable(metadata: found, metadataLocation: metadataFile(table))
    }

    func commit(_ table: TableIdentifier, requirements: [TableRequirement], updates: [TableUpdate]) throws(IcebergError) -> LoadedTable {
        let (number, before, after) = state.withLock { ($0.commits, $0.before, $0.after) }
        try before?(number)
        let old = try load(table).metadata
        for requirement in requirements { try requirement.check(against: old) }
        try save(table, try old.applying(updates))
        try after?(number)
        return try load(table)
    }
}
