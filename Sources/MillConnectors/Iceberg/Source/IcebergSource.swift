package import MillBase
import MillCatalogClient
package import MillColumnar
package import MillConnectorKit
import MillIceberg
package import MillIO

/// `connector = 'iceberg'`: the rows of a table of any catalog that speaks Iceberg's REST protocol, or of this server's own, and those that
/// are added to it.
///
/// It begins with all rows of the snapshot that the table had when the source was made; from there on each snapshot that appends gives its
/// rows, in the order of commits. Files that compaction writes anew are no change. One that deletes or changes rows stops the source, as
/// does a snapshot that expired before it was read: nothing is passed over silently.
///
/// One split: commits of a table are one sequence, and event times follow it. An offset is a `TablePosition`.
package final class IcebergSource: SourceConnector {
    private let options: IcebergSourceOptions
    private let follower: TableFollower
    private let split: SourceSplit

    /// Finds a catalog that is attached, or this server's own, by its name; asked whenever the table is.
    package typealias CatalogFinder = @Sendable (_ name: String) throws(SQLError) -> (any AttachedCatalog)?

    /// - Parameter fields: the source's columns, which the table must have with these types; empty while only these are asked for.
    /// - Throws: 22023, 0A000. Nothing is contacted yet.
    package init(options given: ConnectorOptions, fields: [Field], environment: Environment, catalogs: @escaping CatalogFinder) throws(SQLError) {
        let options = try IcebergSourceOptions(given)
        self.options = options
        let source: @Sendable () throws(SQLError) -> IcebergCatalog.Source
        switch options.catalog {
        case .rest(let rest):
            let made = IcebergCatalog.Source.rest(rest, environment)
            source = { made }
        case .attached(let name):
            source = { () throws(SQLError) in
                guard let found = try catalogs(name) as? IcebergCatalog else {
                    throw SQLError(
                        .invalidCatalogName, "catalog \"\(name)\" does not exist",
                        hint: "SHOW CATALOGS lists those that do; CREATE CATALOG attaches one. Or say where it is: catalog.uri.")
                }
                return found.source
            }
        }
        follower = TableFollower(options, source, fields: fields, clock: environment.clock)
        split = SourceSplit(name: "\(options.table)", topic: "\(options.table)", partition: 0)
    }

    package let isBounded = false
    package var status: String? { follower.status }
    package var incarnation: String? { follower.tableUUID }
    package func expect(incarnation: String) { follower.expect(tableUUID: incarnation) }

    package func columns() throws(SQLError) -> [Field]? {
        let head = try follower.refresh()
        do throws(IcebergError) { return try head.table.metadata.currentSchema.sqlFields } catch { throw error.remoteError(of: "table \"\(options.table)\"") }
    }

    package func resolveOrigin() throws(SQLError) -> [SourceSplit: SplitOffset] {
        let newest = try follower.refresh().lineage.first?.sequenceNumber ?? 0
        return [split: try TablePosition(newest, options.startsWhole ? .whole : .done).offset]
    }

    package func currentSplits() throws(SQLError) -> [SourceSplit] { [split] }

    package func highWatermarks(_ splits: [SourceSplit]) throws(SQLError) -> [SourceSplit: SplitOffset] {
        guard splits.contains(split) else { return [:] }
        let newest = try follower.refresh().lineage.first?.sequenceNumber ?? 0
        return [split: try TablePosition(newest, .done).offset]
    }

    package func recordCount(_ split: SourceSplit, from start: SplitOffset, to end: SplitOffset) -> Int64? {
        // An offset that is none is told by the reader.
        guard let start = try? TablePosition(start), let end = try? TablePosition(end) else { return nil }
        return follower.recordCount(from: start, to: end)
    }

    package func openReader(_ split: SourceSplit, at offset: SplitOffset, onData: @escaping @Sendable () -> Void) throws(SQLError) -> any SplitReader {
        try TableSplitReader(follower, split, at: offset, onData: onData)
    }
}
