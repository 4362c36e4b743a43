import MillBase
import MillColumnar
import MillConnectorKit
import MillIceberg
import MillLakeCatalog
import MillTestKit
import Testing

@testable import MillConnectors

/// What becomes of values and columns, and what CREATE SINK says of a table that does not fit.
@Suite struct IcebergSinkRowsTests {
    private let world: SinkWorld
    private let name = SinkName("00112233445566778899aabbccddeeff")

    init() throws { world = try SinkWorld() }

    private func failure(_ body: () throws -> Void) -> SQLError {
        do { try body() } catch { return SQLError(any: error) }
        return SQLError(.successfulCompletion, "nothing failed")
    }

    private func makeTable(_ fields: [NestedField], _ properties: [String: String] = [:]) throws {
        try? world.tables.create(namespace: ["shop"])
        _ = try world.tables.create(
            TableIdentifier(namespace: ["shop"], name: "orders"), schema: IcebergSchema(fields), properties: properties)
    }

    @Test func numericsAreRoundedHalfAwayFromZero() throws {
        try makeTable([NestedField(1, "id", .int), NestedField(2, "amount", .decimal(precision: 5, scale: 2))])
        let sink = try world.sink("id:int amount:numeric")
        let target = try sink.prepare()
        let writer = try sink.open(sink: name, incarnation: target.incarnation)
        let refused = try writer.write(
            .drawn("id:int amount:numeric; +1 1 1.005; +1 2 -1.005; +1 3 1.0049; +1 4 null; +1 5 999.995; +1 7 2"), epoch: 1)
        let number = Column(.int32, capacity: 1)
        let amount = Column(.numeric(precision: nil, scale: nil), capacity: 1)
        number.append(Scalar.int(6))
        amount.append(Scalar.decimal(Decimal(.nan)))
        #expect(try writer.write(DeltaBatch(columns: [number, amount], count: 1), epoch: 1).map(\.column) == ["amount"])
        #expect(refused.map(\.row) == [4] && refused.allSatisfy { $0.column == "amount" }, "\(refused)")
        try writer.commit(through: 1)
        #expect(try world.rows() == ["1 1.01", "2 -1.01", "3 1.00", "4 null", "7 2.00"])
    }

    @Test func allBadRowsOfABatchAreNamedAtOnceAndTheOthersTaken() throws {
        try makeTable([NestedField(1, "id", .long, isRequired: true), NestedField(2, "name", .string, isRequired: true)])
        let sink = try world.sink("id:int name:text")
        let target = try sink.prepare()
        let writer = try sink.open(sink: name, incarnation: target.incarnation)
        let refused = try writer.write(.drawn("id:int name:text; +1 1 a; +1 null b; +1 3 null; +1 null null; +1 5 e"), epoch: 1)
        #expect(refused.map(\.row) == [1, 2, 3])
        #expect(refused.map(\.column) == ["id", "name", "id"])
        #expect(try writer.write(.drawn("id:int name:text; +1 null b"), epoch: 1).count == 1)
        try writer.commit(through: 1)
        #expect(try world.rows() == ["1 a", "5 e"])
    }

    @Test func infiniteTimesAndTheEndOfADayAreRefused() throws {
        try makeTable([
            NestedField(1, "id", .int), NestedField(2, "at", .timestamptz), NestedField(3, "day", .date), NestedField(4, "clock", .time),
        ])
        let sink = try world.sink("id:int at:tstz day:date clock:time")
        let target = try sink.prepare()
        let writer = try sink.open(sink: name, incarnation: target.incarnation)
        let columns = [SQLType.int32, .timestamptz, .date, .time].map { Column($0, capacity: 4) }
        let rows: [[Int64]] = [[1, .max, 0, 0], [2, 0, Int64(Int32.min), 0], [3, 0, 0, 86_400_000_000], [4, 0, 0, 0]]
        for row in rows {
            for (column, value) in zip(columns, row) { column.append(Scalar.int(value)) }
        }
        let refused = try writer.write(DeltaBatch(columns: columns, count: 4), epoch: 1)
        #expect(refused.map(\.row) == [0, 1, 2] && refused.map(\.column) == ["at", "day", "clock"])
        #expect(refused.last?.reason == "24:00:00 has no place in a file, whose times end before it")
        try writer.commit(through: 1)
        #expect(try world.rows().count == 1)
    }

    @Test func aRefusedRowOfAnUpsertTakesTheOldOneAway() throws {
        try makeTable([NestedField(1, "id", .long, isRequired: true), NestedField(2, "n", .decimal(precision: 3, scale: 0))])
        let sink = try world.sink("id:int n:numeric", key: [0])
        let target = try sink.prepare()
        let writer = try sink.open(sink: name, incarnation: target.incarnation)
        #expect(try writer.write(.drawn("id:int n:numeric; +1 1 5; +1 2 6"), epoch: 1).isEmpty)
        #expect(try writer.write(.drawn("id:int n:numeric; -1 1 5; +1 1 5000"), epoch: 2).map(\.row) == [1])
        try writer.commit(through: 2)
        #expect(try world.rows() == ["2 6"])
        // The row that was refused is taken back: nothing was there.
        #expect(try writer.write(.drawn("id:int n:numeric; -1 1 5000; +1 1 7"), epoch: 3).isEmpty)
        try writer.commit(through: 3)
        #expect(try world.rows() == ["1 7", "2 6"])
    }

    @Test func columnsAreFoundByNameAndTheTablesOthersAreNull() throws {
        try makeTable([NestedField(1, "late", .string), NestedField(2, "name", .string), NestedField(3, "id", .long)])
        let sink = try world.sink("id:int name:text")
        let target = try sink.prepare()
        let writer = try sink.open(sink: name, incarnation: target.incarnation)
        _ = try writer.write(.drawn("id:int name:text; +1 1 a"), epoch: 1)
        try writer.commit(through: 1)
        #expect(try world.rows() == ["null a 1"])
    }

    @Test func whatDoesNotFitIsSaidBeforeARowIsSent() throws {
        try makeTable([NestedField(1, "id", .long), NestedField(2, "name", .string)])
        let missing = failure { _ = try world.sink("id:int title:text").prepare() }
        #expect(missing.sqlState == .undefinedColumn && missing.message.contains("\"title\""))
        #expect(missing.detail == "The table's columns are \"id\", \"name\".")
        let type = failure { _ = try world.sink("id:text name:text").prepare() }
        #expect(type.sqlState == .datatypeMismatch && type.message.contains("\"id\""))
        try world.drop("orders")
        try makeTable([NestedField(1, "id", .long), NestedField(2, "name", .string, isRequired: true)])
        let required = failure { _ = try world.sink("id:int").prepare() }
        #expect(required.sqlState == .notNullViolation && required.message.contains("\"name\""))
        #expect(failure { _ = try world.sink("id:int id:int") }.sqlState == .duplicateColumn)
    }

    @Test func missingThingsAreNamedWithWhatToDo() throws {
        let creates: Set = ["create_table_if_not_exists"]
        let namespace = failure { _ = try world.sink("id:int", without: creates).prepare() }
        #expect(namespace.sqlState == .invalidSchemaName)
        #expect(
            namespace.message.contains("namespace \"shop\"") && namespace.hint?.contains("create_table_if_not_exists") == true,
            "\(namespace)")
        try makeTable([NestedField(1, "id", .int)])
        let table = failure { _ = try world.sink("id:int", ["table.name": "other"], without: creates).prepare() }
        #expect(table.sqlState == .undefinedTable && table.hint?.contains("create_table_if_not_exists") == true)
        let secret = failure { _ = try world.sink("id:int", ["catalog.credential": "root:wrong"]).prepare() }
        #expect(secret.sqlState == .invalidAuthorization && secret.mayPass)
        world.setFate { _ in .unsent }
        let away = failure { _ = try world.sink("id:int").prepare() }
        #expect(away.sqlState == .connectionFailure && away.mayPass)
    }

    @Test func anotherCatalogsDiskIsNotWrittenTo() throws {
        try makeTable([NestedField(1, "id", .int)])
        for uri in ["http://lake.example:8181/api/catalog", "http://localhost@lake.example:8181/api/catalog"] {
            let refusal = failure { _ = try world.sink("id:int", ["catalog.uri": uri]).prepare() }
            #expect(refusal.sqlState != .successfulCompletion, "\(uri)")
        }
        let target = try world.sink("id:int", ["s3.region": "us-east-1"]).prepare()
        #expect(target.notices.count == 1 && target.notices[0].hasPrefix("options s3.* are ignored"))
    }

    @Test func optionsThatMakeNoSenseAreRefused() throws {
        func refusal(_ more: [String: String], without: Set<String> = []) -> SQLError {
            failure { _ = try world.sink("id:int", more, without: without) }
        }
        #expect(refusal(["catalog.type": "storage"]).sqlState == .featureNotSupported)
        #expect(refusal(["write_mode": "copy-on-write"]).sqlState == .featureNotSupported)
        #expect(refusal(["write_mode": "never"]).sqlState == .invalidParameterValue)
        #expect(refusal([:], without: ["database.name"]).message.contains("database.name"))
        #expect(refusal(["catalog.uri": "localhost"]).sqlState == .invalidParameterValue)
        #expect(refusal(["target_file_size_mb": "0"]).sqlState == .invalidParameterValue)
        #expect(refusal(["enable_compaction": "perhaps"]).sqlState == .invalidParameterValue)
        #expect(refusal(["nonsense": "1"]).hint?.contains("table.name") == true)
    }

    @Test func aTableIsMadeAsTheOptionsSay() throws {
        let target = try world.sink("id:bigint at:tstz amount:numeric small:smallint", key: [0], ["partition_by": "day(at), bucket(8,id)"])
            .prepare()
        let table = try world.open().metadata
        #expect(table.tableUUID == target.incarnation)
        #expect(table.currentSchema.fields.map(\.type) == [.long, .timestamptz, .decimal(precision: 28, scale: 10), .int])
        #expect(table.defaultPartitionSpec.fields.map(\.transform) == [.day, .bucket(8)])
        let wrong = failure { _ = try world.sink("id:bigint", ["table.name": "other", "partition_by": "day(id)"]).prepare() }
        #expect(wrong.sqlState == .invalidParameterValue && wrong.message.contains("day(id)"))
    }

    @Test func theKeysOfATableAreOneSinks() throws {
        let sink = try world.sink("id:bigint name:text", key: [0])
        let target = try sink.prepare()
        let writer = try sink.open(sink: name, incarnation: target.incarnation)
        _ = try writer.write(.drawn("id:bigint name:text; +1 1 one"), epoch: 1)
        try writer.commit(through: 1)
        let refusal = failure { _ = try world.sink("id:bigint name:text", key: [0]).prepare() }
        #expect(refusal.sqlState == .objectInUse && refusal.hint?.contains("take_over") == true)
        let heir = try world.sink("id:bigint name:text", key: [0], ["take_over": "true"])
        _ = try heir.prepare()
        let next = try heir.open(sink: SinkName("ffeeddccbbaa99887766554433221100"), incarnation: target.incarnation)
        _ = try next.write(.drawn("id:bigint name:text; +1 1 uno"), epoch: 1)
        try next.commit(through: 1)
        #expect(try world.rows() == ["1 uno"])
        _ = try writer.write(.drawn("id:bigint name:text; +1 1 ein"), epoch: 2)
        #expect(failure { try writer.commit(through: 2) }.sqlState == .objectNotInPrerequisiteState)
        #expect(failure { _ = try sink.open(sink: name, incarnation: target.incarnation) }.sqlState == .objectInUse)
    }
}
