/// What a decoder has to know of the file whose records it gets. Each opening of a file makes another.
package final class SplitFile: Sendable {
    /// Its path or location.
    package let location: String
    /// The columns whose values are in the path, as `column=value`; nil stands for NULL.
    package let partition: [PartitionValue]
    /// The names in its first line; nil for a file without such a line.
    package let header: [String]?

    package struct PartitionValue: Hashable, Sendable {
        package var column: String
        package var value: String?

        package init(column: String, value: String?) {
            self.column = column
            self.value = value
        }
    }

    package init(location: String, partition: [PartitionValue] = [], header: [String]? = nil) {
        self.location = location
        self.partition = partition
        self.header = header
    }

    /// Whether the path says what a column is.
    package func hasPartition(_ column: String) -> Bool { ColumnNames.place(of: column, among: partition.map(\.column)) != nil }
}

/// How declared columns find those of files: to the letter, else without regard to the case of letters and with `-` for `_`, for which Hive
/// has no other way than `User-Agent`.
package enum ColumnNames {
    package static func place(of name: String, among names: [String]) -> Int? {
        if let place = names.firstIndex(of: name) { return place }
        let wanted = folded(name)
        return names.firstIndex { folded($0) == wanted }
    }

    private static func folded(_ name: String) -> String { String(name.lowercased().map { $0 == "-" ? "_" : $0 }) }
}
