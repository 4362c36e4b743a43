import MillBase
import MillIO

/// A path whose parts may hold `*`, `?` and `[...]`, none of which matches a slash.
struct FilePattern {
    private let path: String

    init(_ path: String) { self.path = path }

    /// The files it stands for, in order of path. A directory stands for the files in it.
    func matches(in files: any FileSystem) throws(SQLError) -> [String] {
        var found: [String] = [path.hasPrefix("/") ? "/" : ""]
        for part in path.split(separator: "/") {
            var next: [String] = []
            for directory in found {
                guard Self.isPattern(part) else {
                    next.append(Self.join(directory, String(part)))
                    continue
                }
                // A part that is no directory has nothing below it.
                let names = (try? files.list(directory.isEmpty ? "." : directory)) ?? []
                next += names.filter { Self.isVisible($0) && Self.matches(Array($0.utf8)[...], Array(part.utf8)[...]) }.map { Self.join(directory, $0) }
            }
            found = next
        }
        let isExact = !Self.isPattern(path[...])
        var result: [String] = []
        for candidate in found {
            if let names = try? files.list(candidate) {
                guard isExact else { continue }
                result += names.filter(Self.isVisible).map { Self.join(candidate, $0) }.filter { (try? files.list($0)) == nil }
            } else if files.exists(candidate) {
                result.append(candidate)
            } else if isExact {
                throw SQLError(.undefinedObject, "there is no file or directory \"\(candidate)\"")
            }
        }
        return result.sorted()
    }

    private static func isPattern(_ part: Substring) -> Bool { part.contains { $0 == "*" || $0 == "?" || $0 == "[" } }
    private static func isVisible(_ name: String) -> Bool { !name.hasPrefix(".") && !name.hasPrefix("_") }
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
            guard let close = pattern.dropFirst(2).firstIndex(of: UInt8(ascii: "]")) else { return byte == first ? pattern.dropFirst() : nil }
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
