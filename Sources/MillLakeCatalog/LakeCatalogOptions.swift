package import MillBase

/// Where the embedded catalog keeps things, and what it begins with.
package struct LakeCatalogOptions: Sendable {
    /// Of `catalog.db`; nil keeps it in memory, for tests.
    package var path: String?
    /// Warehouses without a location of their own lie below this one: `file:///.../warehouse`.
    package var warehouseRoot: String
    /// The warehouse of the first start, and of requests that name none.
    package var defaultWarehouse = "dev"
    /// Whether a warehouse comes into being when a client that may manage the catalog first asks for its configuration.
    package var makesWarehouses = true
    /// The principal `root`; nil leaves what is stored, and is root/secret at the first start.
    package var credentials: BootstrapCredentials?
    package var tokenLifetimeSeconds = 3600
    /// How often a commit starts anew because others were faster before it is refused.
    package var commitTriesMax = 20

    package init(path: String?, warehouseRoot: String) {
        self.path = path
        self.warehouseRoot = warehouseRoot
    }
}

/// Client id and secret of the principal `root`.
package struct BootstrapCredentials: Sendable, Hashable {
    package var clientID: String
    package var secret: String

    package static let standard = BootstrapCredentials(clientID: "root", secret: "secret")

    package init(clientID: String, secret: String) { (self.clientID, self.secret) = (clientID, secret) }

    /// As `POLARIS_BOOTSTRAP_CREDENTIALS` has them: `realm,id,secret`, or several of these with `;` between. All realms are one here, so the
    /// first counts.
    /// - Throws: 22023 for anything else.
    package init(environmentText text: String) throws(SQLError) {
        let parts = text.split(separator: ";").first?.split(separator: ",", omittingEmptySubsequences: false).map(String.init) ?? []
        guard parts.count == 3, !parts[1].isEmpty, !parts[2].isEmpty else {
            throw SQLError(.invalidParameterValue, "POLARIS_BOOTSTRAP_CREDENTIALS is not realm,id,secret")
        }
        self.init(clientID: parts[1], secret: parts[2])
    }
}
