import MillCatalog
import MillColumnar
import MillExpr

/// Primary keys as indexes and constraints, and the elements of their arrays.
extension SystemRelations {
    static let pgIndexes: [SystemRelation] = [
        SystemRelation(
            "pg_index", id: 2610,
            """
            indexrelid oid, indrelid oid, indnatts int2, indnkeyatts int2, indisunique bool, indisprimary bool, indisexclusion bool
            indimmediate bool, indisclustered bool, indisvalid bool, indcheckxmin bool, indisready bool, indislive bool, indisreplident bool
            indkey text, indcollation text, indclass text, indoption text, indexprs text, indpred text
            """
        ) { context in
            context.keyedTables.map { table in
                let count = Int64(table.primaryKey.count)
                let zeros = Scalar.string(table.primaryKey.map { _ in "0" }.joined(separator: " "))
                return [
                    .oid(SystemOID.index(table)), .oid(SystemOID.of(table)), .int(count), .int(count), .bool(true), .bool(true),
                    .bool(false), .bool(true),
                    .bool(false), .bool(true), .bool(false), .bool(true), .bool(true), .bool(false),
                    .string(table.primaryKeyNumbers.map(String.init).joined(separator: " ")), zeros, zeros, zeros, .null, .null,
                ]
            }
        },
        SystemRelation(
            "pg_constraint", id: 2606,
            """
            oid oid, conname name, connamespace oid, contype char, condeferrable bool, condeferred bool, convalidated bool, conrelid oid
            contypid oid, conindid oid, conparentid oid, confrelid oid, confupdtype char, confdeltype char, confmatchtype char
            conislocal bool, coninhcount int4, connoinherit bool, conkey text, confkey text, conpfeqop text, conppeqop text, conffeqop text
            conexclop text, conbin text
            """
        ) { context in
            context.keyedTables.map { table in
                [
                    .oid(SystemOID.constraint(table)), .string(table.primaryKeyName),
                    .oid(SystemOID.schema(table.schemaName, in: context.catalog)),
                    .string("p"), .bool(false), .bool(false), .bool(true), .oid(SystemOID.of(table)), .oid(0), .oid(SystemOID.index(table)),
                    .oid(0),
                    .oid(0), .string(" "), .string(" "), .string(" "), .bool(true), .int(0), .bool(true),
                    .string(ArrayText.text(table.primaryKeyNumbers.map(String.init))), .null, .null, .null, .null, .null, .null,
                ]
            }
        },
        // Every array and vector that stands in a column above, for unnest.
        SystemRelation("pg_array_elements", id: 12_950, "array text, position int8, element text") { context in
            var seen: Set<String> = []
            return context.keyedTables.flatMap { table -> [[Scalar]] in
                let numbers = table.primaryKeyNumbers.map(String.init)
                let zeros = numbers.map { _ in "0" }
                let arrays = [
                    (ArrayText.text(numbers), numbers), (numbers.joined(separator: " "), numbers), (zeros.joined(separator: " "), zeros),
                ]
                return arrays.filter { seen.insert($0.0).inserted }.flatMap { text, elements in
                    elements.enumerated().map { [.string(text), .int(Int64($0 + 1)), .string($1)] }
                }
            }
        },
    ]
}
