import GRDB
import MillIceberg

/// What the first start makes: the principal `root`, its role and one warehouse.
extension LakeCatalog {
    /// The role of those who manage the whole service.
    static let adminRole = "service_admin"
    static let rootPrincipal = "root"

    func bootstrap() throws {
        let isNew = try database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM principals") == 0 }
        let credentials = options.credentials ?? (isNew ? .standard : nil)
        if let credentials, try !isCurrent(credentials) {
            // Slow by intention: not while the database is taken.
            let hash = Secret.hash(credentials.secret)
            try database.write { database in try Self.setRoot(credentials.clientID, hash, nowMillis, database) }
        }
        try database.write { database in
            guard try Warehouse.find(options.defaultWarehouse, database) == nil else { return }
            _ = try insertLocalWarehouse(options.defaultWarehouse, database)
        }
    }

    /// A warehouse on the local disk, in its own directory below the root.
    func insertLocalWarehouse(_ name: String, _ database: Database) throws -> Warehouse {
        try CatalogName.checkWarehouse(name)
        let location = Location.trimmed(options.warehouseRoot) + "/" + name
        let storage: JSONValue = ["storageType": "FILE", "allowedLocations": [.string(location)]]
        return try Warehouse.insert(
            name, type: "INTERNAL", properties: [Warehouse.baseLocationKey: location], storage: storage, nowMillis: nowMillis, database)
    }

    private func isCurrent(_ credentials: BootstrapCredentials) throws -> Bool {
        let row = try database.read {
            try Row.fetchOne(
                $0, sql: "SELECT salt, digest FROM principals WHERE name = ? AND client_id = ?",
                arguments: [Self.rootPrincipal, credentials.clientID])
        }
        guard let row else { return false }
        return Secret.matches(credentials.secret, Secret.Hash(salt: row["salt"], digest: row["digest"]))
    }

    private static func setRoot(_ clientID: String, _ hash: Secret.Hash, _ nowMillis: Int64, _ database: Database) throws {
        try database.execute(
            sql: """
                INSERT INTO principals VALUES (?, ?, ?, ?, '{}', ?, ?, 1)
                ON CONFLICT (name) DO UPDATE SET client_id = excluded.client_id, salt = excluded.salt, digest = excluded.digest,
                    changed_millis = excluded.changed_millis, version = version + 1
                """, arguments: [rootPrincipal, clientID, hash.salt, hash.digest, nowMillis, nowMillis])
        try database.execute(
            sql: "INSERT OR IGNORE INTO principal_roles VALUES (?, '{}', ?, ?, 1)", arguments: [adminRole, nowMillis, nowMillis])
        try database.execute(sql: "INSERT OR IGNORE INTO principals_in_roles VALUES (?, ?)", arguments: [rootPrincipal, adminRole])
    }
}
