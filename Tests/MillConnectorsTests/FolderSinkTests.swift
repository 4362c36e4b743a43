import MillBase
import MillColumnar
import MillConnectorKit
import MillIO
import MillObjectStore
import MillParquet
import MillTestKit
import Synchronization
import Testing

@testable import MillConnectors

/// Rows into the files of a folder, each exactly once whatever fails.
@Suite struct FolderSinkTests {
    private let fields = [Field("id", .int64), Field("city", .varchar), Field("amount", .numeric(precision: 6, scale: 2))]
    private let folder = "s3://lake/out"

    private func sink(_ store: MemoryObjectStore, _ options: [String: String] = [:], key: [Int]? = nil) throws(SQLError)
        -> any SinkConnector
    {
        let access = FileAccess { _ in store }
        let all = ["connector": "s3", "path": folder].merging(options) { $1 }
        return try SinkConnectors.make(
            all, of: SinkConnectors.Relation(name: "v", fields: fields, key: key), environment: .system, access: access)
    }

    private func batch(_ rows: [(id: Int64, city: String?, amount: Int128)], weights: [Int64]? = nil) -> DeltaBatch {
        let columns = fields.map { Column($0.type, capacity: rows.count) }
        for row in rows {
            columns[0].append(.int(row.id))
            columns[1].append(row.city.map { .string($0) } ?? .null)
            columns[2].append(.decimal(Decimal(unscaled: row.amount, scale: 2)))
        }
        return DeltaBatch(columns: columns, count: rows.count, weights: weights.map { Weights($0) })
    }

    /// The `id` of every row that a reader of the folder sees, by the directory it is in.
    private func visible(_ store: MemoryObjectStore) throws -> [(directory: String, id: Int64)] {
        let place = StoredPlace(pattern: folder, store: store)
        var rows: [(directory: String, id: Int64)] = []
        for split in try place.splits() {
            let file = try ParquetFile(try place.open(split))
            let scan = try ParquetScan(file, [.init(0)])
            let directory = split.topic.dropFirst(folder.count + 1).split(separator: "/").dropLast().joined(separator: "/")
            while let batch = try scan.next() {
                for row in 0..<batch.count { rows.append((directory, batch.columns[0].values(Int64.self)[row])) }
            }
        }
        return rows
    }

    @Test func rowsAreSeenOnceTheyAreCommittedAndInTheDirectoriesOfTheirValues() throws {
        let store = MemoryObjectStore()
        let sink = try sink(store, ["partition_by": "city"])
        let target = try sink.prepare()
        let writer = try sink.open(sink: SinkName("aa"), incarnation: target.incarnation)
        #expect(writer.committedEpoch == nil)
        #expect(try writer.write(batch([(1, "New/York", 1), (2, nil, 2), (3, "Köln", 3)]), epoch: 5).isEmpty)
        #expect(try writer.write(batch([(4, "New/York", 4)], weights: [2]), epoch: 6).isEmpty)
        #expect(writer.pending.rowCount == 5)
        #expect(try visible(store).isEmpty)
        try writer.commit(through: 6)
        #expect(writer.committedEpoch == 6)
        let rows = try visible(store).sorted { $0.id < $1.id }
        #expect(rows.map(\.id) == [1, 2, 3, 4, 4])
        #expect(rows.map(\.directory).prefix(3) == ["city=New%2FYork", "city=__HIVE_DEFAULT_PARTITION__", "city=Köln"])
        writer.close()
        #expect(try sink.open(sink: SinkName("aa"), incarnation: target.incarnation).committedEpoch == 6)
        #expect(try sink.open(sink: SinkName("bb"), incarnation: target.incarnation).committedEpoch == nil)
        // An epoch without rows leaves no file behind.
        let later = try sink.open(sink: SinkName("aa"), incarnation: target.incarnation)
        try later.commit(through: 9)
        #expect(later.committedEpoch == 9)
        #expect(try visible(store).count == 5)
    }

    /// An e with an accent as one character and as two.
    @Test func textsThatOnlyLookAlikeHaveDirectoriesOfTheirOwn() throws {
        let store = MemoryObjectStore()
        let writer = try sink(store, ["partition_by": "city"]).open(sink: SinkName("aa"), incarnation: nil)
        #expect(try writer.write(batch([(1, "caf\u{E9}", 1), (2, "cafe\u{301}", 2)]), epoch: 1).isEmpty)
        try writer.commit(through: 1)
        let rows = try visible(store).sorted { $0.id < $1.id }
        #expect(rows.map { Array($0.directory.utf8) } == ["city=caf\u{E9}", "city=cafe\u{301}"].map { Array($0.utf8) })
    }

    @Test func rowsThatTheFolderCannotTakeAreRefusedAlone() throws {
        let store = MemoryObjectStore()
        let sink = try sink(store, ["partition_by": "city"])
        let writer = try sink.open(sink: SinkName("aa"), incarnation: nil)
        let long = String(repeating: "x", count: 300)
        let refused = try writer.write(
            batch([(1, "a", 1), (2, "a", 1_000_000), (3, "", 3), (4, long, 4), (5, "a", 5)], weights: [1, 3, 1, 2, 1]), epoch: 1)
        #expect(refused.map(\.row) == [1, 2, 3])
        #expect(refused.map(\.column) == ["amount", "city", "city"])
        try writer.commit(through: 1)
        #expect(try visible(store).map(\.id).sorted() == [1, 5])
        #expect(throws: SQLError.self) { try writer.write(batch([(1, "a", 1)], weights: [-1]), epoch: 2) }
    }

    @Test func filesEndAtTheirLimits() throws {
        let store = MemoryObjectStore()
        let writer = try sink(store, ["max_row_count": "100"]).open(sink: SinkName("aa"), incarnation: nil)
        for part in 0..<10 { _ = try writer.write(batch((0..<50).map { (Int64(part * 50 + $0), "a", 1) }), epoch: 1) }
        #expect(try visible(store).isEmpty)
        try writer.commit(through: 1)
        #expect(try store.list(folder + "/part-").count == 5)
        #expect(try visible(store).map(\.id).sorted() == Array(0..<500))
    }

    @Test func wrongOptionsAreNamed() throws {
        let store = MemoryObjectStore()
        func refused(_ options: [String: String], key: [Int]? = nil) -> SQLError? {
            do throws(SQLError) { _ = try sink(store, options, key: key) } catch { return error }
            return nil
        }
        #expect(refused(["partition_by": "town"])?.sqlState == .undefinedColumn)
        #expect(refused(["partition_by": "city,city"])?.sqlState == .duplicateColumn)
        #expect(refused(["partition_by": "id, city, amount"])?.sqlState == .invalidParameterValue)
        #expect(refused(["compression": "lzma"])?.hint?.contains("zstd") == true)
        #expect(refused(["max_row_count": "0"])?.sqlState == .invalidParameterValue)
        #expect(refused(["partition_bye": "id"])?.hint?.hasPrefix("Perhaps you meant \"partition_by\".") == true)
        #expect(refused([:], key: [0])?.hint?.contains("iceberg") == true)
        #expect(refused(["type": "upsert"])?.hint?.contains("iceberg") == true)
        #expect(refused(["encode": "json"])?.sqlState == .featureNotSupported)
        #expect(refused(["path": "s3://lake/*"])?.sqlState == .invalidParameterValue)
    }

    /// A writer that another one has replaced shows nothing from then on.
    @Test func aWriterThatWasReplacedShowsNothing() throws {
        let store = MemoryObjectStore()
        let sink = try sink(store)
        let old = try sink.open(sink: SinkName("aa"), incarnation: nil)
        _ = try old.write(batch([(1, "a", 1)]), epoch: 1)
        try old.commit(through: 1)
        let new = try sink.open(sink: SinkName("aa"), incarnation: nil)
        _ = try new.write(batch([(2, "a", 1)]), epoch: 2)
        try new.commit(through: 2)
        _ = try old.write(batch([(2, "a", 1)]), epoch: 2)
        #expect(throws: SQLError.self) { try old.commit(through: 2) }
        old.close()
        #expect(try visible(store).map(\.id).sorted() == [1, 2])
    }

    @Test func aFolderThatWasEmptiedIsAnotherOne() throws {
        let store = MemoryObjectStore()
        let sink = try sink(store)
        let target = try sink.prepare()
        #expect(try sink.prepare().incarnation == target.incarnation)
        try store.remove(try store.list(folder).map(\.location))
        #expect(throws: SQLError.self) { try sink.open(sink: SinkName("aa"), incarnation: target.incarnation) }
    }

    /// Operations fail at random, with and without effect, and writers are given up at random: no reader ever sees a row twice, nor one that
    /// is gone later unless it was not committed, and at the end every row is there once.
    @Test(arguments: 0..<150) func everyRowIsThereOnceWhateverFails(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let store = MemoryObjectStore()
        let sink = try sink(store, seed % 2 == 0 ? ["partition_by": "city"] : ["max_row_count": "7"])
        let target = try sink.prepare()
        let faults = Faults(seed: seed &+ 1000)
        let last: Int64 = 30
        let healthy = 400
        var tries = 0
        var committed: Int64 = -1
        while committed < last {
            tries += 1
            store.setFaults { [mayFail = tries < healthy] _, _ in mayFail ? faults.next() : nil }
            if let writer = try? sink.open(sink: SinkName("aa"), incarnation: target.incarnation) {
                run(writer, to: last, &random)
                // A process that ends closes nothing.
                if random.oneIn(2) { writer.close() }
            }
            store.setFaults(nil)
            let seen = try visible(store).map(\.id)
            #expect(Set(seen).count == seen.count, "seed \(seed): a row is there twice")
            let state =
                try store.look(at: folder + "/_millrace/aa/state") == nil ? nil : FolderState(try store.get(folder + "/_millrace/aa/state"))
            committed = state?.committed ?? -1
            let wanted = committed < 0 ? [] : (0...committed).flatMap { rows(of: $0).map(\.id) }
            #expect(Set(seen).isSuperset(of: wanted), "seed \(seed): rows through epoch \(committed) are missing")
        }
        _ = try sink.open(sink: SinkName("aa"), incarnation: target.incarnation)
        #expect(try visible(store).map(\.id).sorted() == (0...last).flatMap { rows(of: $0).map(\.id) }, "seed \(seed)")
    }

    private func rows(of epoch: Int64) -> [(id: Int64, city: String?, amount: Int128)] {
        (0..<5).map { (id: epoch * 10 + $0, city: "c\((epoch + $0) % 3)", amount: 1) }
    }

    /// Until something fails or the writer is given up.
    private func run(_ writer: any SinkWriter, to last: Int64, _ random: inout SeededGenerator) {
        do {
            var epoch = (writer.committedEpoch ?? -1) + 1
            while epoch <= last {
                _ = try writer.write(batch(rows(of: epoch)), epoch: epoch)
                if random.oneIn(3) || epoch == last { try writer.commit(through: epoch) }
                if random.oneIn(8) { return }
                epoch += 1
            }
        } catch {}  // The next one goes on.
    }

    @Test func statesAreReadAsTheyWereWritten() {
        var state = FolderState()
        #expect(FolderState(state.bytes) == state)
        state.committed = 41
        state.pending = 44
        state.files = [.init(rowCount: 3, byteCount: 900, name: "a b=c%2Fd/part-1.parquet")]
        #expect(FolderState(state.bytes) == state)
        for length in 0..<state.bytes.count { #expect(FolderState(Array(state.bytes.prefix(length))) == nil) }
        #expect(FolderState(Array("millrace folder sink 1\ncommitted x\nend\n".utf8)) == nil)
    }

    @Test func namesOfDirectoriesAreReadAsTheyWereWritten() {
        for value in ["a", "a/b=c", "100%", "é%zz", "a b", "x\u{1}y", "__HIVE_DEFAULT_PARTITION_", ".."] {
            let path = "/data/" + HivePath.directory("the col", value) + "/x.parquet"
            #expect(HivePath.values(in: path) == [.init(column: "the col", value: value)])
        }
        #expect(HivePath.values(in: HivePath.directory("c", nil) + "/x") == [.init(column: "c", value: nil)])
        #expect(HivePath.values(in: "=x/a/b=1/b=2/c=3") == [.init(column: "b", value: "2")])
    }
}

/// Which operations of a store fail, from a seed.
private final class Faults: Sendable {
    private let random: Mutex<SeededGenerator>

    init(seed: UInt64) { random = Mutex(SeededGenerator(seed: seed)) }

    func next() -> MemoryObjectStore.Fault? {
        random.withLock { random in
            guard random.oneIn(25) else { return nil }
            return random.oneIn(2) ? .refused(5) : .unanswered(5)
        }
    }
}
