import MillBase
import MillBinder
import MillCatalog
import MillColumnar
import MillConnectorKit
import MillIO
import MillPlan

/// Files that a query names by their path, without a source.
extension Engine {
    /// All rows of the files that the path stands for now.
    func range(of relation: RelationReference, _ session: SessionContext) async throws(SQLError) -> QueryRun.SourceRange {
        let (assembly, path) = (assembly, relation.name)
        let (made, origin, end) = try await offActor {
            () throws(SQLError) -> (AssembledSource, [SourceSplit: SplitOffset], [SourceSplit: SplitOffset]) in
            let made = try ParquetFiles(assembly).source(path)
            let origin = try made.connector.resolveOrigin()
            return (made, origin, try made.connector.highWatermarks(Array(origin.keys)))
        }
        let definition = SourceDefinition(
            id: relation.id, name: path, connector: made.connector, makeDecoder: made.makeDecoder, origin: origin)
        return QueryRun.SourceRange(
            definition: definition, end: end, clock: environment.clock, patience: session.sourceTimeout, onRejects: { _, _ in })
    }
}

/// What `read_parquet` reads, by the connectors that sources have.
struct ParquetFiles: FileColumns {
    private let assembly: any SourceAssembly

    init(_ assembly: any SourceAssembly) { self.assembly = assembly }

    func columns(ofParquet path: String) throws(SQLError) -> [Field] { try columns(of: assembled(path, []).connector, path) }

    /// With all columns that the first file has.
    func source(_ path: String) throws(SQLError) -> AssembledSource {
        let bare = try assembled(path, [])
        return try assembled(path, columns(of: bare.connector, path))
    }

    private func assembled(_ path: String, _ fields: [Field]) throws(SQLError) -> AssembledSource {
        let options = [("connector", "file"), ("path", path), ("format", "plain"), ("encode", "parquet")]
        return try assembly.source(name: "file", options: options.map { CatalogOption($0.0, $0.1) }, fields: fields)
    }

    private func columns(of connector: any SourceConnector, _ path: String) throws(SQLError) -> [Field] {
        guard let fields = try connector.columns(), !fields.isEmpty else {
            throw SQLError(.undefinedObject, "no file matches \"\(path)\"")
        }
        return fields
    }
}
