import MillBase
import MillColumnar
import MillConnectors
import MillIO
import MillObjectStore
import Testing

/// Sources over files and objects of any format, and queries that name such files themselves.
@Suite(.timeLimit(.minutes(5))) struct FileSourceTests {
    private func withWorld(access: FileAccess? = nil, discovery: UInt64 = 1_000_000_000, _ body: (EngineWorld) async throws -> Void)
        async throws
    {
        let world = try await EngineWorld(splitDiscoveryNanos: discovery, access: access)
        do { try await body(world) } catch {
            await world.stop()
            throw error
        }
        await world.stop()
    }

    private func error(of statement: String, in world: EngineWorld) async -> SQLError? {
        do throws(SQLError) { try await world.run(statement) } catch { return error }
        return nil
    }

    private func put(_ text: String, at location: String, in store: MemoryObjectStore) throws {
        try store.put(location, Array(text.utf8), .always)
    }

    @Test func aSourceOfCSVReadsColumnsByTheirNames() async throws {
        try await withWorld { world in
            try world.write("\u{FEFF}name,id\r\nann,1\r\n\"bob, jr\",2\r\n,3\r\nbad,x\r\nshort\r\n", to: "in/a.csv")
            try world.write("id,name,extra\n4,\"two\nlines\",z\n", to: "in/b.csv")
            try world.write("id,name\n", to: "in/c.csv")
            try world.write("", to: "in/d.csv")
            try await world.run(
                """
                CREATE SOURCE s (id bigint, name varchar) WITH (connector = 'file', path = 'in/*.csv')
                FORMAT PLAIN ENCODE CSV (without_header = 'false', delimiter = ',');
                CREATE MATERIALIZED VIEW v AS SELECT id, name FROM s; FLUSH
                """)
            let expected: [[String?]] = [["1", "ann"], ["2", "bob, jr"], ["3", nil], ["4", "two\nlines"], [nil, "bad"]]
            #expect(try await world.run("SELECT * FROM v ORDER BY id").last?.rows == expected)
            let rejects = try await world.run("SELECT \"offset\", column_name FROM s_rejects ORDER BY 1").last?.rows
            #expect(rejects == [["36", "id"], ["43", nil]])
        }
    }

    @Test func aSourceOfCSVWithoutHeaderAndTypesThatTheFilesTell() async throws {
        try await withWorld { world in
            try world.write("1;2.5;2026-01-31;007\n-2;3;2026-02-01;008\n", to: "n.csv")
            try await world.run(
                """
                CREATE SOURCE s (*) WITH (connector = 'file', path = 'n.csv') FORMAT PLAIN ENCODE CSV (without_header = 'true', delimiter = ';')
                """)
            let answer = try await world.run("SELECT * FROM s ORDER BY 1").last
            #expect(
                answer?.schema == [
                    Field("column0", .int64), Field("column1", .float64), Field("column2", .date), Field("column3", .varchar),
                ])
            #expect(answer?.rows == [["-2", "3", "2026-02-01", "008"], ["1", "2.5", "2026-01-31", "007"]])
        }
    }

    @Test func queriesNameFilesOfCSVAndJSON() async throws {
        try await withWorld { world in
            try world.write("id,at\n1,2026-01-31 12:00:00\n2,\n", to: "a.csv")
            try world.write("1|x\n", to: "b.csv")
            try world.write(
                #"{"zeta": 1, "a": {"b": 2}, "n": 1.5, "d": "2026-01-31"}"# + "\n" + #"{"a": null, "zeta": 2, "t": "x"}"#, to: "c.jsonl")
            let csv = try await world.run("SELECT * FROM read_csv('a.csv') ORDER BY id").last
            #expect(csv?.schema == [Field("id", .int64), Field("at", .timestamp)])
            #expect(csv?.rows == [["1", "2026-01-31 12:00:00"], ["2", nil]])
            #expect(try await world.run("SELECT column1 FROM read_csv('b.csv', header = false, delim = '|')").last?.rows == [["x"]])
            #expect(try await world.run("SELECT column0 FROM read_csv('b.csv', header => false, delimiter => '|')").last?.rows == [["1"]])
            let json = try await world.run("SELECT * FROM read_json('c.jsonl') ORDER BY zeta").last
            let schema = [Field("zeta", .int64), Field("a", .jsonb), Field("n", .float64), Field("d", .date), Field("t", .varchar)]
            #expect(json?.schema == schema)
            #expect(json?.rows == [["1", #"{"b": 2}"#, "1.5", "2026-01-31", nil], ["2", nil, nil, nil, "x"]])
            #expect(
                await error(of: "SELECT * FROM read_csv('a.csv', quotes = 'x')", in: world)?.message == "read_csv has no option \"quotes\"")
        }
    }

    @Test func columnsInPathsAreReadBack() async throws {
        try await withWorld { world in
            try world.write("{\"a\": 1}\n{\"a\": 2}\n", to: "t/day=2026-01-31/city=New%2FYork/x.jsonl")
            try world.write("{\"a\": 3}\n", to: "t/day=__HIVE_DEFAULT_PARTITION__/city=b/y.jsonl")
            try world.write("{\"a\": 9}\n", to: "t/_log/z.jsonl")
            let rows: [[String?]] = [["1", "2026-01-31", "New/York"], ["2", "2026-01-31", "New/York"], ["3", nil, "b"]]
            for path in ["t", "t/**/*.jsonl", "t/*/*/*.jsonl"] {
                let answer = try await world.run("SELECT * FROM read_json('\(path)') ORDER BY a").last
                #expect(answer?.schema == [Field("a", .int64), Field("day", .date), Field("city", .varchar)])
                #expect(answer?.rows == rows)
            }
            try await world.run("CREATE SOURCE s (city varchar, a int) WITH (connector = 'file', path = 't')")
            #expect(
                try await world.run("SELECT city, sum(a) FROM s GROUP BY 1 ORDER BY 1").last?.rows == [["New/York", "3"], ["b", "3"]])
            #expect(try await world.run("SELECT count(*), max(city) FROM s").last?.rows == [["3", "b"]])
            try await world.run("CREATE SOURCE wrong (day int, a int) WITH (connector = 'file', path = 't')")
            #expect(await error(of: "SELECT * FROM wrong", in: world)?.message.contains("for column \"day\", which is integer") == true)
        }
    }

    @Test func objectsInS3AreReadAndThoseThatComeLater() async throws {
        let store = MemoryObjectStore()
        try put("{\"a\": 1}\n{\"a\": 2}\n", at: "s3://lake/in/1.jsonl", in: store)
        try put("{\"a\": 100}\n", at: "s3://lake/in/other.txt", in: store)
        try await withWorld(access: FileAccess { _ in store }) { world in
            try await world.run(
                """
                CREATE SOURCE s (a int) WITH (connector = 's3', s3.bucket_name = 'lake', match_pattern = 'in/*.jsonl', s3.region_name = 'x')
                FORMAT PLAIN ENCODE JSON;
                CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS total FROM s; FLUSH
                """)
            #expect(try await world.run("SELECT * FROM v").last?.rows == [["3"]])
            try put("{\"a\": 4}\n", at: "s3://lake/in/2.jsonl", in: store)
            #expect(try await world.run("FLUSH; SELECT * FROM v").last?.rows == [["7"]])
            #expect(try await world.run("SELECT sum(a) FROM s").last?.rows == [["7"]])
            #expect(try await world.run("SELECT count(*) FROM read_json('s3://lake/in')").last?.rows == [["4"]])
        }
    }

    /// What was in an object when it was found is what the source has: another in its place stops the split, and is no new one.
    @Test func anObjectThatWasReplacedStopsItsSplit() async throws {
        let store = MemoryObjectStore()
        try put("{\"a\": 1}\n", at: "s3://lake/1.jsonl", in: store)
        try put("{\"a\": 2}\n", at: "s3://lake/2.jsonl", in: store)
        try await withWorld(access: FileAccess { _ in store }) { world in
            try await world.run(
                """
                CREATE SOURCE s (a int) WITH (connector = 'file', path = 's3://lake/*.jsonl');
                CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS total FROM s; FLUSH
                """)
            try put("{\"a\": 50}\n{\"a\": 60}\n", at: "s3://lake/2.jsonl", in: store)
            #expect(try await world.run("FLUSH; SELECT * FROM v").last?.rows == [["3"]])
            let direct = await error(of: "CREATE MATERIALIZED VIEW w AS SELECT count(*) FROM s; FLUSH; SELECT * FROM w", in: world)
            let jobs = try await world.run("SHOW JOBS").last?.rows.flatMap { $0.compactMap { $0 } }.joined(separator: " ") ?? ""
            #expect((direct?.message ?? jobs).contains("s3://lake/2.jsonl"), "\(jobs)")
        }
    }

    @Test func largeObjectsAreFetchedInParts() async throws {
        let store = MemoryObjectStore()
        let count = 300_000
        try put("id,text\n" + (0..<count).map { "\($0),\"value, number \($0)\"\n" }.joined(), at: "s3://lake/big.csv", in: store)
        try await withWorld(access: FileAccess { _ in store }) { world in
            let sum = count * (count - 1) / 2
            try await world.run(
                """
                CREATE SOURCE s (*) WITH (connector = 's3', path = 's3://lake/big.csv');
                CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(id) AS ids, count(DISTINCT text) AS texts FROM s; FLUSH
                """)
            #expect(try await world.run("SELECT * FROM v").last?.rows == [["\(count)", "\(sum)", "\(count)"]])
            store.setFaults { operation, _ in operation == .read ? .refused(5) : nil }
            let away = await error(of: "SELECT count(*) FROM read_csv('s3://lake/big.csv')", in: world)
            #expect(away?.sqlState == .ioError)
        }
    }

    @Test func statementsNameNoFilesOutsideOfTheRoots() async throws {
        let within = FileAccess(local: .within(["/data/in", "/srv"]), workingDirectory: "/data") { _ in MemoryObjectStore() }
        for path in ["in/a.jsonl", "/srv/x/*.csv", "/data/./in", "in/**"] { try within.check(path) }
        for path in ["/etc/passwd", "a", "in/../b", "/data/input", "/", "/srv/../etc/*", "*", "/srv/../\u{301}x", "in/../\u{301}/x"] {
            #expect(throws: SQLError.self, "\(path)") { try within.check(path) }
        }
        try await withWorld(access: FileAccess(local: .nowhere) { _ in MemoryObjectStore() }) { world in
            try world.write("{\"a\": 1}\n", to: "a.jsonl")
            for statement in ["CREATE SOURCE s (a int) WITH (connector = 'file', path = 'a.jsonl')", "SELECT * FROM read_json('a.jsonl')"] {
                let refused = await error(of: statement, in: world)
                #expect(refused?.sqlState == .insufficientPrivilege)
                #expect(refused?.hint?.contains("--file-roots") == true)
            }
        }
    }

    @Test func whatMatchesNothingAndWhatIsMisspeltIsSaid() async throws {
        try await withWorld { world in
            for statement in [
                "SELECT * FROM read_parquet('in/*.parquet')", "CREATE SOURCE s (*) WITH (connector = 'file', path = 'in/*.parquet')",
            ] {
                let missing = await error(of: statement, in: world)
                #expect(missing?.sqlState == .undefinedObject)
                #expect(missing?.message == "no file matches \"in/*.parquet\"")
            }
            let misspelt = await error(
                of: "CREATE SOURCE s (a int) WITH (connector = 'file', path = 'x', delimeter = ';') FORMAT PLAIN ENCODE CSV", in: world)
            #expect(misspelt?.hint?.hasPrefix("Perhaps you meant \"delimiter\".") == true)
            let delimiter = await error(of: "SELECT * FROM read_csv('x', delim = '::')", in: world)
            #expect(delimiter?.sqlState == .invalidParameterValue)
        }
    }
}
