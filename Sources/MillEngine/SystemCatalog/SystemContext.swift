import MillBase
package import MillCatalog

/// What system relations and catalog functions are made from: one state of the catalog, and the session that asks.
package struct SystemContext: Sendable {
    package var catalog: Catalog
    package var databaseName: String
    package var userName: String
    package var settings: SessionSettings
    /// `pg_backend_pid()`.
    package var backendID: Int32

    package init(catalog: Catalog, databaseName: String, userName: String, settings: SessionSettings = SessionSettings(), backendID: Int32 = 0) {
        self.catalog = catalog
        self.databaseName = databaseName
        self.userName = userName
        self.settings = settings
        self.backendID = backendID
    }

    /// Everything that a statement can read, with `<source>_rejects` and `<view>_errors`.
    var relations: [CatalogObject] { EngineCatalog(catalog: catalog).objects }

    /// What users created, oldest first.
    var userObjects: [CatalogObject] { catalog.objects.filter { $0.id >= Catalog.firstUserID } }

    /// The databases that a client may name: any name connects, these two are listed.
    var databaseNames: [String] { databaseName == Self.defaultDatabase ? [databaseName] : [Self.defaultDatabase, databaseName].sorted() }

    private static let defaultDatabase = "dev"
}

/// The numbers of what has no number of its own in the catalog.
///
/// Relations, views and the like are numbered by their `ObjectID`. A primary key's index and constraint have the number of
/// their table with a high bit set, below the bits of `EngineCatalog`.
enum SystemOID {
    static let indexBit: UInt32 = 1 << 28
    static let constraintBit: UInt32 = 1 << 27
    /// The one role there is, the owner of everything: PostgreSQL's first superuser.
    static let owner: Int32 = 10
    static let defaultTablespace: Int32 = 1663
    static let globalTablespace: Int32 = 1664
    static let heapAccessMethod: Int32 = 2
    static let btreeAccessMethod: Int32 = 403
    static let defaultCollation: Int32 = 100
    static let foreignServer: Int32 = 12_900
    static let foreignWrapper: Int32 = 12_901
    static let pgClass: Int32 = 1259
    static let pgNamespace: Int32 = 2615
    private static let firstFunction: Int32 = 10_000
    private static let firstDatabase: Int32 = 5
    private static let firstUserSchema: Int32 = 13_500

    static func of(_ object: CatalogObject) -> Int32 { Int32(truncatingIfNeeded: object.id.number) }
    static func index(_ table: CatalogObject) -> Int32 { Int32(truncatingIfNeeded: table.id.number | indexBit) }
    static func constraint(_ table: CatalogObject) -> Int32 { Int32(truncatingIfNeeded: table.id.number | constraintBit) }
    /// By the function's place in the registry, which one version of the program keeps.
    static func function(_ place: Int) -> Int32 { firstFunction &+ Int32(truncatingIfNeeded: place) }
    static func database(_ place: Int) -> Int32 { firstDatabase &+ Int32(truncatingIfNeeded: place) }

    static func schema(_ name: String, in catalog: Catalog) -> Int32 {
        switch name {
        case "pg_catalog": 11
        case "public": 2200
        case "information_schema": 13_000
        default: firstUserSchema &+ Int32(truncatingIfNeeded: catalog.schemas.firstIndex(of: name) ?? 0)
        }
    }
}
