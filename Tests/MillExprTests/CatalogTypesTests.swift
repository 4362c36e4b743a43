import MillBase
import MillColumnar
import MillExpr
import Testing

struct CatalogTypesTests {
    @Test func everyEngineTypeHasAType() {
        let types: [SQLType] = [
            .boolean, .int16, .int32, .int64, .float32, .float64, .numeric, .varchar, .bytea, .date, .time, .timestamp, .timestamptz, .interval,
            .jsonb,
        ]
        for type in types { #expect(CatalogTypes.type(CatalogTypes.oid(of: type))?.displayName == type.name) }
    }

    @Test func typesAreFoundByAnyOfTheirNames() {
        let names: [(String, Int32)] = [
            ("int4", 23), ("integer", 23), ("INT", 23), ("pg_catalog.int4", 23), ("int4[]", 1007), ("_int4", 1007), ("numeric(10,2)", 1700),
            ("timestamp(3) with time zone", 1184), ("double  precision", 701), ("string", 1043),
        ]
        for (name, oid) in names { #expect(CatalogTypes.type(named: name)?.oid == oid, "\(name)") }
        #expect(CatalogTypes.type(named: "geometry") == nil)
        #expect(CatalogTypes.type(named: "") == nil)
    }

    @Test func modifiersAreShown() {
        let type = SQLType.numeric(precision: 10, scale: 2)
        #expect(CatalogTypes.format(1700, modifier: CatalogTypes.modifier(of: type)) == "numeric(10,2)")
        #expect(CatalogTypes.format(1043, modifier: 14) == "character varying(10)")
        #expect(CatalogTypes.format(23, modifier: .min) == "integer")
        #expect(CatalogTypes.format(-5, modifier: nil) == "???")
    }
}

struct ArrayTextTests {
    @Test func arraysAreReadAndWritten() throws {
        let arrays: [(String, [String?])] = [
            ("{}", []), ("{a,b}", ["a", "b"]), ("{NULL,\"NULL\"}", [nil, "NULL"]), ("{\"a,b\",\"c\\\"d\",\"\"}", ["a,b", "c\"d", ""]),
        ]
        for (text, elements) in arrays {
            #expect(try ArrayText.elements(text) == elements)
            #expect(ArrayText.text(elements) == text)
        }
        #expect(try ArrayText.elements(" { a , \"b c\" } ") == ["a", "b c"])
        #expect(try ArrayText.elements("1 2") == ["1", "2"])
    }

    @Test(arguments: ["{", "}", "a", "{a", "{a,}", "{,}", "{{a}}", "{\"a}", "{a\\}"])
    func otherTextsAreRefused(_ text: String) {
        #expect(throws: SQLError.self) { try ArrayText.elements(text) }
    }
}
