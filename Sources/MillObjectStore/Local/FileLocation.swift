import MillIO

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A path written as a location: `file:///path`, `file:/path`, `file://localhost/path`, or the path alone.
///
/// Nothing is percent-decoded: `file:///a%20b` is the file `a%20b`. Names of partitions have percent signs in them on disk
/// (`name=a%2Fb`), and other readers of Iceberg take locations as they stand.
struct FileLocation: Hashable {
    /// What stands before the path, as it was written.
    var scheme: String
    /// Absolute.
    var path: String

    static func isOurs(_ text: String) -> Bool { text.hasPrefix("file:/") || text.hasPrefix("/") }

    /// - Parameter root: nothing outside of this directory is named; nil for no bound. Links in it are followed, wherever they point.
    /// - Throws: `EINVAL` for what is no absolute path or has `..` in it, `EACCES` outside of the root.
    init(_ text: String, _ operation: String, root: String?) throws(IOFailure) {
        scheme = ["file://localhost/", "file:///", "file:/", "/"].first { text.hasPrefix($0) }.map { String($0.dropLast()) } ?? ""
        path = String(text.dropFirst(scheme.count))
        let isRemote = scheme == "file:" && path.hasPrefix("//")
        guard Self.isOurs(text), !isRemote else {
            throw IOFailure(operation, path: text, errorNumber: EINVAL, detail: "a file's location is written file:///path")
        }
        // By bytes, as the system does: to Swift a slash before a combining mark is another character.
        guard !path.utf8.contains(0), !path.utf8.split(separator: UInt8(ascii: "/")).contains(where: { $0.elementsEqual("..".utf8) }) else {
            throw IOFailure(operation, path: text, errorNumber: EINVAL, detail: "a location has no \"..\" and no zero byte in it")
        }
        guard let root, !(path + "/").utf8.starts(with: (root.hasSuffix("/") ? root : root + "/").utf8) else { return }
        throw IOFailure(operation, path: text, errorNumber: EACCES, detail: "the location is outside of \"\(root)\"")
    }

    /// The location of another path.
    func location(of path: String) -> String { scheme + path }

    /// The directory that the path is in.
    var directory: String { Self.directory(of: path) }
    var name: String { String(path[path.index(after: path.lastIndex(of: "/") ?? path.startIndex)...]) }

    static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return "/" }
        return String(path[..<slash])
    }
}
