import MillIO

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// `s3://bucket/key`. The key is what stands there: nothing in it is percent-decoded, since nobody who writes Iceberg metadata encodes it.
/// `s3a:` and `s3n:` are Hadoop's names for the same.
struct S3Location: Hashable {
    /// `s3://`, as it was written.
    var scheme: String
    var bucket: String
    /// Empty for a bucket alone.
    var key: String

    /// Whether a location is one of S3's.
    static func isOurs(_ text: String) -> Bool { ["s3://", "s3a://", "s3n://"].contains { text.hasPrefix($0) } }

    /// - Throws: `EINVAL` for what is no location in S3.
    init(_ text: String, _ operation: String) throws(IOFailure) {
        guard Self.isOurs(text), let slashes = text.firstRange(of: "://") else {
            throw IOFailure(operation, path: text, errorNumber: EINVAL, detail: "a location in S3 is written s3://bucket/key")
        }
        scheme = String(text[..<slashes.upperBound])
        let rest = text[slashes.upperBound...]
        let slash = rest.firstIndex(of: "/") ?? rest.endIndex
        bucket = String(rest[..<slash])
        key = slash == rest.endIndex ? "" : String(rest[rest.index(after: slash)...])
        let isName = (3...255).contains(bucket.utf8.count) && bucket.utf8.allSatisfy { Self.isOfBucket($0) }
        guard isName else {
            throw IOFailure(
                operation, path: text, errorNumber: EINVAL,
                detail: "\"\(bucket)\" is no name of a bucket: letters, digits, points and hyphens")
        }
        guard key.utf8.count <= 1024 else {
            throw IOFailure(operation, path: text, errorNumber: EINVAL, detail: "a key has at most 1,024 bytes, this one \(key.utf8.count)")
        }
    }

    private static func isOfBucket(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"): true
        default: false
        }
    }

    /// The location of another key of the bucket.
    func location(of key: String) -> String { scheme + bucket + "/" + key }
    var text: String { location(of: key) }

    /// The same, of one object.
    /// - Throws: `EINVAL` for a bucket alone.
    static func object(_ text: String, _ operation: String) throws(IOFailure) -> S3Location {
        let location = try S3Location(text, operation)
        guard !location.key.isEmpty else {
            throw IOFailure(operation, path: text, errorNumber: EINVAL, detail: "the location names a bucket, not an object in it")
        }
        return location
    }
}
