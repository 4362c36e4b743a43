import MillBase
import MillColumnar
import MillExpr
import Testing

struct FunctionRegistryTests {
    private func result(_ symbol: String, _ left: SQLType, _ right: SQLType) throws -> SQLType {
        try FunctionRegistry.resolveOperator(symbol, left: left, right: right).type
    }

    @Test func operatorsOnMixedNumbersGiveWhatPostgreSQLGives() throws {
        #expect(try result("+", .int32, .int32) == .int32)
        #expect(try result("+", .int32, .int64) == .int64)
        #expect(try result("*", .int16, .int32) == .int32)
        #expect(try result("+", .int32, .numeric(precision: 10, scale: 2)) == .numeric)
        #expect(try result("+", .int32, .float32) == .float64)
        #expect(try result("+", .float32, .float32) == .float32)
        #expect(try result("/", .numeric, .float64) == .float64)
        #expect(try result("%", .int16, .int64) == .int64)
        #expect(try result("^", .int32, .int32) == .float64)
    }

    @Test func anUnknownLiteralTakesTheOtherSidesType() throws {
        let equal = try FunctionRegistry.resolveOperator("=", left: .timestamptz, right: .unknown)
        #expect(equal.argumentTypes == [.timestamptz, .timestamptz])
        #expect(try FunctionRegistry.resolveOperator("+", left: .int32, right: .unknown).argumentTypes == [.int32, .int32])
        #expect(try FunctionRegistry.resolveOperator("=", left: .unknown, right: .unknown).argumentTypes == [.varchar, .varchar])
        #expect(try FunctionRegistry.resolveOperator("-", left: .timestamp, right: .unknown).type == .interval)
        #expect(try FunctionRegistry.resolveOperator("||", left: .unknown, right: .unknown).argumentTypes == [.varchar, .varchar])
        #expect(try FunctionRegistry.resolveOperator("||", left: .int32, right: .unknown).argumentTypes == [.int32, .varchar])
        #expect(try FunctionRegistry.resolveOperator("->", left: .jsonb, right: .unknown).argumentTypes == [.jsonb, .varchar])
    }

    @Test func datesAndIntervalsAdd() throws {
        #expect(try result("+", .date, .int32) == .date)
        #expect(try result("-", .date, .date) == .int32)
        #expect(try result("+", .date, .interval) == .timestamp)
        #expect(try result("-", .timestamptz, .interval) == .timestamptz)
        #expect(try result("*", .int32, .interval) == .interval)
        #expect(try result("/", .interval, .int32) == .interval)
        #expect(try result("<", .date, .timestamptz) == .boolean)
        #expect(try result("-", .timestamptz, .timestamp) == .interval)
    }

    @Test func functionsPreferExactThenPreferredTypes() throws {
        #expect(try FunctionRegistry.resolve(name: "round", arguments: [.int32]).type == .float64)
        #expect(try FunctionRegistry.resolve(name: "round", arguments: [.float64]).type == .float64)
        #expect(try FunctionRegistry.resolve(name: "round", arguments: [.numeric(precision: 9, scale: 1), .int32]).type == .numeric)
        #expect(try FunctionRegistry.resolve(name: "abs", arguments: [.unknown]).type == .float64)
        #expect(try FunctionRegistry.resolve(name: "date_trunc", arguments: [.unknown, .date]).type == .timestamptz)
        #expect(try FunctionRegistry.resolve(name: "concat", arguments: [.int32, .unknown, .boolean]).argumentTypes == [.int32, .varchar, .boolean])
        #expect(try FunctionRegistry.resolve(name: "greatest", arguments: [.int32, .int64, .unknown]).type == .int64)
        #expect(try FunctionRegistry.resolve(name: "now", arguments: []).function.volatility == .stable)
    }

    @Test func refusalsCarryPostgreSQLsCodesAndHints() {
        #expect { try FunctionRegistry.resolve(name: "no_such", arguments: [.int32]) } throws: { error in
            let error = error as? SQLError
            return error?.sqlState == .undefinedFunction && error?.message == "function no_such(integer) does not exist" && error?.hint != nil
        }
        #expect { try FunctionRegistry.resolveOperator("+", left: .varchar, right: .int32) } throws: { error in
            (error as? SQLError)?.message == "operator does not exist: character varying + integer"
        }
        #expect { try FunctionRegistry.resolveOperator("+", left: .unknown, right: .unknown) } throws: { error in
            (error as? SQLError)?.sqlState == .ambiguousFunction
        }
        #expect { try FunctionRegistry.resolveOperator("%", left: .float64, right: .int32) } throws: { error in
            (error as? SQLError)?.sqlState == .undefinedFunction
        }
    }

    @Test func aggregatesWidenAsPostgreSQL() throws {
        #expect(try FunctionRegistry.resolveAggregate("sum", arguments: [.int32]).type == .int64)
        #expect(try FunctionRegistry.resolveAggregate("sum", arguments: [.int64]).type == .numeric)
        #expect(try FunctionRegistry.resolveAggregate("avg", arguments: [.int32]).type == .numeric)
        #expect(try FunctionRegistry.resolveAggregate("avg", arguments: [.float32]).type == .float64)
        #expect(try FunctionRegistry.resolveAggregate("count", arguments: []).argumentType == nil)
        #expect(try FunctionRegistry.resolveAggregate("max", arguments: [.varchar]).type == .varchar)
        #expect(throws: SQLError.self) { try FunctionRegistry.resolveAggregate("sum", arguments: [.varchar]) }
        #expect(throws: SQLError.self) { try FunctionRegistry.resolveAggregate("sum", arguments: []) }
    }

    @Test func commonTypesFollowTheUnionRule() throws {
        #expect(try Coercion.common([.unknown, .unknown]) == .varchar)
        #expect(try Coercion.common([.int32, .unknown, .numeric(precision: 3, scale: 1)]) == .numeric)
        #expect(try Coercion.common([.numeric(precision: 3, scale: 1), .numeric(precision: 3, scale: 1)]) == .numeric(precision: 3, scale: 1))
        #expect(try Coercion.common([.int32, .float64, .int64]) == .float64)
        #expect(try Coercion.common([.date, .timestamptz, .timestamp]) == .timestamptz)
        #expect { try Coercion.common([.int32, .varchar], of: "UNION") } throws: { error in
            (error as? SQLError)?.message == "UNION types integer and character varying cannot be matched"
        }
    }

    @Test func typeNamesCoverTheirSpellings() {
        #expect(TypeNames.type(named: "character varying", modifiers: [20]) == .varchar)
        #expect(TypeNames.type(named: "string") == .varchar)
        #expect(TypeNames.type(named: "decimal", modifiers: [10, 2]) == .numeric(precision: 10, scale: 2))
        #expect(TypeNames.type(named: "numeric", modifiers: [5]) == .numeric(precision: 5, scale: 0))
        #expect(TypeNames.type(named: "numeric", modifiers: [50]) == nil)
        #expect(TypeNames.type(named: "timestamp with time zone", modifiers: [3]) == .timestamptz)
        #expect(TypeNames.type(named: "int", modifiers: [4]) == nil)
        #expect(TypeNames.type(named: "float", modifiers: [10]) == .float32)
        #expect(TypeNames.type(named: "blob") == nil)
    }
}
