import MillColumnar
import MillExpr

/// `pg_type` and the functions.
extension SystemRelations {
    static let pgTypes: [SystemRelation] = [
        SystemRelation(
            "pg_type", id: 1247,
            """
            oid oid, typname name, typnamespace oid, typowner oid, typlen int2, typbyval bool, typtype char, typcategory char
            typispreferred bool, typisdefined bool, typdelim char, typrelid oid, typsubscript oid, typelem oid, typarray oid, typinput oid
            typoutput oid, typreceive oid, typsend oid, typmodin oid, typmodout oid, typanalyze oid, typalign char, typstorage char
            typnotnull bool, typbasetype oid, typtypmod int4, typndims int4, typcollation oid, typdefaultbin text, typdefault text, typacl text
            """
        ) { context in
            CatalogTypes.all.map { type in
                let isText = type.category == "S"
                return [
                    .oid(type.oid), .string(type.name), .oid(SystemOID.schema("pg_catalog", in: context.catalog)), .oid(SystemOID.owner),
                    .int(Int64(type.length)), .bool(type.isPassedByValue), .string(type.category == "P" ? "p" : "b"),
                    .string(type.category),
                    .bool(["bool", "text", "float8", "timestamptz", "interval", "oid"].contains(type.name)), .bool(true), .string(","),
                    .oid(0),
                    .oid(0), .oid(type.elementOID), .oid(type.arrayOID), .oid(0), .oid(0), .oid(0), .oid(0), .oid(0), .oid(0), .oid(0),
                    .string("i"), .string(type.length < 0 ? "x" : "p"), .bool(false), .oid(0), .int(-1), .int(0),
                    .oid(isText ? SystemOID.defaultCollation : 0), .null, .null, .null,
                ]
            }
        },
        SystemRelation(
            "pg_proc", id: 1255,
            """
            oid oid, proname name, pronamespace oid, proowner oid, prolang oid, procost float4, prorows float4, provariadic oid, prosupport oid
            prokind char, prosecdef bool, proleakproof bool, proisstrict bool, proretset bool, provolatile char, proparallel char
            pronargs int2, pronargdefaults int2, prorettype oid, proargtypes text, proallargtypes text, proargmodes text, proargnames text
            proargdefaults text, protrftypes text, prosrc text, probin text, proconfig text, proacl text
            """
        ) { context in
            SystemFunction.all.map { function in
                [
                    .oid(function.oid), .string(function.name), .oid(SystemOID.schema("pg_catalog", in: context.catalog)),
                    .oid(SystemOID.owner),
                    .oid(12), .float(1), .float(0), .oid(function.isVariadic ? 2276 : 0), .oid(0), .string(function.kind), .bool(false),
                    .bool(false),
                    .bool(true), .bool(false), .string("i"), .string("s"), .int(Int64(function.arguments.count)), .int(0),
                    .oid(function.result),
                    .string(function.arguments.map(String.init).joined(separator: " ")), .null, .null, .null, .null, .null,
                    .string(function.name),
                    .null, .null, .null,
                ]
            }
        },
        SystemRelation(
            "pg_language", id: 2612,
            """
            oid oid, lanname name, lanowner oid, lanispl bool, lanpltrusted bool, lanplcallfoid oid, laninline oid, lanvalidator oid
            lanacl text
            """
        ) { _ in
            [[.oid(12), .string("internal"), .oid(SystemOID.owner), .bool(false), .bool(false), .oid(0), .oid(0), .oid(0), .null]]
        },
    ]
}

/// A function of the registry as `pg_proc` shows it.
struct SystemFunction {
    let oid: Int32
    let name: String
    let kind: String
    let arguments: [Int32]
    let isVariadic: Bool
    let result: Int32

    /// Argument types as \df prints them.
    var argumentsText: String {
        arguments.enumerated().map { place, oid in
            (isVariadic && place == arguments.count - 1 ? "VARIADIC " : "") + CatalogTypes.format(oid, modifier: nil)
        }.joined(separator: ", ")
    }

    static let all: [SystemFunction] = {
        let anyType: Int32 = 2276
        var functions = FunctionRegistry.signatures.enumerated().map { place, signature in
            SystemFunction(
                oid: SystemOID.function(place), name: signature.name, kind: "f",
                arguments: signature.arguments.map { $0.map(CatalogTypes.oid) ?? anyType }, isVariadic: signature.isVariadic,
                result: CatalogTypes.oid(of: signature.result))
        }
        for function in AggregateFunction.allCases where function != .singleValue {
            functions.append(
                SystemFunction(
                    oid: SystemOID.function(functions.count), name: function.rawValue, kind: "a", arguments: [anyType], isVariadic: false,
                    result: anyType))
        }
        return functions
    }()
}
