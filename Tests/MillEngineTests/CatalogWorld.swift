import MillBase
import MillCatalog
import MillColumnar
import MillConnectorKit
import MillConnectors
import MillIO
import MillSQL
@testable import MillEngine

/// An engine with a small catalog, and a session to ask it: a table with a primary key and a default, a source, a materialized
/// view, a view.
struct CatalogWorld {
    let engine: Engine
    let session: Session

    init() async throws {
        engine = try Engine(environment: .system, assembly: EmptySources())
        session = Session(engine: engine, userName: "root", databaseName: "dev")
        try await run("CREATE TABLE orders (id int PRIMARY KEY, name varchar DEFAULT 'none', amount numeric(10,2))")
        try await run("CREATE SOURCE clicks (url varchar, at timestamptz) WITH (connector = 'nothing') FORMAT PLAIN ENCODE JSON")
        try await run("CREATE MATERIALIZED VIEW mv AS SELECT name, sum(amount) AS total FROM orders GROUP BY name")
        try await run("CREATE VIEW vv AS SELECT id, name FROM orders WHERE id > 1")
    }

    /// Rows as text, `|` between the columns and nothing for NULL.
    @discardableResult
    func run(_ text: String, _ parameters: [Scalar] = []) async throws(SQLError) -> [String] {
        var rows: [String] = []
        for statement in try Session.parse(text) {
            rows = []
            let prepared = try await session.prepare(statement, parameterTypes: [])
            switch try await session.execute(prepared, parameters: parameters) {
            case .done: break
            case .rows(let channel, _):
                while let batch = try await channel.next() { rows += Self.text(batch) }
            case .table(let batches, _): rows = batches.flatMap(Self.text)
            }
            try await session.settle()
        }
        return rows
    }

    private static func text(_ batch: DeltaBatch) -> [String] {
        (0..<batch.count).map { row in batch.columns.map { $0.text(row) ?? "" }.joined(separator: "|") }
    }

    func oid(_ name: String) async throws(SQLError) -> String { try await run("SELECT '\(name)'::regclass::oid")[0] }
}

/// Sources without splits.
private struct EmptySources: SourceAssembly, SourceConnector {
    let isBounded = true

    func source(
        name: String, options: [CatalogOption], fields: [Field], catalogs: @escaping IcebergSource.CatalogFinder
    ) throws(SQLError) -> AssembledSource {
        AssembledSource(
            connector: self, makeDecoder: { (_) throws(SQLError) in throw SQLError(.internalError, "there is nothing to decode") })
    }

    func resolveOrigin() throws(SQLError) -> [SourceSplit: SplitOffset] { [:] }
    func currentSplits() throws(SQLError) -> [SourceSplit] { [] }
    func highWatermarks(_ splits: [SourceSplit]) throws(SQLError) -> [SourceSplit: SplitOffset] { [:] }
    func openReader(_ split: SourceSplit, at offset: SplitOffset, onData: @escaping @Sendable () -> Void) throws(SQLError)
        -> any SplitReader
    {
        throw SQLError(.internalError, "there is nothing to read")
    }
}
