import CMemory
import MillIO
import Synchronization
import Testing

/// In processes of their own, as what is told of caches holds for all threads, and on threads that keep nothing yet.
@Suite struct BatchMemoryTests {
    private static let size = 100_000

    /// One that another thread has written is used again once 2 MiB of such have been freed; what the thread itself allocated, at once.
    @Test func whatOthersWroteWaitsWhereCachesAreFar() async {
        await #expect(processExitsWith: .success) { try Self.farCaches() }
    }

    private static func farCaches() throws {
        mill_batch_caches_are_far(true)
        let (given, (own, early, late)) = try Self.onThread {
            let given = (0..<22).map { _ in Self.allocate() }
            return try (
                given,
                Self.onThread {
                    let own = Self.allocate()
                    for buffer in given.prefix(10) { Self.free(buffer) }
                    Self.free(own)
                    let early = (0..<5).map { _ in Self.allocate() }
                    for buffer in given.dropFirst(10) { Self.free(buffer) }
                    let late = Self.allocate()
                    for buffer in early + [late] { Self.free(buffer) }
                    return (own, early, late)
                }
            )
        }
        #expect(early.first == own)
        #expect(Set(given).isDisjoint(with: early))
        #expect(late == given.first)
    }

    @Test func whatOthersWroteIsUsedAgainAtOnceWhereCachesAreNear() async {
        await #expect(processExitsWith: .success) { try Self.nearCaches() }
    }

    private static func nearCaches() throws {
        let (given, taken) = try Self.onThread {
            let given = Self.allocate()
            return try (
                given,
                Self.onThread {
                    Self.free(given)
                    let taken = Self.allocate()
                    Self.free(taken)
                    return taken
                }
            )
        }
        #expect(taken == given)
    }

    /// An address of that many bytes that may all be written, aligned as columns are.
    private static func allocate() -> Int {
        let memory = mill_batch_allocate(size)!
        memory.initializeMemory(as: UInt8.self, repeating: 1, count: size)
        let address = Int(bitPattern: memory)
        #expect(address % 64 == 0)
        return address
    }

    private static func free(_ address: Int) { mill_batch_free(UnsafeMutableRawPointer(bitPattern: address), size) }

    /// What the body makes of it on a thread of its own.
    private static func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) throws -> Value {
        let result = Mutex<Result<Value, any Error>?>(nil)
        try PinnedThread {
            let made = Result { try body() }
            result.withLock { $0 = made }
        }.join()
        return try result.withLock { $0! }.get()
    }
}
