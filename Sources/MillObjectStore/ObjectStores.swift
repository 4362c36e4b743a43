package import MillHTTPClient
package import MillIO

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// The store of each location, by its scheme: who has this has one store for all of them.
///
/// Threading: any thread.
package struct ObjectStores: ObjectStore {
    private let local: (any ObjectStore)?
    private let s3: (any ObjectStore)?

    /// - Parameters:
    ///   - local: of `file:` locations and paths; nil refuses them.
    ///   - s3: of `s3:`, `s3a:` and `s3n:` locations; nil refuses them.
    package init(local: (any ObjectStore)?, s3: (any ObjectStore)?) {
        self.local = local
        self.s3 = s3
    }

    /// Files, and S3 as options and the environment's variables say. Without keys only locations in S3 are refused, and when they are used.
    ///
    /// - Parameters:
    ///   - properties: as `S3Options.init(properties:environment:)` reads them.
    ///   - root: see `LocalObjectStore`.
    package init(environment: Environment, transport: any HTTPTransport, properties: [String: String] = [:], root: String? = nil) {
        local = LocalObjectStore(environment: environment, root: root)
        do throws(IOFailure) {
            s3 = try S3ObjectStore(
                S3Options(properties: properties, environment: environment), transport: transport, environment: environment)
        } catch {
            s3 = RefusingStore(failure: error)
        }
    }

    /// The store of a location.
    ///
    /// - Throws: `EINVAL` for a scheme that none has.
    package func store(of location: String, _ operation: String = "open") throws(IOFailure) -> any ObjectStore {
        if FileLocation.isOurs(location), let local { return local }
        if S3Location.isOurs(location), let s3 { return s3 }
        throw IOFailure(
            operation, path: location, errorNumber: EINVAL, detail: "no store has such locations: they begin with file:// or s3://")
    }

    package func put(_ location: String, _ bytes: [UInt8], _ condition: PutCondition) throws(IOFailure) {
        try store(of: location, "put").put(location, bytes, condition)
    }

    package func get(_ location: String) throws(IOFailure) -> [UInt8] { try store(of: location, "get").get(location) }
    package func look(at location: String) throws(IOFailure) -> ObjectEntry? { try store(of: location, "look at").look(at: location) }
    package func openForReading(_ location: String) throws(IOFailure) -> any File { try store(of: location).openForReading(location) }
    package func openForWriting(_ location: String) throws(IOFailure) -> any ObjectWriter {
        try store(of: location, "write").openForWriting(location)
    }
    package func list(_ prefix: String) throws(IOFailure) -> [ObjectEntry] { try store(of: prefix, "list").list(prefix) }

    package func remove(_ locations: [String]) throws(IOFailure) {
        let ofFiles = locations.filter { FileLocation.isOurs($0) }
        let others = locations.filter { !FileLocation.isOurs($0) }
        if let first = ofFiles.first { try store(of: first, "remove").remove(ofFiles) }
        if let first = others.first { try store(of: first, "remove").remove(others) }
    }

    @discardableResult
    package func removeLeftovers(under location: String, olderThanMicros: Int64) throws(IOFailure) -> Int {
        try store(of: location, "clean").removeLeftovers(under: location, olderThanMicros: olderThanMicros)
    }
}

/// Stands where a store could not be made, and says why whenever it is used.
private struct RefusingStore: ObjectStore {
    let failure: IOFailure

    private func refusal(_ operation: String, _ location: String) -> IOFailure {
        IOFailure(operation, path: location, errorNumber: failure.errorNumber, detail: failure.detail)
    }

    func put(_ location: String, _ bytes: [UInt8], _ condition: PutCondition) throws(IOFailure) { throw refusal("put", location) }
    func get(_ location: String) throws(IOFailure) -> [UInt8] { throw refusal("get", location) }
    func look(at location: String) throws(IOFailure) -> ObjectEntry? { throw refusal("look at", location) }
    func openForReading(_ location: String) throws(IOFailure) -> any File { throw refusal("open", location) }
    func openForWriting(_ location: String) throws(IOFailure) -> any ObjectWriter { throw refusal("write", location) }
    func list(_ prefix: String) throws(IOFailure) -> [ObjectEntry] { throw refusal("list", prefix) }
    func remove(_ locations: [String]) throws(IOFailure) { throw refusal("remove", locations.first ?? "") }
}
