import MillBase
import MillColumnar
import MillConnectorKit
import MillIceberg
import MillIO
import MillLakeCatalog
import MillTestKit
import Synchronization
import Testing

@testable import MillConnectors

/// A table that a sink fills, read as a source.
@Suite(.timeLimit(.minutes(5))) struct IcebergSourceTests {
    /// A source of the table that sinks of the world write, its catalog asked only when a test says so.
    private final class World {
        let lake: SinkWorld
        let source: IcebergSource
        let writer: any SinkWriter
        private let epoch = Mutex<Int64>(0)

        init(_ columns: String = "id:bigint name:text", key: [Int]? = nil, _ options: [String: String] = [:], seed: UInt64 = 5) throws {
            let lake = try SinkWorld(seed: seed)
            let sink = try lake.sink(columns, key: key)
            let target = try sink.prepare()
            self.lake = lake
            writer = try sink.open(sink: SinkName("00112233445566778899aabbccddeeff"), incarnation: target.incarnation)
            source = try Self.source(lake, columns, options)
        }

        static func source(_ lake: SinkWorld, _ columns: String, _ options: [String: String] = [:]) throws -> IcebergSource {
            let given = ["catalog.name": "dev", "database.name": "shop", "table.name": "orders"].merging(options) { $1 }
            return try IcebergSource(
                options: ConnectorOptions(connector: "iceberg", given), fields: SinkWorld.fields(columns), environment: lake.environment
            ) { name in
                guard name == "dev" else { return nil }
                return IcebergCatalog(
                    IcebergCatalog.Source(
                        open: { (_) throws(IcebergError) in
                            do { return try lake.open() } catch { throw error as? IcebergError ?? .missing("table") }
                        }, namespaces: { [] }, tables: { _ in [] }))
            }
        }

        /// One commit.
        func write(_ drawn: String) throws {
            let epoch = epoch.withLock { epoch in
                epoch += 1
                return epoch
            }
            _ = try writer.write(.drawn(drawn), epoch: epoch)
            try writer.commit(through: epoch)
        }

        var split: SourceSplit { SourceSplit(name: "shop.orders", topic: "shop.orders", partition: 0) }
        func origin() throws -> SplitOffset { try #require(try source.resolveOrigin()[split]) }
        func end() throws -> SplitOffset { try #require(try source.highWatermarks([split])[split]) }

        /// The rows between two places, drawn, read in chunks of so many.
        func rows(from start: SplitOffset, to end: SplitOffset, atMost: Int = 1000) throws -> [String] {
            let bell = Bell()
            let reader = try source.openReader(split, at: start) { bell.ring() }
            defer { reader.close() }
            reader.aim(at: end)
            let decoder = TableRowDecoder(wanted: [0, 1])
            var (place, rows): (SplitOffset, [String]) = (start, [])
            while place < end {
                let seen = bell.count
                guard let chunk = try reader.poll(maxRecords: atMost, maxBytes: 1 << 20) else {
                    bell.wait(after: seen, seconds: 20)
                    if bell.count == seen { throw Stalled(place: place) }
                    continue
                }
                #expect(chunk.nextOffset > place && chunk.count <= atMost)
                let due = chunk.prefix(before: end)
                for batch in try decoder.decode(due).batches { rows += batch.drawn.split(separator: "; ").dropFirst().map { String($0.dropFirst(3)) } }
                place = chunk.nextOffset
            }
            return rows
        }

        struct Stalled: Error {
            var place: SplitOffset
        }

        func failure(at place: SplitOffset) throws -> SQLError? {
            let bell = Bell()
            let reader = try source.openReader(split, at: place) { bell.ring() }
            defer { reader.close() }
            return MillConnectorsTests.failure(of: reader, bell)
        }
    }

    @Test func rowsOfTheFirstSnapshotAreFollowedByThoseOfLaterOnes() throws {
        let world = try World()
        try world.write("id:bigint name:text; +1 1 a; +1 2 b")
        try world.write("id:bigint name:text; +1 3 NULL")
        let origin = try world.origin()
        #expect(try world.rows(from: origin, to: world.end()).sorted() == ["1 a", "2 b", "3 NULL"])
        let second = try world.end()
        try world.write("id:bigint name:text; +1 4 d")
        try world.write("id:bigint name:text; +1 5 e")
        #expect(try world.rows(from: second, to: world.end()) == ["4 d", "5 e"])
        #expect(try world.rows(from: origin, to: world.end(), atMost: 1).sorted() == ["1 a", "2 b", "3 NULL", "4 d", "5 e"])
    }

    @Test func anEmptyTableBeginsWithItsFirstSnapshot() throws {
        let world = try World()
        let origin = try world.origin()
        #expect(try world.rows(from: origin, to: world.end()).isEmpty)
        let empty = try world.end()
        try world.write("id:bigint name:text; +1 1 a")
        #expect(try world.rows(from: empty, to: world.end()) == ["1 a"])
        #expect(try world.rows(from: origin, to: world.end()) == ["1 a"])
    }

    @Test func latestBeginsBehindWhatIsThere() throws {
        let world = try World("id:bigint name:text", key: nil, ["scan.startup.mode": "latest"])
        try world.write("id:bigint name:text; +1 1 a")
        let origin = try world.origin()
        try world.write("id:bigint name:text; +1 2 b")
        #expect(try world.rows(from: origin, to: world.end()) == ["2 b"])
    }

    /// The same rows from every place that a reader may stop at, whatever happens to the table meanwhile.
    @Test(arguments: [1, 2, 3] as [UInt64]) func readingGoesOnFromAnyPlace(seed: UInt64) throws {
        let world = try World(seed: seed)
        var random = SeededGenerator(seed: seed)
        var next = 0
        func commit() throws {
            let rows = (0..<random.number(1...5)).map { _ in
                next += 1
                return "; +1 \(next) n\(next)"
            }
            try world.write("id:bigint name:text" + rows.joined())
        }
        for _ in 0..<3 { try commit() }
        let origin = try world.origin()
        var (place, read): (SplitOffset, [String]) = (origin, [])
        for _ in 0..<8 {
            try commit()
            if random.oneIn(3) {
                var settings = Compaction.Settings()
                settings.filesMin = 2
                _ = try Compaction(settings).run(world.lake.open(), CommitSettings(pause: { _ in }))
            }
            let end = try world.end()
            // To somewhere in the middle, then on with another reader.
            let bell = Bell()
            let reader = try world.source.openReader(world.split, at: place) { bell.ring() }
            let decoder = TableRowDecoder(wanted: [0, 1])
            for _ in 0..<random.number(0...3) {
                let seen = bell.count
                guard let chunk = try reader.poll(maxRecords: 2, maxBytes: 1 << 20) else {
                    bell.wait(after: seen, seconds: 20)
                    continue
                }
                for batch in try decoder.decode(chunk).batches { read += batch.drawn.split(separator: "; ").dropFirst().map { String($0.dropFirst(3)) } }
                place = chunk.nextOffset
            }
            reader.close()
            if place < end {
                read += try world.rows(from: place, to: end, atMost: random.number(1...4))
                place = end
            }
            #expect(read.sorted() == (1...next).map { "\($0) n\($0)" }.sorted(), "seed \(seed)")
        }
        #expect(try world.rows(from: origin, to: place).sorted() == read.sorted(), "seed \(seed)")
    }

    @Test func whoHasReadNothingBeginsWithANewerSnapshotWhenOldOnesHaveExpired() throws {
        let world = try World()
        try world.write("id:bigint name:text; +1 1 a")
        let origin = try world.origin()
        for number in 2...6 { try world.write("id:bigint name:text; +1 \(number) x") }
        let middle = try world.end()
        try world.write("id:bigint name:text; +1 7 x")
        var settings = SnapshotExpiry.Settings()
        (settings.keepMin, settings.keepMax, settings.age) = (1, 2, .zero)
        _ = try SnapshotExpiry(settings).run(world.lake.open())
        // The other reader is behind the last but one, which is kept.
        #expect(try world.rows(from: origin, to: middle).count == 6)
        #expect(try world.rows(from: middle, to: world.end()) == ["7 x"])
        for number in 8...11 { try world.write("id:bigint name:text; +1 \(number) x") }
        _ = try SnapshotExpiry(settings).run(world.lake.open())
        _ = try world.end()
        let error = try world.failure(at: middle)
        #expect(error?.sqlState == .objectNotInPrerequisiteState && error?.message.contains("has expired") == true, "\(String(describing: error))")
    }

    @Test func rowsThatAreTakenAwayStopTheSourceUnlessTheyArePassedOver() throws {
        for skips in [false, true] {
            let world = try World(key: [0], skips ? ["streaming-skip-overwrite-snapshots": "true", "streaming-skip-delete-snapshots": "true"] : [:])
            try world.write("id:bigint name:text; +1 1 a; +1 2 b")
            let origin = try world.origin()
            let first = try world.end()
            try world.write("id:bigint name:text; -1 1 a; +1 1 c")
            try world.write("id:bigint name:text; +1 3 x")
            if skips {
                #expect(try world.rows(from: first, to: world.end()) == ["3 x"])
            } else {
                let error = try world.failure(at: first)
                #expect(error?.message.contains("takes rows away") == true, "\(String(describing: error))")
            }
            // Who has read nothing sees the table as it is.
            #expect(try world.rows(from: origin, to: world.end()).sorted() == ["1 c", "2 b", "3 x"])
        }
    }

    @Test func recordsThatAreLeftAreCounted() throws {
        let world = try World()
        try world.write("id:bigint name:text; +1 1 a; +1 2 b")
        let origin = try world.origin()
        let first = try world.end()
        try world.write("id:bigint name:text; +1 3 x; +1 4 x; +1 5 x")
        let end = try world.end()
        #expect(world.source.recordCount(world.split, from: origin, to: end) == 5)
        #expect(world.source.recordCount(world.split, from: first, to: end) == 3)
        #expect(world.source.recordCount(world.split, from: end, to: end) == 0)
    }

    @Test func aTableThatIsNotWhatItWasIsTold() throws {
        let world = try World()
        try world.write("id:bigint name:text; +1 1 a")
        let origin = try world.origin()
        let uuid = try #require(world.source.incarnation)
        let other = try World.source(world.lake, "id:bigint name:text")
        other.expect(incarnation: "another")
        #expect(throws: SQLError.self) { try other.resolveOrigin() }
        for columns in ["id:int name:text", "id:bigint nobody:text"] {
            #expect { try World.source(world.lake, columns).resolveOrigin() } throws: { ($0 as? SQLError)?.sqlState == .objectNotInPrerequisiteState }
        }
        try world.lake.drop("orders")
        let again = try world.lake.sink("id:bigint name:text")
        _ = try again.prepare()
        #expect(try world.lake.open().metadata.tableUUID != uuid)
        #expect { try world.source.highWatermarks([world.split]) } throws: { ($0 as? SQLError)?.message.contains("made anew") == true }
        #expect(try world.failure(at: origin)?.message.contains("made anew") == true)
    }

    @Test func placesAreInOrderAndWithinBounds() throws {
        let places = [
            try TablePosition(0, .whole), try TablePosition(0, .done), try TablePosition(1, .whole, row: 5), try TablePosition(1, .added),
            try TablePosition(1, .added, row: TablePosition.rowMax), try TablePosition(1, .done), try TablePosition(TablePosition.sequenceNumberMax, .done),
        ]
        #expect(places == places.sorted())
        for place in places { #expect(try TablePosition(place.offset) == place && place.offset.position >= 0) }
        #expect(throws: SQLError.self) { try TablePosition(TablePosition.sequenceNumberMax + 1, .done) }
        #expect(throws: SQLError.self) { try TablePosition(1, .added, row: TablePosition.rowMax + 1) }
        #expect(throws: SQLError.self) { try TablePosition(SplitOffset(-1)) }
        #expect(throws: SQLError.self) { try TablePosition(SplitOffset(3 << 34)) }
    }

    @Test func optionsThatMakeNoSenseAreRefused() throws {
        let lake = try SinkWorld()
        for (option, value) in [
            ("monitor-interval", "soon"), ("monitor-interval", "1us"), ("scan.startup.mode", "middle"), ("table.name", ""), ("catalog.type", "hive"),
            ("streaming-skip-delete-snapshots", "maybe"), ("unknown", "x"), ("catalog.name", ""),
        ] {
            #expect(throws: SQLError.self, "\(option) = \(value)") { try World.source(lake, "id:bigint", [option: value]) }
        }
    }
}
