import MillBase
import MillBinder
import MillCatalog
import MillColumnar
import MillExpr
import MillSQL
import Synchronization

/// The catalog functions over one state of the catalog: see `CatalogFunctions` for why they are settled while binding.
///
/// Made for each binding. A call becomes a literal where its argument is constant and else a CASE over the numbers or names
/// that the catalog has; what is not there gives NULL or the function's own word for it. Lists are made when a call asks for
/// them, so that other statements pay nothing.
final class CatalogLookup: CatalogFunctions {
    let context: SystemContext
    /// What `set_config` asked for, to be done when the statement runs.
    private let changes = Mutex<[(name: String, value: String)]>([])

    init(_ context: SystemContext) { self.context = context }

    var settingChanges: [(name: String, value: String)] { changes.withLock { $0 } }

    func contains(_ name: String) -> Bool {
        CatalogLookup.fixed[name] != nil || CatalogLookup.byIdentifier.contains(name) || CatalogLookup.others.contains(name)
    }

    func call(_ name: String, _ arguments: [BoundExpression]) throws(SQLError) -> BoundExpression {
        if let answer = CatalogLookup.fixed[name] { return .literal(answer.value, answer.type) }
        if CatalogLookup.byIdentifier.contains(name) { return try described(name, arguments) }
        return try other(name, arguments)
    }

    // MARK: Answers that never differ

    private static let null = (value: Scalar.null, type: SQLType.varchar)
    private static let yes = (value: Scalar.boolean(true), type: SQLType.boolean)
    private static let no = (value: Scalar.boolean(false), type: SQLType.boolean)
    /// Sizes are not kept.
    private static let unknownSize = (value: Scalar.null, type: SQLType.int64)

    /// Functions whose answer is one for all arguments: there is one role, which may do everything, and no comments, triggers
    /// or functions of users.
    private static let fixed: [String: (value: Scalar, type: SQLType)] = [
        "pg_type_is_visible": yes, "pg_function_is_visible": yes, "pg_operator_is_visible": yes, "pg_opclass_is_visible": yes,
        "pg_opfamily_is_visible": yes, "pg_collation_is_visible": yes, "pg_conversion_is_visible": yes, "pg_statistics_obj_is_visible": yes,
        "pg_ts_config_is_visible": yes, "pg_ts_dict_is_visible": yes, "pg_ts_parser_is_visible": yes, "pg_ts_template_is_visible": yes,
        "has_table_privilege": yes, "has_schema_privilege": yes, "has_database_privilege": yes, "has_column_privilege": yes,
        "has_any_column_privilege": yes, "has_function_privilege": yes, "has_sequence_privilege": yes, "has_type_privilege": yes,
        "has_language_privilege": yes, "has_tablespace_privilege": yes, "has_foreign_data_wrapper_privilege": yes,
        "has_server_privilege": yes,
        "pg_has_role": yes, "pg_relation_is_publishable": no, "pg_is_in_recovery": no, "pg_is_other_temp_schema": no,
        "row_security_active": no,
        "pg_my_temp_schema": (.int(0), .int32), "obj_description": null, "col_description": null, "shobj_description": null,
        "pg_get_triggerdef": null, "pg_get_functiondef": null, "pg_get_statisticsobjdef": null, "pg_get_statisticsobjdef_columns": null,
        "pg_get_partkeydef": null, "pg_get_partition_constraintdef": null, "pg_get_serial_sequence": null, "pg_tablespace_location": null,
        "pg_get_function_sqlbody": null, "inet_client_addr": null, "inet_server_addr": null, "inet_client_port": (.null, .int32),
        "inet_server_port": (.null, .int32), "pg_table_size": unknownSize, "pg_relation_size": unknownSize,
        "pg_total_relation_size": unknownSize,
        "pg_indexes_size": unknownSize, "pg_database_size": unknownSize, "pg_tablespace_size": unknownSize,
        "pg_char_to_encoding": (.int(6), .int32), "pg_client_encoding": (.string("UTF8"), .varchar),
        "getdatabaseencoding": (.string("UTF8"), .varchar),
    ]

    // MARK: Answers by number

    private static let byIdentifier: Set<String> = [
        "pg_get_userbyid", "pg_get_viewdef", "pg_get_indexdef", "pg_get_constraintdef", "pg_get_ruledef", "pg_get_function_result",
        "pg_get_function_arguments", "pg_get_function_identity_arguments", "pg_table_is_visible",
    ]

    private func described(_ name: String, _ arguments: [BoundExpression]) throws(SQLError) -> BoundExpression {
        guard let first = arguments.first else { throw undefined(name, arguments) }
        if name == "pg_get_viewdef", first.type == .varchar {
            return try described(name, [try identifier(of: first, .regclass)] + arguments.dropFirst())
        }
        let key = try integer(first, name, arguments)
        switch name {
        case "pg_get_userbyid":
            let unknown = try call("concat", .literal(.string("unknown (OID="), .varchar), key, .literal(.string(")"), .varchar))
            return try chosen(key, [(SystemOID.owner, context.userName)], otherwise: unknown)
        case "pg_get_viewdef":
            return try chosen(key, context.userObjects.compactMap { object in object.queryText.map { (SystemOID.of(object), $0) } })
        case "pg_get_ruledef":
            return try chosen(
                key,
                context.userObjects.compactMap { object in
                    guard let text = object.queryText else { return nil }
                    let rule = Int32(truncatingIfNeeded: object.id.number | SystemOID.constraintBit)
                    return (rule, "CREATE RULE \"_RETURN\" AS\n    ON SELECT TO \(regclass(object)) DO INSTEAD \(text)")
                })
        case "pg_get_indexdef": return try indexDefinition(key, arguments)
        case "pg_get_constraintdef": return try chosen(key, context.keyedTables.map { (SystemOID.constraint($0), $0.constraintText) })
        case "pg_get_function_result":
            return try chosen(key, SystemFunction.all.map { ($0.oid, CatalogTypes.format($0.result, modifier: nil)) })
        case "pg_table_is_visible":
            let visible = context.relations.filter { Catalog.searchPath.contains($0.schemaName) }.map { Scalar.oid(SystemOID.of($0)) }
            let indexes = context.keyedTables.filter { Catalog.searchPath.contains($0.schemaName) }.map { Scalar.oid(SystemOID.index($0)) }
            return .inList(key, visible + indexes, negated: false)
        default: return try chosen(key, SystemFunction.all.map { ($0.oid, $0.argumentsText) })
        }
    }

    /// With a column number other than 0, that column's name alone.
    private func indexDefinition(_ key: BoundExpression, _ arguments: [BoundExpression]) throws(SQLError) -> BoundExpression {
        let whole = try chosen(key, context.keyedTables.map { (SystemOID.index($0), $0.indexText) })
        guard arguments.count > 1 else { return whole }
        let column = try integer(arguments[1], "pg_get_indexdef", arguments)
        if case .literal(.int(0), _) = column { return whole }
        var branches = [BoundExpression.CaseBranch(try equal(column, .literal(.int(0), .int32)), whole)]
        let widest = context.keyedTables.map(\.primaryKey.count).max() ?? 0
        for place in 0..<widest {
            let names = context.keyedTables.filter { $0.primaryKey.count > place }.map { table in
                (SystemOID.index(table), SQLPrinter.quoted(table.columns[table.primaryKey[place]].name))
            }
            branches.append(.init(try equal(column, .literal(.int(Int64(place + 1)), .int32)), try chosen(key, names)))
        }
        return .caseWhen(branches, otherwise: .literal(.null, .varchar), .varchar)
    }

    // MARK: The others

    private static let others: Set<String> = [
        "pg_get_expr", "pg_backend_pid", "current_schemas", "current_setting", "set_config", "to_regclass", "to_regtype", "to_regnamespace",
        "to_regproc", "to_regrole",
    ]

    private func other(_ name: String, _ arguments: [BoundExpression]) throws(SQLError) -> BoundExpression {
        switch (name, arguments.count) {
        // What the catalog keeps of an expression is its text.
        case ("pg_get_expr", 2...3): return try text(arguments[0], name, arguments)
        case ("pg_backend_pid", 0): return .literal(.oid(context.backendID), .int32)
        case ("current_schemas", 1):
            let path = BoundExpression.literal(.string("{pg_catalog,public}"), .varchar)
            let condition = try coerced(arguments[0], .boolean, name, arguments)
            if case .literal(.boolean(true), _) = condition { return path }
            return .caseWhen([.init(condition, path)], otherwise: .literal(.string("{public}"), .varchar), .varchar)
        case ("current_setting", 1...2): return try currentSetting(arguments)
        case ("set_config", 3): return try setConfig(arguments)
        case ("to_regclass", 1): return try found(arguments[0], .regclass, isRequired: false)
        case ("to_regtype", 1): return try found(arguments[0], .regtype, isRequired: false)
        case ("to_regnamespace", 1): return try found(arguments[0], .regnamespace, isRequired: false)
        case ("to_regproc", 1): return try found(arguments[0], .regproc, isRequired: false)
        case ("to_regrole", 1): return try found(arguments[0], .regrole, isRequired: false)
        default: throw undefined(name, arguments)
        }
    }

    private func currentSetting(_ arguments: [BoundExpression]) throws(SQLError) -> BoundExpression {
        let name = try text(arguments[0], "current_setting", arguments)
        guard case .literal(let value, _) = name else {
            return try chosen(
                try call("lower", name), context.settings.all.map { (.string($0.name), .string($0.value)) }, type: .varchar, otherwise: nil)
        }
        guard case .string(let wanted) = value else { return .literal(.null, .varchar) }
        if let setting = context.settings[wanted.lowercased()] { return .literal(.string(setting), .varchar) }
        if arguments.count == 2, case .literal(.boolean(true), _) = arguments[1] { return .literal(.null, .varchar) }
        throw SQLError(.undefinedObject, "unrecognized configuration parameter \"\(wanted)\"")
    }

    private func setConfig(_ arguments: [BoundExpression]) throws(SQLError) -> BoundExpression {
        let name = try text(arguments[0], "set_config", arguments)
        let value = try text(arguments[1], "set_config", arguments)
        if case .literal(.string(let name), _) = name, case .literal(.string(let value), _) = value {
            changes.withLock { $0.append((name.lowercased(), value)) }
        } else if case .parameter = name {
        } else if case .parameter = value {
        } else {
            throw SQLError(.featureNotSupported, "set_config of a computed name or value is not supported", hint: "Use SET.")
        }
        return value
    }

    // MARK: Pieces

    func integer(_ argument: BoundExpression, _ name: String, _ all: [BoundExpression]) throws(SQLError) -> BoundExpression {
        try coerced(argument, .int32, name, all)
    }

    func text(_ argument: BoundExpression, _ name: String, _ all: [BoundExpression]) throws(SQLError) -> BoundExpression {
        try coerced(argument, .varchar, name, all)
    }

    /// A bare literal or parameter takes the type; a bigint may stand for a number too.
    private func coerced(
        _ argument: BoundExpression, _ type: SQLType, _ name: String, _ all: [BoundExpression]
    ) throws(SQLError) -> BoundExpression {
        guard argument.type.isInteger == type.isInteger || argument.type == .unknown, Coercion.explicit(from: argument.type, to: type)
        else {
            throw undefined(name, all)
        }
        if case .parameter(let number, .unknown) = argument { return .parameter(number, type) }
        return try Coercion.coerce(argument, to: type, .explicit).folded()
    }

    func undefined(_ name: String, _ arguments: [BoundExpression]) -> SQLError {
        SQLError(
            .undefinedFunction, "function \(name)(\(arguments.map(\.type.name).joined(separator: ", "))) does not exist",
            hint: "No function matches the given name and argument types. You might need to add explicit type casts.")
    }

    func call(_ name: String, _ arguments: BoundExpression...) throws(SQLError) -> BoundExpression {
        try FunctionRegistry.resolve(name: name, arguments: arguments.map(\.type)).call(arguments)
    }

    func equal(_ left: BoundExpression, _ right: BoundExpression) throws(SQLError) -> BoundExpression {
        try FunctionRegistry.resolveOperator("=", left: left.type, right: right.type).call([left, right])
    }

    private func chosen(
        _ key: BoundExpression, _ answers: [(Int32, String)], otherwise: BoundExpression? = nil
    ) throws(SQLError) -> BoundExpression {
        try chosen(key, answers.map { (.oid($0), .string($1)) }, type: .varchar, otherwise: otherwise)
    }

    /// The answer for the key: at once where it is a literal.
    func chosen(
        _ key: BoundExpression, _ answers: [(Scalar, Scalar)], type: SQLType, otherwise: BoundExpression?
    ) throws(SQLError) -> BoundExpression {
        let missing = otherwise ?? .literal(.null, type)
        if case .literal(let value, _) = key {
            if value.isNull { return .literal(.null, type) }
            return answers.first { $0.0 == value }.map { .literal($0.1, type) } ?? missing
        }
        var branches: [BoundExpression.CaseBranch] = []
        if otherwise != nil { branches.append(.init(.isNull(key), .literal(.null, type))) }
        for (value, answer) in answers { branches.append(.init(try equal(key, .literal(value, key.type)), .literal(answer, type))) }
        return branches.isEmpty ? missing : .caseWhen(branches, otherwise: missing, type)
    }
}
