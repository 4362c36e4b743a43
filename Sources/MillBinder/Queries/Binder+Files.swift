package import MillBase
package import MillColumnar
import MillPlan
import MillSQL

/// The columns of files that a query names by their path.
package protocol FileColumns: Sendable {
    /// Those of the first file that the path or pattern stands for. Blocks while it looks.
    /// - Throws: 42704 when there is none, XX001 and 58030 for one that cannot be read.
    func columns(ofParquet path: String) throws(SQLError) -> [Field]
}

/// `read_parquet('trips/*.parquet')` in FROM: files as a relation, read once and whole.
extension Binder {
    static let parquetFunction = "read_parquet"

    func bindParquetFiles(_ function: TableFunction) throws(SQLError) -> FromItem {
        let span = function.call.name.span.source
        if function.withOrdinality { throw unsupported("WITH ORDINALITY", at: function.span.source) }
        guard function.call.arguments.count == 1, let argument = function.call.arguments.first, argument.name == nil,
            case .literal(.string(let path)) = argument.value.kind
        else {
            throw SQLError(
                .undefinedFunction, "\(Self.parquetFunction) takes the path of files as a text", hint: "Such as read_parquet('trips/*.parquet').",
                at: span)
        }
        guard case .statement = context.purpose, let files = context.files else {
            throw unsupported(
                "\(Self.parquetFunction) here",
                hint: "Make a source of the files: CREATE SOURCE name (*) WITH (connector = 'file', path = '...') FORMAT PLAIN ENCODE PARQUET.", at: span)
        }
        try count(relations: 1, at: span)
        let fields: [Field]
        do throws(SQLError) { fields = try files.columns(ofParquet: path) } catch { throw error.located(at: argument.value.span.source) }
        let relation = RelationReference(id: nextForeignID(), name: path, kind: .files)
        let plan = LogicalPlan.scan(LogicalScan(relation: relation, columns: Array(fields.indices), schema: fields))
        return try aliased(
            plan, names: fields.map(\.name), function.alias?.name, function.alias?.columns ?? [],
            defaultName: .init(name: Self.parquetFunction, schema: nil))
    }

    /// Of a relation that is not in the catalog: no object there has so high a number.
    func nextForeignID() -> ObjectID {
        foreignRelationCount += 1
        return ObjectID(.max - foreignRelationCount)
    }
}
