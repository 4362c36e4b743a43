import MillBase
import MillIO

/// A path whose parts may hold `*`, `?` and `[...]`, none of which matches a slash; a part `**` stands for any number of directories.
///
/// Without any of these it names a file or a directory; of a directory its files count, and those in its subdirectories `column=value`. What
/// begins with `.` or `_` is named by no pattern, unless it is such a subdirectory.
struct FilePattern {
    private let path: String

    init(_ path: String) { self.path = path }

    private static let countMax = 1_000_000
    private static let depthMax = 64

    /// What every match begins with: what stands before the first part that is a pattern, with its slash.
    var prefix: String {
        var parts: [Substring] = []
        for part in path.split(separator: "/", omittingEmptySubsequences: false) {
            if Self.isPattern(part) { return parts.joined(separator: "/") + (parts.isEmpty ? "" : "/") }
            parts.append(part)
        }
        return path
    }

    var isExact: Bool { !Self.isPattern(path[...]) }

    /// Whether it stands for the file with this path, or for one below the directory that it names.
    func matches(_ candidate: String) -> Bool {
        guard candidate != path else { return true }
        guard !isExact else {
            let directory = path.isEmpty || path.hasSuffix("/") ? path : path + "/"
            guard candidate.hasPrefix(directory) else { return false }
            let parts = candidate.dropFirst(directory.count).split(separator: "/", omittingEmptySubsequences: false)
            return parts.dropLast().allSatisfy(HivePath.isPartition) && (parts.last.map(Self.isVisible) ?? false)
        }
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)[...]
        return Self.matches(candidate.split(separator: "/", omittingEmptySubsequences: false)[...], parts)
    }

    private static func matches(_ names: ArraySlice<Substring>, _ parts: ArraySlice<Substring>) -> Bool {
        guard let part = parts.first else { return names.isEmpty }
        if part == "**" {
            if matches(names, parts.dropFirst()) { return true }
            guard let name = names.first, names.count > 1, isVisible(name) else { return false }
            return matches(names.dropFirst(), parts)
        }
        guard let name = names.first else { return false }
        let isMatch = isPattern(part) ? isVisible(name) && matches(Array(name.utf8)[...], Array(part.utf8)[...]) : name == part
        return isMatch && matches(names.dropFirst(), parts.dropFirst())
    }

    /// The files it stands for, in order of path.
    /// - Throws: 42704 for a path without a pattern where nothing is, 54000 for too many.
    func matches(in files: any FileSystem) throws(SQLError) -> [String] {
        var found: [String] = []
        if isExact {
            if Self.isDirectory(path, files) {
                try Self.collect(path, files, &found, depth: 0)
            } else if files.exists(path) {
                found = [path]
            } else {
                throw SQLError(.undefinedObject, "there is no file or directory \"\(path)\"")
            }
        } else {
            try Self.expand(path.hasPrefix("/") ? "/" : "", path.split(separator: "/")[...], files, &found, depth: 0)
        }
        return found.sorted()
    }

    /// Appends what is below `directory` and matches the rest of the pattern.
    private static func expand(
        _ directory: String, _ parts: ArraySlice<Substring>, _ files: any FileSystem, _ found: inout [String], depth: Int
    ) throws(SQLError) {
        guard let part = parts.first else {
            if files.exists(directory), !isDirectory(directory, files) { try append(directory, &found) }
            return
        }
        guard depth < depthMax else {
            throw SQLError(.programLimitExceeded, "\"\(directory)\" lies more than \(depthMax) directories deep")
        }
        guard isPattern(part) else { return try expand(join(directory, String(part)), parts.dropFirst(), files, &found, depth: depth + 1) }
        // A part that is no directory has nothing below it.
        let names = ((try? files.list(directory.isEmpty ? "." : directory)) ?? []).filter { isVisible($0) }
        if part == "**" {
            try expand(directory, parts.dropFirst(), files, &found, depth: depth + 1)
            for name in names where isDirectory(join(directory, name), files) {
                try expand(join(directory, name), parts, files, &found, depth: depth + 1)
            }
            return
        }
        for name in names where matches(Array(name.utf8)[...], Array(part.utf8)[...]) {
            try expand(join(directory, name), parts.dropFirst(), files, &found, depth: depth + 1)
        }
    }

    /// Appends the files of a directory, and those of its subdirectories `column=value`.
    private static func collect(_ directory: String, _ files: any FileSystem, _ found: inout [String], depth: Int) throws(SQLError) {
        let names: [String]
        do throws(IOFailure) { names = try files.list(directory) } catch { throw error.sqlError }
        for name in names where isVisible(name) {
            let path = join(directory, name)
            if !isDirectory(path, files) {
                try append(path, &found)
            } else if HivePath.isPartition(name[...]), depth < depthMax {
                try collect(path, files, &found, depth: depth + 1)
            }
        }
    }

    private static func append(_ path: String, _ found: inout [String]) throws(SQLError) {
        guard found.count < countMax else {
            throw SQLError(.programLimitExceeded, "more than \(countMax) files match", hint: "Name fewer of them.")
        }
        found.append(path)
    }

    // What cannot be looked at is none.
    private static func isDirectory(_ path: String, _ files: any FileSystem) -> Bool { (try? files.look(at: path))??.isDirectory ?? false }
    private static func isPattern(_ part: Substring) -> Bool { part.contains { $0 == "*" || $0 == "?" || $0 == "[" } }
    private static func isVisible(_ name: some StringProtocol) -> Bool {
        !name.isEmpty && !name.hasPrefix(".") && (!name.hasPrefix("_") || HivePath.isPartition(Substring(name)))
    }
    private static func join(_ directory: String, _ name: String) -> String {
        directory.isEmpty ? name : directory.hasSuffix("/") ? directory + name : directory + "/" + name
    }

    /// Greedy with one place to go back to, so linear in both for each star.
    private static func matches(_ name: ArraySlice<UInt8>, _ pattern: ArraySlice<UInt8>) -> Bool {
        var name = name
        var pattern = pattern
        var retry: (name: ArraySlice<UInt8>, pattern: ArraySlice<UInt8>)?
        while let byte = name.first {
            if pattern.first == UInt8(ascii: "*") {
                retry = (name, pattern.dropFirst())
                pattern = pattern.dropFirst()
            } else if let rest = step(byte, pattern) {
                name = name.dropFirst()
                pattern = rest
            } else if let again = retry {
                name = again.name.dropFirst()
                pattern = again.pattern
                retry = (name, pattern)
            } else {
                return false
            }
        }
        return pattern.allSatisfy { $0 == UInt8(ascii: "*") }
    }

    /// The pattern after one that takes `byte`, or nil.
    private static func step(_ byte: UInt8, _ pattern: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard let first = pattern.first else { return nil }
        if first == UInt8(ascii: "[") {
            guard let close = pattern.dropFirst(2).firstIndex(of: UInt8(ascii: "]")) else {
                return byte == first ? pattern.dropFirst() : nil
            }
            var set = pattern[(pattern.startIndex + 1)..<close]
            let isNegated = set.first == UInt8(ascii: "!") || set.first == UInt8(ascii: "^")
            if isNegated { set = set.dropFirst() }
            var isMember = false
            while let low = set.popFirst() {
                if set.count >= 2, set.first == UInt8(ascii: "-") {
                    let high = set[set.startIndex + 1]
                    set = set.dropFirst(2)
                    isMember = isMember || (low <= high && (low...high).contains(byte))
                } else {
                    isMember = isMember || low == byte
                }
            }
            return isMember != isNegated ? pattern[(close + 1)...] : nil
        }
        return first == UInt8(ascii: "?") || first == byte ? pattern.dropFirst() : nil
    }
}
