import MillIO
import Testing

@testable import MillObjectStore

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

@Suite struct MemoryObjectStoreTests {
    @Test func aFaultComesBeforeOrAfterTheDeed() throws {
        let store = MemoryObjectStore()
        store.setFaults { operation, location in
            switch (operation, location) {
            case (.put, "x://refused"): .refused(ETIMEDOUT)
            case (.put, "x://unanswered"), (.finish, _): .unanswered(EIO)
            default: nil
            }
        }
        #expect(#expect(throws: IOFailure.self) { try store.put("x://refused", [1], .always) }?.errorNumber == ETIMEDOUT)
        #expect(try store.look(at: "x://refused") == nil)
        #expect(throws: IOFailure.self) { try store.put("x://unanswered", [1], .always) }
        #expect(try store.get("x://unanswered") == [1])
        let writer = try store.openForWriting("x://written")
        try [UInt8]([1, 2]).withUnsafeBytes { try writer.write($0, at: 0) }
        #expect(throws: IOFailure.self) { try writer.finish() }
        #expect(try store.get("x://written") == [1, 2])
    }
}
