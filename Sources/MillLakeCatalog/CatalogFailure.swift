import GRDB
import MillBase
import MillIO
import MillIceberg

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// Why a request is refused, in the REST catalog's words: a status and the name of an exception that clients know.
package struct CatalogFailure: Error, Hashable, Sendable {
    package var status: Int
    package var type: String
    package var message: String

    init(_ status: Int, _ type: String, _ message: String) {
        self.status = status
        self.type = type
        self.message = message
    }

    static func badRequest(_ message: String) -> CatalogFailure { CatalogFailure(400, "BadRequestException", message) }
    static func unauthorized(_ message: String) -> CatalogFailure { CatalogFailure(401, "NotAuthorizedException", message) }
    static func forbidden(_ message: String) -> CatalogFailure { CatalogFailure(403, "ForbiddenException", message) }
    static func notFound(_ message: String) -> CatalogFailure { CatalogFailure(404, "NotFoundException", message) }
    static func noSuchNamespace(_ name: [String]) -> CatalogFailure {
        CatalogFailure(404, "NoSuchNamespaceException", "Namespace does not exist: \(name.joined(separator: "."))")
    }
    static func noSuchTable(_ name: TableIdentifier) -> CatalogFailure {
        CatalogFailure(404, "NoSuchTableException", "Table does not exist: \(name)")
    }
    static func noSuchView(_ name: TableIdentifier) -> CatalogFailure {
        CatalogFailure(404, "NoSuchViewException", "View does not exist: \(name)")
    }
    static func exists(_ what: String) -> CatalogFailure { CatalogFailure(409, "AlreadyExistsException", "\(what) already exists") }
    static func commitFailed(_ message: String) -> CatalogFailure { CatalogFailure(409, "CommitFailedException", message) }
    /// Nobody can say whether it happened: clients look before they clean up.
    static func commitUnknown(_ message: String) -> CatalogFailure { CatalogFailure(500, "CommitStateUnknownException", message) }

    /// Any error of this module's parts.
    init(any error: any Error) {
        switch error {
        case let failure as CatalogFailure: self = failure
        case let error as BadBytes: self = .badRequest(error.what)
        case let error as IcebergError: self = Self.of(error)
        case let failure as IOFailure: self = Self.of(failure)
        case let error as DatabaseError:
            let isFull = error.resultCode == .SQLITE_FULL
            self = CatalogFailure(
                isFull ? 507 : 500, "ServiceFailureException",
                "the catalog's database failed: \(error.message ?? error.resultCode.description)")
        default: self = CatalogFailure(500, "ServiceFailureException", "\(error)")
        }
    }

    private static func of(_ failure: IOFailure) -> CatalogFailure {
        switch failure.errorNumber {
        case ENOENT: notFound(failure.description)
        case EACCES: forbidden(failure.description)
        case EINVAL: badRequest(failure.description)
        default: CatalogFailure(failure.isDiskFull ? 507 : 503, "ServiceFailureException", failure.description)
        }
    }

    private static func of(_ error: IcebergError) -> CatalogFailure {
        switch error {
        case .badRequest(let what), .unsupported(let what): badRequest(what)
        case .commitConflict(let what): commitFailed("Requirement failed: \(what)")
        case .commitUnknown(let what): commitUnknown(what)
        case .missing(let what): notFound("there is no \(what)")
        default: CatalogFailure(500, "ServiceFailureException", error.sqlError.description)
        }
    }

    package var answer: CatalogAnswer {
        CatalogAnswer(status, ["error": ["message": .string(message), "type": .string(type), "code": JSONValue(status)]])
    }
}
