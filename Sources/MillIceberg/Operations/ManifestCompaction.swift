/// Puts all small manifests of a branch together in a commit of its own, for tables whose appends do not merge.
package enum ManifestCompaction {
    /// - Returns: the table as it is then; unchanged when there are too few small manifests.
    package static func run(_ table: IcebergTable, _ settings: CommitSettings, summary: [(key: String, value: String)] = [])
        throws(IcebergError)
        -> IcebergTable
    {
        var settings = settings
        let merging = settings.merging ?? CommitSettings.Merging()
        let manifests = try table.manifests(of: table.metadata.snapshot(ofBranch: settings.branch))
        guard manifests.count(where: { $0.byteCount < merging.targetBytes }) >= merging.countMin else { return table }
        settings.merging = merging
        var change = SnapshotChange(.replace)
        change.rewritesManifests = true
        change.summary = summary
        return try SnapshotCommit.run(change, on: table, settings).table
    }
}
