package import MillIO

/// How a commit is made and how long it is tried.
package struct CommitSettings: Sendable {
    package var branch = "main"
    /// Tries in all, conflicts included.
    package var triesMax = 8
    package var backoff = Backoff(first: .milliseconds(100), last: .seconds(10))
    /// Blocks for a while: a try after a conflict waits by it.
    package var pause: @Sendable (Duration) -> Void
    /// Manifests of fewer bytes are merged, by so many at a time; nil merges none, which is the fastest append.
    package var merging: Merging? = Merging()

    package struct Merging: Sendable {
        /// `commit.manifest.target-size-bytes`.
        package var targetBytes: Int64 = 8 << 20
        /// `commit.manifest.min-count-to-merge`.
        package var countMin = 30

        package init() {}
    }

    package init(pause: @escaping @Sendable (Duration) -> Void) { self.pause = pause }

    /// What the table's properties say, where they do.
    package mutating func take(_ properties: [String: String]) {
        if let tries = properties["commit.retry.num-retries"].flatMap({ Int($0) }), (0...1000).contains(tries) { triesMax = tries + 1 }
        if properties["commit.manifest-merge.enabled"] == "false" { merging = nil }
        if let bytes = properties["commit.manifest.target-size-bytes"].flatMap({ Int64($0) }), bytes > 0 { merging?.targetBytes = bytes }
        if let count = properties["commit.manifest.min-count-to-merge"].flatMap({ Int($0) }), count > 1 { merging?.countMin = count }
    }
}
