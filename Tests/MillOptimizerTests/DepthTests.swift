#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif
import MillBase
import MillOptimizer
import MillPlan
import MillSQL
import Synchronization
import Testing

/// Statements as deep as the parser lets through, on the stack that a session's thread has.
@Suite struct DepthTests {
    /// Bytes of stack that binding and planning a statement of the parser's full height may need.
    #if DEBUG
        static let stackBytes = 8 << 20
    #else
        static let stackBytes = 2 << 20
    #endif

    private static func nested(_ open: String, _ close: String, _ core: String, _ depth: Int) -> String {
        String(repeating: open, count: depth) + core + String(repeating: close, count: depth)
    }

    /// Each a function of its depth or length.
    private static let shapes: [@Sendable (Int) -> String] = [
        { "SELECT " + nested("-(", ")", "a", $0) + " FROM t" },
        { "SELECT " + nested("coalesce(", ", 1)", "a", $0) + " FROM t" },
        { "SELECT " + nested("(", " + 1)", "a", $0) + " FROM t" },
        { "SELECT " + nested("case when a > 1 then ", " end", "a", $0) + " FROM t" },
        { "SELECT a FROM t WHERE " + nested("not (", ")", "a > 1", $0) },
        { "SELECT a FROM t WHERE " + nested("(", " between false and true)", "(a > 1)", $0) },
        { nested("SELECT a FROM (", ") q", "SELECT a FROM t", $0) },
        { nested("SELECT a FROM t WHERE a IN (", ")", "SELECT a FROM t", $0) },
        { nested("SELECT a FROM t WHERE a = (", ")", "SELECT max(a) FROM t", $0) },
        { nested("(", " UNION ALL SELECT a FROM t)", "SELECT a FROM t", $0) },
        { "SELECT 1 FROM t" + (0..<$0).map { " CROSS JOIN u u\($0)" }.joined() },
        { "SELECT a" + String(repeating: " + a", count: $0) + " FROM t" },
        { "SELECT a FROM t" + String(repeating: " UNION SELECT a FROM t", count: $0) },
        { "SELECT a FROM t" + String(repeating: " EXCEPT SELECT a FROM t", count: $0) },
        { "SELECT 1 FROM t" + (0..<$0).map { " JOIN t t\($0) ON t\($0).a = t.a" }.joined() },
    ]

    static let statements: [String] = {
        var statements: [String] = []
        for depth in [390, 250, 120, 60, 40, 20] {
            for shape in shapes { statements.append(shape(depth)) }
        }
        return statements
    }()

    @Test func theDeepestStatementsEndInAnAnswerOrAnError() {
        let outcomes = Mutex<[String]>([])
        onThread(stackBytes: Self.stackBytes) {
            for statement in Self.statements {
                do {
                    var world = PlanWorld()
                    _ = try world.run("CREATE TABLE t (a INT); CREATE TABLE u (b INT)")
                    _ = try world.run(statement)
                    outcomes.withLock { $0.append("planned") }
                } catch let error as SQLError {
                    outcomes.withLock { $0.append(error.sqlState.code) }
                } catch { outcomes.withLock { $0.append("other") } }
            }
        }
        let found = outcomes.withLock { $0 }
        #expect(found.count == Self.statements.count)
        #expect(Set(found).isSubset(of: ["planned", "54001", "42883"]), "\(Set(found))")
        #expect(found.contains("planned"))
    }

    /// WITH tables that name each other twice double with every step.
    @Test func aBombOfCommonTablesIsRefused() throws {
        let steps = (1...40).map { "w\($0) AS (SELECT x.a FROM w\($0 - 1) x, w\($0 - 1) y)" }.joined(separator: ", ")
        var world = PlanWorld()
        _ = try world.run("CREATE TABLE t (a INT)")
        #expect { _ = try world.run("WITH w0 AS (SELECT a FROM t), \(steps) SELECT * FROM w40") } throws: { error in
            (error as? SQLError)?.sqlState == .statementTooComplex
        }
    }

    /// Each level's predicate holds the one below twice.
    @Test func aConditionThatDoublesStaysWhereItIs() throws {
        var sql = "SELECT a > 1 AS p FROM t"
        for _ in 0..<24 { sql = "SELECT p = p AS p FROM (\(sql)) q" }
        var world = PlanWorld()
        _ = try world.run("CREATE TABLE t (a INT)")
        _ = try world.run("SELECT * FROM (\(sql)) q WHERE p")
    }

    private func onThread(stackBytes: Int, _ body: @escaping @Sendable () -> Void) {
        final class Box: Sendable {
            let body: @Sendable () -> Void
            init(_ body: @escaping @Sendable () -> Void) { self.body = body }
        }
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        pthread_attr_setstacksize(&attributes, stackBytes)
        var thread = pthread_t()
        let context = Unmanaged.passRetained(Box(body)).toOpaque()
        let status = pthread_create(&thread, &attributes, { context in
            if let context { Unmanaged<Box>.fromOpaque(context).takeRetainedValue().body() }
            return nil
        }, context)
        #expect(status == 0)
        pthread_join(thread, nil)
    }
}
