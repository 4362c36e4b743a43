import MillBase
import MillBinder
import MillColumnar
import MillConnectorKit
import MillConnectors
import Synchronization

/// The catalogs whose tables queries may name: those that CREATE CATALOG attached, then the embedded ones, by their warehouses' names.
///
/// Threading: any thread.
final class AttachedCatalogs: CatalogTables {
    private let assembly: any SourceAssembly
    private let attached = Mutex<[String: any AttachedCatalog]>([:])

    init(_ assembly: any SourceAssembly) { self.assembly = assembly }

    func attach(_ catalog: any AttachedCatalog, as name: String) { attached.withLock { $0[name] = catalog } }
    func detach(_ name: String) { attached.withLock { $0[name] = nil } }
    func isMade(_ name: String) -> Bool { attached.withLock { $0[name] != nil } }

    func find(_ name: String) throws(SQLError) -> (any AttachedCatalog)? {
        if let found = attached.withLock({ $0[name] }) { return found }
        return try assembly.embeddedCatalog(name)
    }

    var finder: IcebergSource.CatalogFinder { { [self] (name) throws(SQLError) in try find(name) } }

    func names() throws(SQLError) -> [String] {
        Set(attached.withLock { Array($0.keys) }).union(try assembly.embeddedCatalogs()).sorted()
    }

    // MARK: CatalogTables

    func isAttached(_ catalog: String) throws(SQLError) -> Bool { try find(catalog) != nil }

    func describe(_ table: CatalogTable, _ state: TableState?) throws(SQLError) -> (table: CatalogTable, columns: [Field])? {
        try find(table.catalog)?.describe(table, state)
    }

    let parts = ["snapshots", "history", "files", "manifests", "partitions", "refs"]
}
