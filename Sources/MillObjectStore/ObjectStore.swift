package import MillIO

/// Whole objects at absolute locations: `file:///path` or `s3://bucket/key`, one URI for one object.
///
/// Used by the lakehouse for data files, manifests and metadata. An object is seen complete or not at all. Calls block; they are made on
/// threads that may, never on a worker.
///
/// Errors: `ENOENT` for an object that is not there, `EEXIST` for a condition that does not hold, `EACCES` for what the credentials do not
/// allow, `ETIMEDOUT` and `EIO` for a store that is away; `detail` has what it said. What may pass by itself was tried again before.
///
/// Threading: any thread.
package protocol ObjectStore: Sendable {
    /// Makes or replaces an object, durably once this returns.
    func put(_ location: String, _ bytes: [UInt8], _ condition: PutCondition) throws(IOFailure)
    /// An object, whole.
    func get(_ location: String) throws(IOFailure) -> [UInt8]
    /// Size and tag; nil when there is no such object.
    func look(at location: String) throws(IOFailure) -> ObjectEntry?
    /// Opens an object for reading by ranges, as `ParquetFile` does. What it reads stays the same object or fails.
    func openForReading(_ location: String) throws(IOFailure) -> any File
    /// Opens an object that is written from its start to its end, and seen by nobody before `finish`.
    func openForWriting(_ location: String) throws(IOFailure) -> any ObjectWriter
    /// The objects whose locations begin with `prefix`, sorted by location, all pages of them.
    func list(_ prefix: String) throws(IOFailure) -> [ObjectEntry]
    /// Removes objects; missing ones are fine.
    func remove(_ locations: [String]) throws(IOFailure)
    /// Removes what writers that ended have left of objects that nobody ever saw, in a directory and below it, where the store does not do
    /// so by itself.
    /// - Parameter olderThanMicros: what is younger may be of a writer that goes on.
    /// - Returns: how many files that were.
    @discardableResult
    func removeLeftovers(under location: String, olderThanMicros: Int64) throws(IOFailure) -> Int
}

extension ObjectStore {
    @discardableResult
    package func removeLeftovers(under location: String, olderThanMicros: Int64) throws(IOFailure) -> Int { 0 }
}

/// What must hold for a put, decided by the store in one step with it.
package enum PutCondition: Hashable, Sendable {
    case always
    case isMissing
    case hasTag(String)
}

/// An object in a listing.
package struct ObjectEntry: Hashable, Sendable {
    package var location: String
    package var byteCount: Int
    /// Another when the content is another; nil where the store has none.
    package var tag: String?
    /// Microseconds since 1970-01-01T00:00:00Z.
    package var modifiedMicros: Int64

    package init(location: String, byteCount: Int, tag: String?, modifiedMicros: Int64) {
        self.location = location
        self.byteCount = byteCount
        self.tag = tag
        self.modifiedMicros = modifiedMicros
    }
}

/// An object being written. Writes go to its end only, so that it can be handed to `ParquetWriter`. One thread at a time.
package protocol ObjectWriter: File {
    /// Makes the object complete, durable and visible.
    func finish() throws(IOFailure)
    /// Takes back what was written. So does releasing it.
    func abandon()
}
