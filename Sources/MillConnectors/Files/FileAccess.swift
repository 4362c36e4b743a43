package import MillBase
package import MillHTTPClient
package import MillIO
package import MillObjectStore

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// Which files statements may name, and how objects in S3 are reached. Whoever may send statements to a server could otherwise read and
/// write whatever its user can.
package struct FileAccess: Sendable {
    package enum Local: Hashable, Sendable {
        case anywhere
        /// These directories and what is below them. Links in them are followed, wherever they point.
        case within([String])
        case nowhere
    }

    package var local: Local
    /// What paths that do not begin with a slash are relative to; absolute.
    package var workingDirectory: String
    /// The store of `s3:` locations by the options of a statement and the environment's variables.
    package var openS3: @Sendable (_ properties: [String: String]) throws(IOFailure) -> any ObjectStore

    package init(
        local: Local = .anywhere, workingDirectory: String = "/",
        openS3: @escaping @Sendable (_ properties: [String: String]) throws(IOFailure) -> any ObjectStore
    ) {
        self.local = local
        self.workingDirectory = workingDirectory
        self.openS3 = openS3
    }

    /// Paths are relative to the process's working directory.
    package init(local: Local = .anywhere, environment: Environment, transport: any HTTPTransport) {
        let directory = getcwd(nil, 0)
        defer { free(directory) }
        self.init(local: local, workingDirectory: directory.map { String(cString: $0) } ?? "/") { (properties) throws(IOFailure) in
            try S3ObjectStore(S3Options(properties: properties, environment: environment), transport: transport, environment: environment)
        }
    }

    /// - Throws: 42501 for a path, or pattern of paths, that statements may not name.
    package func check(_ path: String) throws(SQLError) {
        switch local {
        case .anywhere: return
        case .nowhere:
            throw SQLError(
                .insufficientPrivilege, "statements may not name files of this machine: \"\(path)\"",
                hint: "The server listens beyond this machine. Start it with --file-roots DIRECTORY[,DIRECTORY] to allow files there.")
        case .within(let roots):
            let parts = Self.parts(absolute(path))
            // What ".." means behind a link only the system knows.
            let isInside = !parts.contains(Array("..".utf8)) && roots.contains { parts.starts(with: Self.parts($0)) }
            guard !isInside else { return }
            throw SQLError(
                .insufficientPrivilege, "\"\(path)\" is outside of the directories whose files statements may name",
                hint: "These are (--file-roots): \(roots.joined(separator: ", ")).")
        }
    }

    /// The names in a path, as bytes: to Swift a slash before a combining mark is another character, to the system it is not.
    private static func parts(_ path: String) -> [[UInt8]] {
        path.utf8.split(separator: UInt8(ascii: "/")).map { Array($0) }.filter { $0 != Array(".".utf8) }
    }

    /// A path from the root on.
    package func absolute(_ path: String) -> String { path.hasPrefix("/") ? path : workingDirectory + "/" + path }
}
