import MillBase
import MillColumnar
import MillIO
import MillParquet
import MillTestKit
import Testing

/// Sources over Parquet files, and queries that name such files themselves.
@Suite(.timeLimit(.minutes(5))) struct ParquetSourceTests {
    private func withWorld(workerCount: Int = 1, _ body: (EngineWorld) async throws -> Void) async throws {
        let world = try await EngineWorld(workerCount: workerCount)
        do { try await body(world) } catch {
            await world.stop()
            throw error
        }
        await world.stop()
    }

    /// `count` rows of an int `id` from `first` on, a text that is NULL for every seventh, and a numeric.
    private func write(_ path: String, rows count: Int, from first: Int = 0, groupRows: Int = 1000, in world: EngineWorld) throws {
        var options = ParquetWriterOptions()
        options.rowGroupRowsMax = groupRows
        options.pageRowsMax = 300
        if let slash = path.lastIndex(of: "/") { try world.files.createDirectory(String(path[..<slash])) }
        let price = SQLType.numeric(precision: 10, scale: 2)
        let writer = try ParquetWriter(
            try world.files.open(path, .create),
            [ParquetColumn("id", .int64, isRequired: true), ParquetColumn("User-Agent", .varchar), ParquetColumn("price", price)], options)
        for start in stride(from: 0, to: count, by: 500) {
            let part = start..<min(start + 500, count)
            let columns = [Column(.int64, capacity: part.count), Column(.varchar, capacity: part.count), Column(price, capacity: part.count)]
            for row in part {
                let number = first + row
                columns[0].append(.int(Int64(number)))
                columns[1].append(number % 7 == 0 ? .null : .string("agent \(number % 100), which is longer than a view"))
                columns[2].append(.decimal(Decimal(unscaled: Int128(number), scale: 2)))
            }
            try writer.append(columns, count: part.count)
        }
        try writer.finish()
    }

    private func error(of statement: String, in world: EngineWorld) async -> SQLError? {
        do throws(SQLError) { try await world.run(statement) } catch { return error }
        return nil
    }

    @Test(arguments: [1, 3]) func aViewAndAQueryReadEveryRowOnce(workerCount: Int) async throws {
        try await withWorld(workerCount: workerCount) { world in
            try write("in/a.parquet", rows: 70_000, in: world)
            try write("in/b.parquet", rows: 3, from: 70_000, in: world)
            try write("in/c.parquet", rows: 0, in: world)
            try await world.run(
                """
                CREATE SOURCE s (id bigint, user_agent varchar, price numeric) WITH (connector = 'file', path = 'in/*.parquet') FORMAT PLAIN ENCODE PARQUET;
                CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(id) AS ids, count(user_agent) AS named, sum(price) AS total FROM s; FLUSH
                """)
            let expected = ["70003", "2450175003", "60002", "24501750.03"]
            #expect(try await world.run("SELECT * FROM v").last?.rows == [expected])
            let direct = "SELECT count(*), sum(id), count(user_agent), sum(price) FROM s"
            #expect(try await world.run(direct).last?.rows == [expected])
            // A view that comes later reads the files with its own readers.
            try await world.run("CREATE MATERIALIZED VIEW w AS SELECT id % 2 AS odd, count(*) AS n FROM s GROUP BY 1; FLUSH")
            #expect(try await world.run("SELECT * FROM w ORDER BY 1").last?.rows == [["0", "35002"], ["1", "35001"]])
        }
    }

    @Test func columnsComeFromTheFileWhereNoneAreDeclared() async throws {
        try await withWorld { world in
            try write("trips.parquet", rows: 10, in: world)
            try await world.run("CREATE SOURCE s (*) WITH (connector = 'file', path = 'trips.parquet')")
            let schema = try await world.run("SELECT * FROM s").last?.schema
            #expect(schema == [Field("id", .int64), Field("User-Agent", .varchar), Field("price", .numeric(precision: 10, scale: 2))])
            let missing = await error(of: "CREATE SOURCE t WITH (connector = 'file', path = 'none.parquet')", in: world)
            #expect(missing?.sqlState == .undefinedObject)
            try world.write("{}", to: "lines.jsonl")
            let lines = await error(of: "CREATE SOURCE t (*) WITH (connector = 'file', path = 'lines.jsonl') FORMAT PLAIN ENCODE JSON", in: world)
            #expect(lines?.sqlState == .invalidTableDefinition)
        }
    }

    @Test func aQueryReadsFilesByTheirPath() async throws {
        try await withWorld { world in
            try write("in/a.parquet", rows: 5000, in: world)
            try write("in/b.parquet", rows: 5000, from: 5000, in: world)
            let query = "SELECT count(*), max(a.id) FROM read_parquet('in/*.parquet') AS a JOIN read_parquet('in/b.parquet') b ON a.id = b.id"
            #expect(try await world.run(query).last?.rows == [["5000", "9999"]])
            #expect(try await world.run("SELECT \"User-Agent\" FROM read_parquet('in/a.parquet') LIMIT 1 OFFSET 7").last?.rows == [[nil]])
            try await world.run("CREATE TABLE kept AS SELECT id FROM read_parquet('in/a.parquet') WHERE id < 3")
            #expect(try await world.run("SELECT count(*) FROM kept").last?.rows == [["3"]])
            #expect(await error(of: "SELECT * FROM read_parquet('none.parquet')", in: world)?.sqlState == .undefinedObject)
            #expect(await error(of: "SELECT * FROM read_parquet(1)", in: world)?.sqlState == .undefinedFunction)
            let view = await error(of: "CREATE MATERIALIZED VIEW v AS SELECT * FROM read_parquet('in/a.parquet')", in: world)
            #expect(view?.sqlState == .featureNotSupported)
            #expect(view?.hint?.contains("CREATE SOURCE") == true)
            try world.write("no Parquet at all", to: "bad.parquet")
            let damaged = await error(of: "SELECT * FROM read_parquet('bad.parquet')", in: world)
            #expect(damaged?.sqlState == .dataCorrupted)
            #expect(damaged?.span != nil)
        }
    }

    /// Nothing is skipped: a file that cannot be read stops its split, and says which.
    @Test func aFileOfOtherTypesOrOtherColumnsStopsTheSource() async throws {
        try await withWorld { world in
            try write("in/a.parquet", rows: 10, in: world)
            try await world.run("CREATE SOURCE s (id int) WITH (connector = 'file', path = 'in/*.parquet')")
            let narrow = await error(of: "SELECT * FROM s", in: world)
            #expect(narrow?.sqlState == .featureNotSupported)
            #expect(narrow?.message.contains("in/a.parquet") == true)
            try await world.run("CREATE SOURCE t (other int) WITH (connector = 'file', path = 'in/*.parquet')")
            #expect(await error(of: "SELECT * FROM t", in: world)?.message.contains("none of the source's columns") == true)
            let view = await error(of: "CREATE MATERIALIZED VIEW v AS SELECT * FROM t", in: world)
            #expect(view?.message.contains("none of the source's columns") == true)
        }
    }

    @Test func recordsOfKafkaAreNoParquetFiles() async throws {
        try await withWorld { world in
            let refused = await error(
                of: "CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't', properties.bootstrap.server = 'x:1') FORMAT PLAIN ENCODE PARQUET",
                in: world)
            #expect(refused?.sqlState == .featureNotSupported)
        }
    }
}
