import MillBase
import MillBinder
import MillCatalog
import MillColumnar
import MillConnectorKit
import MillIO
import MillPlan

/// Files that a query names by their path, without a source.
extension Engine {
    /// All rows of the files that the path stands for at this moment.
    func range(of relation: RelationReference, _ session: SessionContext) async throws(SQLError) -> QueryRun.SourceRange {
        guard let files = relation.files else { throw SQLError(.undefinedTable, "relation \"\(relation.name)\" does not exist") }
        let assembly = assembly
        let (made, origin, end) = try await offActor {
            () throws(SQLError) -> (AssembledSource, [SourceSplit: SplitOffset], [SourceSplit: SplitOffset]) in
            let made = try NamedFiles(assembly).source(files)
            let origin = try made.connector.resolveOrigin()
            return (made, origin, try made.connector.highWatermarks(Array(origin.keys)))
        }
        let definition = SourceDefinition(
            id: relation.id, name: files.path, connector: made.connector, makeDecoder: made.makeDecoder, origin: origin)
        return QueryRun.SourceRange(
            definition: definition, end: end, clock: environment.clock, patience: session.sourceTimeout, onRejects: { _, _ in })
    }
}

/// What `read_parquet`, `read_csv` and `read_json` read, by the connectors that sources have.
struct NamedFiles: FileColumns {
    private let assembly: any SourceAssembly

    init(_ assembly: any SourceAssembly) { self.assembly = assembly }

    func columns(of files: FileCall) throws(SQLError) -> [Field] { try columns(of: assembled(files, []).connector, files.path) }

    /// With all columns that the first file has.
    func source(_ files: FileCall) throws(SQLError) -> AssembledSource {
        let bare = try assembled(files, [])
        return try assembled(files, columns(of: bare.connector, files.path))
    }

    private func assembled(_ files: FileCall, _ fields: [Field]) throws(SQLError) -> AssembledSource {
        var options = [("connector", "file"), ("path", files.path), ("format", "plain"), ("encode", files.encode)]
        options += files.options.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        return try assembly.source(name: "file", options: options.map { CatalogOption($0.0, $0.1) }, fields: fields, catalogs: { _ in nil })
    }

    private func columns(of connector: any SourceConnector, _ path: String) throws(SQLError) -> [Field] {
        guard let fields = try connector.columns(), !fields.isEmpty else {
            throw SQLError(.undefinedObject, "no file matches \"\(path)\"")
        }
        return fields
    }
}
