/// What names may be. They become parts of paths, of locations and of SQL of other programs.
enum CatalogName {
    private static let bytesMax = 255
    private static let levelsMax = 16
    /// First parts of paths without a prefix.
    static let pathWords: Set<String> = ["namespaces", "tables", "views", "transactions", "config", "oauth"]

    /// A warehouse's: it is sent back as a prefix of paths.
    static func checkWarehouse(_ name: String) throws(CatalogFailure) {
        let isPlain = name.unicodeScalars.allSatisfy {
            $0.isASCII && ($0.properties.isAlphabetic || ("0"..."9").contains($0) || "._-".unicodeScalars.contains($0))
        }
        guard isPlain, !name.isEmpty, name.utf8.count <= bytesMax, name != ".", name != "..", !pathWords.contains(name) else {
            throw .badRequest(
                "\"\(name.prefix(100))\" cannot be the name of a catalog: it takes ASCII letters, digits and the characters . _ -")
        }
    }

    /// A table's, a view's, a role's, a principal's or one level's of a namespace.
    static func check(_ name: String, _ what: String) throws(CatalogFailure) {
        guard !name.isEmpty else { throw .badRequest("the name of a \(what) is empty") }
        guard name.utf8.count <= bytesMax else { throw .badRequest("the name of a \(what) has more than \(bytesMax) bytes") }
        let isPlain = name.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F && $0 != "/" && $0 != "\\" }
        guard isPlain, name != ".", name != ".." else {
            throw .badRequest("\"\(name.prefix(100))\" cannot be the name of a \(what): it takes no slashes and no control characters")
        }
    }

    static func check(_ namespace: [String]) throws(CatalogFailure) {
        guard !namespace.isEmpty else { throw .badRequest("a namespace has at least one level") }
        guard namespace.count <= levelsMax else { throw .badRequest("a namespace has at most \(levelsMax) levels") }
        for level in namespace { try check(level, "namespace") }
    }

    private static let separator = "\u{1F}"

    /// The levels of a namespace in a path or in the database.
    static func levels(_ text: String) -> [String] { text.split(separator: separator, omittingEmptySubsequences: false).map(String.init) }
    static func path(_ levels: [String]) -> String { levels.joined(separator: separator) }
}
