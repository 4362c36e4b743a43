package import MillBase
package import MillColumnar
package import MillPlan
import MillSQL

/// The columns of files that a query names by their path.
package protocol FileColumns: Sendable {
    /// Those of the first file that the path or pattern stands for, and those in the paths. Blocks while it looks.
    /// - Throws: 42704 when there is none, 42501 when it may not be named, XX001 and 58030 for one that cannot be read.
    func columns(of files: FileCall) throws(SQLError) -> [Field]
}

/// `read_parquet('trips/*.parquet')`, `read_csv` and `read_json` in FROM: files as a relation, read once and whole.
extension Binder {
    /// By the function's name, the word behind ENCODE. DuckDB's other names for the same are understood.
    static let fileFunctions = [
        "read_parquet": "parquet", "parquet_scan": "parquet", "read_csv": "csv", "read_csv_auto": "csv", "read_json": "json",
        "read_json_auto": "json",
        "read_ndjson": "json",
    ]

    func bindFiles(_ function: TableFunction, encode: String) throws(SQLError) -> FromItem {
        let name = function.call.name.last.name
        let span = function.call.name.span.source
        if function.withOrdinality { throw unsupported("WITH ORDINALITY", at: function.span.source) }
        guard let argument = function.call.arguments.first, argument.name == nil, case .literal(.string(let path)) = argument.value.kind
        else {
            throw SQLError(
                .undefinedFunction, "\(name) takes the path of files as a text", hint: "Such as \(name)('trips/*.\(encode)').", at: span)
        }
        guard case .statement = context.purpose, let files = context.files else {
            throw unsupported(
                "\(name) here",
                hint:
                    "Make a source of the files: CREATE SOURCE name (*) WITH (connector = 'file', path = '...') FORMAT PLAIN ENCODE \(encode.uppercased()).",
                at: span)
        }
        try count(relations: 1, at: span)
        var call = FileCall(encode: encode, path: path)
        for option in function.call.arguments.dropFirst() { try add(option, to: &call, name) }
        let fields: [Field]
        do throws(SQLError) { fields = try files.columns(of: call) } catch { throw error.located(at: argument.value.span.source) }
        let relation = RelationReference(id: nextForeignID(), name: path, kind: .files, files: call)
        let plan = LogicalPlan.scan(LogicalScan(relation: relation, columns: Array(fields.indices), schema: fields))
        return try aliased(
            plan, names: fields.map(\.name), function.alias?.name, function.alias?.columns ?? [],
            defaultName: .init(name: name, schema: nil))
    }

    /// `delim => ';'`, or as DuckDB writes it `delim = ';'`.
    private func add(_ argument: FunctionCall.Argument, to call: inout FileCall, _ function: String) throws(SQLError) {
        let span = argument.value.span.source
        var option = argument.name?.name
        var value = argument.value
        if option == nil, case .binary(let left, let sign, let right) = value.kind, sign.symbol == "=", case .column(let name) = left.kind {
            (option, value) = (name.last.name, right)
        }
        let hint = call.encode == "csv" ? "Its options are: delimiter, header." : "\(function) has no options."
        let text: String? =
            switch value.kind {
            case .literal(.string(let text)): text
            case .literal(.boolean(let flag)): flag ? "true" : "false"
            default: nil
            }
        guard call.encode == "csv", let option, let text else {
            throw SQLError(.undefinedFunction, "\(function) takes a path and options by name", hint: hint, at: span)
        }
        switch option {
        case "delim", "sep", "delimiter": call.options["delimiter"] = text
        case "header":
            guard ["true", "false"].contains(text.lowercased()) else {
                throw SQLError(.invalidParameterValue, "option header of \(function) is true or false", at: span)
            }
            call.options["without_header"] = text.lowercased() == "true" ? "false" : "true"
        default: throw SQLError(.invalidParameterValue, "\(function) has no option \"\(option)\"", hint: hint, at: span)
        }
    }

    /// Of a relation that is not in the catalog: no object there has so high a number.
    func nextForeignID() -> ObjectID {
        foreignRelationCount += 1
        return ObjectID(.max - foreignRelationCount)
    }
}
