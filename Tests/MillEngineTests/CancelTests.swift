import MillBase
import MillEngine
import Synchronization
import Testing

/// A cancel ends whatever a session runs, at once, and leaves nothing behind.
@Suite struct CancelTests {
    private static let endless = "SELECT count(*) AS c FROM n a, n b, n c, n d, n e, n f WHERE a.i + b.i + c.i + d.i + e.i + f.i < 0"

    @Test(arguments: [
        endless,
        "SELECT a.i FROM n a, n b, n c, n d, n e, n f",
        "INSERT INTO n \(endless)",
        "CREATE TABLE made AS \(endless)",
        "SELECT a.i FROM n a JOIN n b ON a.i <> b.i JOIN n c ON b.i <> c.i JOIN n d ON c.i <> d.i JOIN n e ON d.i <> e.i ORDER BY 1",
    ])
    func aStatementThatWouldRunForEverEndsWhenCancelled(statement: String) async throws {
        let world = await EngineWorld()
        try await world.run("CREATE TABLE n (i int); INSERT INTO n VALUES (1), (2), (3), (4), (5), (6), (7), (8)")
        for _ in 0..<3 { try await world.run("INSERT INTO n SELECT a.i + 8 FROM n a JOIN n b ON a.i = b.i") }
        let isDone = Mutex(false)
        async let canceller: Void = {
            while !isDone.withLock({ $0 }) {
                world.session.cancel()
                await Task.yield()
            }
        }()
        let outcome: Result<[EngineWorld.Answer], SQLError>
        do throws(SQLError) { outcome = .success(try await world.run(statement)) } catch { outcome = .failure(error) }
        isDone.withLock { $0 = true }
        await canceller
        guard case .failure(let error) = outcome else {
            Issue.record("it was not cancelled")
            return
        }
        #expect(error.sqlState == .queryCanceled)
        #expect(try await world.run("SELECT max(i) > 0 FROM n").last?.rows == [["t"]])
        #expect(try await world.run("SHOW TABLES").last?.rows == [["n"]])
        await world.stop()
    }

    @Test func aCancelBetweenStatementsCancelsNothing() async throws {
        let world = await EngineWorld()
        world.session.cancel()
        #expect(try await world.run("SELECT 1").last?.rows == [["1"]])
        await world.stop()
    }
}
