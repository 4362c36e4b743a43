import MillBase
import MillBinder
import MillCatalog
import MillColumnar
import MillExpr
import MillSQL

/// `regclass` and its kin: names to numbers and back.
extension CatalogLookup {
    func identifier(of name: BoundExpression, _ kind: RegisteredName) throws(SQLError) -> BoundExpression {
        try found(name, kind, isRequired: true)
    }

    /// A name that means nothing is NULL, or with `isRequired` an error. Digits are the number itself.
    func found(_ name: BoundExpression, _ kind: RegisteredName, isRequired: Bool) throws(SQLError) -> BoundExpression {
        let name = try text(name, "to_\(kind.rawValue)", [name])
        guard case .literal(let value, _) = name else {
            // Names of a column are compared as they are shown; casting what is none of them to a number is the error.
            let otherwise = isRequired ? try Coercion.coerce(name, to: .int32, .explicit) : nil
            return try chosen(name, names(kind).map { (.string($0.name), .oid($0.oid)) }, type: .int32, otherwise: otherwise)
        }
        guard case .string(let text) = value else { return .literal(.null, .int32) }
        if text == "-" { return .literal(.int(0), .int32) }
        if let number = Int32(text), number >= 0 { return .literal(.oid(number), .int32) }
        if let oid = try oid(of: text, kind) { return .literal(.oid(oid), .int32) }
        guard isRequired else { return .literal(.null, .int32) }
        switch kind {
        case .regclass: throw SQLError(.undefinedTable, "relation \"\(text)\" does not exist")
        case .regtype: throw SQLError(.undefinedObject, "type \"\(text)\" does not exist")
        case .regnamespace: throw SQLError(.invalidSchemaName, "schema \"\(text)\" does not exist")
        case .regproc: throw SQLError(.undefinedFunction, "function \"\(text)\" does not exist")
        case .regrole: throw SQLError(.undefinedObject, "role \"\(text)\" does not exist")
        }
    }

    func name(of identifier: BoundExpression, _ kind: RegisteredName) throws(SQLError) -> BoundExpression {
        let number = try Coercion.coerce(identifier, to: .varchar, .explicit)
        if kind == .regtype { return try call("format_type", identifier, .literal(.null, .int32)) }
        return try chosen(
            identifier, [(.int(0), .string("-"))] + names(kind).map { (.oid($0.oid), .string($0.name)) }, type: .varchar, otherwise: number)
    }

    /// A relation as `regclass` shows it: with its schema where the search path does not reach.
    func regclass(_ object: CatalogObject, name: String? = nil) -> String {
        let own = SQLPrinter.quoted(name ?? object.name)
        return Catalog.searchPath.contains(object.schemaName) ? own : "\(SQLPrinter.quoted(object.schemaName)).\(own)"
    }

    private func names(_ kind: RegisteredName) -> [(oid: Int32, name: String)] {
        switch kind {
        case .regclass:
            context.relations.map { (SystemOID.of($0), regclass($0)) }
                + context.keyedTables.map { (SystemOID.index($0), regclass($0, name: $0.primaryKeyName)) }
        case .regtype: CatalogTypes.all.map { ($0.oid, $0.displayName) }
        case .regnamespace: context.catalog.schemas.map { (SystemOID.schema($0, in: context.catalog), SQLPrinter.quoted($0)) }
        case .regproc: SystemFunction.all.map { ($0.oid, SQLPrinter.quoted($0.name)) }
        case .regrole: [(SystemOID.owner, SQLPrinter.quoted(context.userName))]
        }
    }

    private func oid(of text: String, _ kind: RegisteredName) throws(SQLError) -> Int32? {
        if kind == .regtype { return CatalogTypes.type(named: text)?.oid }
        // A name as a statement has it: dots, quotes, folding.
        guard let expression = try? Parser.parseExpression(text), case .column(let name) = expression.kind else { return nil }
        let own = name.last.name
        let schema = name.parts.count > 1 ? name.parts[name.parts.count - 2].name : nil
        switch kind {
        case .regclass:
            if let object = EngineCatalog(catalog: context.catalog).object(schema: schema, name: own) { return SystemOID.of(object) }
            return context.keyedTables.first { $0.primaryKeyName == own && (schema ?? $0.schemaName) == $0.schemaName }.map(SystemOID.index)
        case .regnamespace: return context.catalog.schemaExists(own) ? SystemOID.schema(own, in: context.catalog) : nil
        case .regproc: return SystemFunction.all.first { $0.name == own }?.oid
        case .regrole: return own == context.userName ? SystemOID.owner : nil
        case .regtype: return nil
        }
    }
}
