/// Files that a query names itself, by `read_parquet`, `read_csv` or `read_json`.
package struct FileCall: Hashable, Sendable, Codable {
    /// As behind ENCODE, in lower case.
    package var encode: String
    /// A path, location or pattern.
    package var path: String
    /// Those of the encoding, as in CREATE SOURCE.
    package var options: [String: String]

    package init(encode: String, path: String, options: [String: String] = [:]) {
        self.encode = encode
        self.path = path
        self.options = options
    }
}
