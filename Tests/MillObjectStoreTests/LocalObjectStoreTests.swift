import MillIO
import MillTestKit
import Testing

@testable import MillObjectStore

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

@Suite struct LocalObjectStoreTests {
    private let files = MemoryFileSystem()
    private var environment: Environment { Environment(files: files, clock: VirtualClock(), random: SeededSource(3)) }
    private var store: LocalObjectStore { LocalObjectStore(environment: environment, root: "/lake") }

    @Test func nothingOutsideOfTheRootIsTouched() throws {
        for location in [
            "file:///etc/passwd", "/lakeside/x", "file:///lake/../etc/x", "file://host/lake/x", "file:relative", "lake/x",
            "file:///lake/a\0b", "file:///", "file:///lake/../\u{301}x", "/lake/../\u{301}/x",
        ] {
            let failure = #expect(throws: IOFailure.self, "\(location)") { try store.put(location, [1], .always) }
            #expect([EINVAL, EACCES].contains(failure?.errorNumber ?? 0), "\(location)")
            #expect(throws: IOFailure.self, "\(location)") { try store.get(location) }
        }
        #expect(throws: IOFailure.self) { try store.list("file:///") }
        #expect(throws: IOFailure.self) { try store.remove(["file:///etc"]) }
    }

    @Test func allWaysToWriteALocationAreOneFile() throws {
        try store.put("file:///lake/a%20b", [1], .always)
        for location in ["file:/lake/a%20b", "/lake/a%20b", "file://localhost/lake/a%20b"] {
            #expect(try store.get(location) == [1])
            #expect(try store.list(location).map(\.location) == [location])
        }
        #expect(files.exists("/lake/a%20b"))
    }

    @Test func aDirectoryIsNoObject() throws {
        try store.put("file:///lake/d/f", [1], .always)
        #expect(try store.look(at: "file:///lake/d") == nil)
        #expect(throws: IOFailure.self) { try store.remove(["file:///lake/d"]) }
        #expect(try store.get("file:///lake/d/f") == [1])
    }

    @Test func aDirectoryThatWasRemovedIsMadeAgain() throws {
        let store = store
        try store.put("file:///lake/d/f", [1], .always)
        try files.remove("/lake/d")
        try store.put("file:///lake/d/f", [2], .always)
        #expect(try store.get("file:///lake/d/f") == [2])
    }

    @Test func whatIsBesideTheRootIsNotInItsListing() throws {
        let unbound = LocalObjectStore(environment: environment)
        try unbound.put("file:///lakeside/x", [1], .always)
        try store.put("file:///lake/y", [1], .always)
        #expect(try store.list("file:///lake").map(\.location) == ["file:///lake/y"])
    }

    @Test func anAnsweredPutOutlivesAPowerCutWhole() throws {
        for seed in 0..<50 as Range<UInt64> {
            let files = MemoryFileSystem()
            let store = LocalObjectStore(
                environment: Environment(files: files, clock: VirtualClock(), random: SeededSource(seed)), root: "/lake")
            let content = [UInt8](repeating: 9, count: 2000)
            try store.put("file:///lake/a/b/kept", content, seed % 2 == 0 ? .always : .isMissing)
            let writer = try store.openForWriting("file:///lake/a/b/finished")
            try content.withUnsafeBytes { try writer.write($0, at: 0) }
            try writer.finish()
            let unfinished = try store.openForWriting("file:///lake/a/b/unfinished")
            try content.withUnsafeBytes { try unfinished.write($0, at: 0) }
            files.crash(random: SeededSource(seed))
            #expect(try store.get("file:///lake/a/b/kept") == content, "seed \(seed)")
            #expect(try store.get("file:///lake/a/b/finished") == content, "seed \(seed)")
            #expect(try store.list("file:///lake/").count == 2, "seed \(seed)")
        }
    }

    @Test func whateverOperationFailsAnObjectIsWholeOrNotThere() throws {
        let content = [UInt8](repeating: 9, count: 2000)
        for failing in 0..<20 {
            for condition in [PutCondition.always, .isMissing] {
                let files = MemoryFileSystem()
                let store = LocalObjectStore(
                    environment: Environment(files: files, clock: VirtualClock(), random: SeededSource(3)), root: "/lake")
                let count = Winners()
                files.setFault { operation, _ in
                    count.add(0)
                    return count.all.count == failing + 1 ? ENOSPC : nil
                }
                let isPut = (try? store.put("file:///lake/a/f", content, condition)) != nil
                files.setFault(nil)
                let found = try? store.get("file:///lake/a/f")
                #expect(found == nil || found == content)
                if isPut { #expect(found == content) }
            }
        }
    }

    @Test func leftoversAreRemovedAndNothingElse() throws {
        try store.put("file:///lake/a/f", [1], .always)
        let unfinished = try store.openForWriting("file:///lake/a/b/g")
        #expect(try files.list("/lake/a/b").count == 1)
        #expect(try ObjectStores(local: store, s3: nil).removeLeftovers(under: "file:///lake", olderThanMicros: .min) == 0)
        #expect(try store.removeLeftovers(under: "file:///lake") == 1)
        #expect(try files.list("/lake/a/b").isEmpty)
        #expect(try store.list("file:///lake/").map(\.location) == ["file:///lake/a/f"])
        #expect(throws: IOFailure.self) { try unfinished.finish() }
        #expect(throws: IOFailure.self) { try store.put("file:///lake/.millrace-x", [1], .always) }
    }
}
