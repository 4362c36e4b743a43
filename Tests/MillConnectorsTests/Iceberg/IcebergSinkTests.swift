import MillBase
import MillColumnar
import MillConnectorKit
import MillHTTPClient
import MillIceberg
import MillObjectStore
import MillTestKit
import Testing

@testable import MillConnectors

@Suite struct IcebergSinkTests {
    private let world: SinkWorld
    private let name = SinkName("00112233445566778899aabbccddeeff")
    private static let columns = "id:bigint name:text"

    init() throws { world = try SinkWorld() }

    private func failure(_ body: () throws -> Void) -> SQLError {
        do { try body() } catch { return SQLError(any: error) }
        return SQLError(.successfulCompletion, "nothing failed")
    }

    @Test func rowsAreInTheTableOnceTheyAreCommitted() throws {
        let sink = try world.sink(Self.columns)
        let target = try sink.prepare()
        let writer = try sink.open(sink: name, incarnation: target.incarnation)
        #expect(writer.committedEpoch == nil)
        #expect(try writer.write(.drawn("id:bigint name:text; +1 1 one; +2 2 null"), epoch: 7).isEmpty)
        #expect(writer.pending.rowCount == 3)
        #expect(try world.rows().isEmpty)
        try writer.commit(through: 7)
        #expect(try world.rows() == ["1 one", "2 null", "2 null"])
        #expect(writer.committedEpoch == 7 && writer.pending.rowCount == 0)
        let again = try sink.open(sink: name, incarnation: target.incarnation)
        #expect(again.committedEpoch == 7)
        let summary = try world.open().metadata.snapshot(ofBranch: "main")
        #expect(summary?.summaryValue("millrace.epoch") == "7")
    }

    @Test func whatWasNotCommittedLeavesNothing() throws {
        let sink = try world.sink(Self.columns)
        let target = try sink.prepare()
        let writer = try sink.open(sink: name, incarnation: target.incarnation)
        _ = try writer.write(.drawn("id:bigint name:text; +1 1 one"), epoch: 1)
        writer.close()
        #expect(try world.rows().isEmpty)
        let table = try world.open()
        #expect(try table.store.list(table.metadata.dataLocation).isEmpty)
    }

    @Test func anUpsertHasOneRowOfEachKey() throws {
        let sink = try world.sink("id:bigint name:text", key: [0])
        let target = try sink.prepare()
        let writer = try sink.open(sink: name, incarnation: target.incarnation)
        _ = try writer.write(.drawn("id:bigint name:text; +1 1 one; +1 2 two; +1 3 three"), epoch: 1)
        try writer.commit(through: 1)
        _ = try writer.write(.drawn("id:bigint name:text; -1 1 one; -1 2 two; +1 1 uno"), epoch: 2)
        try writer.commit(through: 2)
        #expect(try world.rows() == ["1 uno", "3 three"])
        let schema = try world.open().metadata.currentSchema
        #expect(schema.identifierFieldIDs == [1] && schema.field(named: "id")?.isRequired == true)
    }

    @Test func aClearedUpsertHasOnlyWhatComesAfterwards() throws {
        let sink = try world.sink(Self.columns, key: [0])
        let target = try sink.prepare()
        let writer = try sink.open(sink: name, incarnation: target.incarnation)
        _ = try writer.write(.drawn("id:bigint name:text; +1 1 one; +1 2 two"), epoch: 1)
        try writer.commit(through: 1)
        try writer.clear()
        _ = try writer.write(.drawn("id:bigint name:text; +1 2 deux; +1 3 trois"), epoch: 2)
        #expect(try world.rows() == ["1 one", "2 two"])
        try writer.commit(through: 2)
        #expect(try world.rows() == ["2 deux", "3 trois"])
        #expect(throws: SQLError.self) { try world.sink(Self.columns).open(sink: SinkName("0"), incarnation: nil).clear() }
    }

    /// What it reads begins anew while epochs from before wait to be committed.
    @Test func aTableIsEmptiedOfWhatIsNotCommittedToo() throws {
        let sink = try world.sink(Self.columns, key: [0])
        let target = try sink.prepare()
        let writer = try sink.open(sink: name, incarnation: target.incarnation)
        _ = try writer.write(.drawn("id:bigint name:text; +1 1 one; +1 2 two"), epoch: 1)
        try writer.commit(through: 1)
        _ = try writer.write(.drawn("id:bigint name:text; -1 1 one; +1 1 uno; +1 4 vier"), epoch: 2)
        try writer.clear()
        _ = try writer.write(.drawn("id:bigint name:text; +1 2 deux; +1 3 trois"), epoch: 3)
        try writer.clear()
        _ = try writer.write(.drawn("id:bigint name:text; +1 3 drei"), epoch: 4)
        try writer.commit(through: 4)
        #expect(try world.rows() == ["3 drei"])
        _ = try writer.write(.drawn("id:bigint name:text; -1 3 drei; +1 3 three; +1 1 one"), epoch: 5)
        try writer.commit(through: 5)
        #expect(try world.rows() == ["1 one", "3 three"])
    }

    @Test func aSecondWriterOfOneSinkIsStopped() throws {
        let sink = try world.sink(Self.columns)
        let target = try sink.prepare()
        let first = try sink.open(sink: name, incarnation: target.incarnation)
        let second = try world.sink(Self.columns).open(sink: name, incarnation: target.incarnation)
        _ = try first.write(.drawn("id:bigint name:text; +1 1 one"), epoch: 1)
        try first.commit(through: 1)
        _ = try second.write(.drawn("id:bigint name:text; +1 1 one"), epoch: 1)
        let refusal = failure { try second.commit(through: 1) }
        #expect(refusal.sqlState == .objectNotInPrerequisiteState && !refusal.mayPass)
        #expect(try world.rows() == ["1 one"])
    }

    @Test func otherSinksAndWritersAreInNobodysWay() throws {
        let sink = try world.sink(Self.columns)
        let target = try sink.prepare()
        let first = try sink.open(sink: name, incarnation: target.incarnation)
        let other = try sink.open(sink: SinkName("ffeeddccbbaa99887766554433221100"), incarnation: target.incarnation)
        for epoch in 1...3 as ClosedRange<Int64> {
            _ = try first.write(.drawn("id:bigint name:text; +1 \(epoch) first"), epoch: epoch)
            _ = try other.write(.drawn("id:bigint name:text; +1 \(epoch) other"), epoch: epoch)
            try first.commit(through: epoch)
            try other.commit(through: epoch)
        }
        #expect(try world.rows() == ["1 first", "1 other", "2 first", "2 other", "3 first", "3 other"])
    }

    /// Each commit's answer is lost: the table says whether it is there.
    @Test func aCommitWhoseAnswerIsLostIsMadeOnce() throws {
        let sink = try world.sink(Self.columns)
        let target = try sink.prepare()
        var writer = try sink.open(sink: name, incarnation: target.incarnation)
        world.setFate { $0.method == "POST" && $0.url.hasSuffix("/tables/orders") ? .unanswered : nil }
        for epoch in 1...3 as ClosedRange<Int64> {
            _ = try writer.write(.drawn("id:bigint name:text; +1 \(epoch) row"), epoch: epoch)
            try writer.commit(through: epoch)
        }
        // Not even the table can be asked.
        let answers = Countdown(1)
        world.setFate { request in
            if request.method == "POST" { return answers.next() ? .unanswered : nil }
            return answers.isOver ? .unsent : nil
        }
        _ = try writer.write(.drawn("id:bigint name:text; +1 4 row"), epoch: 4)
        let refusal = failure { try writer.commit(through: 4) }
        #expect(refusal.mayPass && refusal.sqlState == .connectionFailure, "\(refusal)")
        writer.close()
        world.setFate(nil)
        writer = try sink.open(sink: name, incarnation: target.incarnation)
        #expect(writer.committedEpoch == 4)
        #expect(try world.rows() == ["1 row", "2 row", "3 row", "4 row"])
    }

    /// The table was opened again before the commit came: nobody else is at work, so it is opened once more.
    @Test func aCommitThatArrivesLateIsNoOtherWriters() throws {
        let sink = try world.sink(Self.columns)
        let target = try sink.prepare()
        let name = SinkName("0f0e0d0c0b0a09080706050403020100")
        let first = try sink.open(sink: name, incarnation: target.incarnation)
        world.setFate { $0.method == "POST" && $0.url.hasSuffix("/tables/orders") ? .late : nil }
        _ = try first.write(.drawn("id:bigint name:text; +1 1 row"), epoch: 1)
        #expect(failure { try first.commit(through: 1) }.mayPass)
        first.close()
        world.setFate(nil)
        let second = try sink.open(sink: name, incarnation: target.incarnation)
        #expect(second.committedEpoch == nil)
        _ = try second.write(.drawn("id:bigint name:text; +1 1 row; +1 2 row"), epoch: 2)
        world.deliverLate()
        let refusal = failure { try second.commit(through: 2) }
        #expect(refusal.mayPass, "\(refusal)")
        second.close()
        #expect(try sink.open(sink: name, incarnation: target.incarnation).committedEpoch == 1)
        #expect(try world.rows() == ["1 row"])
    }

    @Test func aTableMadeAnewIsNotTakenForTheOldOne() throws {
        let sink = try world.sink(Self.columns)
        let target = try sink.prepare()
        let writer = try sink.open(sink: name, incarnation: target.incarnation)
        try world.drop("orders")
        // Until there is another one it may come back.
        #expect(failure { _ = try sink.open(sink: name, incarnation: target.incarnation) }.mayPass)
        let anew = try sink.prepare()
        #expect(anew.incarnation != target.incarnation)
        let refusal = failure { _ = try sink.open(sink: name, incarnation: target.incarnation) }
        #expect(refusal.sqlState == .objectNotInPrerequisiteState && refusal.hint?.contains("create it again") == true)
        _ = try? writer.write(.drawn("id:bigint name:text; +1 1 one"), epoch: 1)
        #expect(failure { try writer.commit(through: 1) }.sqlState != .successfulCompletion)
        #expect(try world.rows().isEmpty)
    }

    @Test func progressOutlivesTheSnapshotsThatMadeIt() throws {
        let sink = try world.sink(Self.columns)
        let target = try sink.prepare()
        let writer = try sink.open(sink: name, incarnation: target.incarnation)
        _ = try writer.write(.drawn("id:bigint name:text; +1 1 one"), epoch: 41)
        try writer.commit(through: 41)
        let other = try sink.open(sink: SinkName("ffeeddccbbaa99887766554433221100"), incarnation: target.incarnation)
        _ = try other.write(.drawn("id:bigint name:text; +1 2 two"), epoch: 1)
        try other.commit(through: 1)
        var settings = SnapshotExpiry.Settings()
        (settings.keepMax, settings.age) = (1, .zero)
        _ = try SnapshotExpiry(settings).run(try world.open())
        #expect(try world.open().metadata.snapshots.count == 1)
        #expect(try sink.open(sink: name, incarnation: target.incarnation).committedEpoch == 41)
    }
}
