import MillHTTPClient
import MillIO
import MillTestKit
import Testing

@testable import MillObjectStore

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// What every store promises, asked of each.
@Suite struct ObjectStoreSuite {
    enum Kind: String, CaseIterable { case memory, localInMemory, local, s3 }

    /// A store and where to put things in it, alive while this is.
    final class Place {
        let store: any ObjectStore
        let base: String
        private let directory: String?

        init(_ kind: Kind) throws {
            let simulated = Environment(files: MemoryFileSystem(), clock: VirtualClock(), random: SeededSource(7))
            switch kind {
            case .memory: (store, base, directory) = (MemoryObjectStore(), "memory://m/", nil)
            case .localInMemory: (store, base, directory) = (LocalObjectStore(environment: simulated, root: "/lake"), "file:///lake/", nil)
            case .local:
                var template = Array("\(Environment.system.variable("TMPDIR") ?? "/tmp")/millrace-store-XXXXXX".utf8CString)
                guard mkdtemp(&template) != nil else { throw IOFailure("make", path: "temporary directory", errorNumber: errno) }
                let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
                (store, base, directory) = (LocalObjectStore(environment: .system, root: path), "file://\(path)/", path)
            case .s3:
                let options = S3Options(
                    endpoint: "http://fake:1", credentials: FixedCredentials(S3Credentials(accessKeyID: "a", secretAccessKey: "b")))
                (store, base, directory) = (
                    try S3ObjectStore(options, transport: FakeS3().transport, environment: simulated), "s3://bucket/lake/", nil
                )
            }
        }

        deinit {
            if let directory { try? LocalFileSystem().remove(directory) }  // Left to the system's temporary files.
        }
    }

    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test(arguments: Kind.allCases) func whatIsPutIsGot(_ kind: Kind) throws {
        let place = try Place(kind)
        for name in ["a", "b/c/d.parquet", "day=2026-01-01/name=a%2Fb/x", "with space+and&signs", "ünï/ç", "empty"] {
            let content = name == "empty" ? [] : bytes("content of \(name)")
            try place.store.put(place.base + name, content, .always)
            #expect(try place.store.get(place.base + name) == content)
            let entry = try place.store.look(at: place.base + name)
            #expect(entry?.byteCount == content.count && entry?.location == place.base + name && entry?.tag != nil)
        }
        try place.store.put(place.base + "a", bytes("another"), .always)
        #expect(try place.store.get(place.base + "a") == bytes("another"))
    }

    @Test(arguments: Kind.allCases) func whatIsNotThereIsSaid(_ kind: Kind) throws {
        let place = try Place(kind)
        #expect(try place.store.look(at: place.base + "none") == nil)
        #expect(#expect(throws: IOFailure.self) { try place.store.get(place.base + "none") }?.errorNumber == ENOENT)
        #expect(#expect(throws: IOFailure.self) { try place.store.openForReading(place.base + "none") }?.errorNumber == ENOENT)
        try place.store.remove([place.base + "none"])
        #expect(try place.store.list(place.base + "none/").isEmpty)
    }

    @Test(arguments: Kind.allCases) func conditionsAreDecidedWithThePut(_ kind: Kind) throws {
        let place = try Place(kind)
        let location = place.base + "pointer"
        try place.store.put(location, bytes("1"), .isMissing)
        #expect(#expect(throws: IOFailure.self) { try place.store.put(location, bytes("2"), .isMissing) }?.errorNumber == EEXIST)
        #expect(try place.store.get(location) == bytes("1"))
        let tag = try #require(try place.store.look(at: location)?.tag)
        try place.store.put(location, bytes("longer"), .hasTag(tag))
        #expect(#expect(throws: IOFailure.self) { try place.store.put(location, bytes("3"), .hasTag(tag)) }?.errorNumber == EEXIST)
        #expect(try place.store.get(location) == bytes("longer"))
        #expect(
            #expect(throws: IOFailure.self) { try place.store.put(place.base + "none", bytes("3"), .hasTag(tag)) }?.errorNumber == EEXIST)
        #expect(try place.store.look(at: place.base + "none") == nil)
    }

    @Test(arguments: Kind.allCases) func ofManyWritersOneMakesIt(_ kind: Kind) throws {
        let place = try Place(kind)
        let (store, location) = (place.store, place.base + "race")
        let winners = Winners()
        let threads = try (0..<8).map { writer in
            try PinnedThread {
                if (try? store.put(location, [UInt8(writer)], .isMissing)) != nil { winners.add(writer) }
            }
        }
        for thread in threads { thread.join() }
        #expect(winners.all.count == 1)
        #expect(try store.get(location) == winners.all.map { UInt8($0) })
    }

    @Test(arguments: Kind.allCases) func listingsHaveWhatBeginsWithThePrefix(_ kind: Kind) throws {
        let place = try Place(kind)
        for name in ["t/data/1", "t/data/2", "t/data/sub/3", "t/metadata/v1", "t2/data/4"] {
            try place.store.put(place.base + name, [1], .always)
        }
        let names = { (prefix: String) in try place.store.list(place.base + prefix).map { String($0.location.dropFirst(place.base.count)) }
        }
        #expect(try names("t/data/") == ["t/data/1", "t/data/2", "t/data/sub/3"])
        #expect(try names("t") == ["t/data/1", "t/data/2", "t/data/sub/3", "t/metadata/v1", "t2/data/4"])
        #expect(try names("t/da") == ["t/data/1", "t/data/2", "t/data/sub/3"])
        #expect(try names("").count == 5)
        #expect(try names("x").isEmpty)
        try place.store.remove([place.base + "t/data/1", place.base + "t/data/sub/3"])
        #expect(try names("t/") == ["t/data/2", "t/metadata/v1"])
    }

    @Test(arguments: Kind.allCases) func rangesAreReadOfTheObjectThatWasOpened(_ kind: Kind) throws {
        let place = try Place(kind)
        let content = (0..<10_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        try place.store.put(place.base + "f", content, .always)
        let file = try place.store.openForReading(place.base + "f")
        #expect(try file.size() == content.count)
        for range in [0..<10, 5000..<9000, 9990..<10_000, 9990..<10_050, 20_000..<20_010] {
            var buffer = [UInt8](repeating: 0, count: range.count)
            let count = try buffer.withUnsafeMutableBytes { try file.read(at: range.lowerBound, into: $0) }
            #expect(Array(buffer[..<count]) == Array(content.dropFirst(range.lowerBound).prefix(range.count)), "\(range)")
        }
        try place.store.put(place.base + "f", content.reversed(), .always)
        var buffer = [UInt8](repeating: 0, count: 100)
        let read = Result { try buffer.withUnsafeMutableBytes { try file.read(at: 100, into: $0) } }
        if case .success = read { #expect(buffer == Array(content[100..<200])) }
    }

    @Test(arguments: Kind.allCases) func anObjectIsSeenWhenItIsFinished(_ kind: Kind) throws {
        let place = try Place(kind)
        let writer = try place.store.openForWriting(place.base + "d/f")
        var content: [UInt8] = []
        for piece in 0..<50 {
            let bytes = [UInt8](repeating: UInt8(piece), count: 997)
            try bytes.withUnsafeBytes { try writer.write($0, at: content.count) }
            content += bytes
        }
        #expect(try writer.size() == content.count)
        #expect(throws: IOFailure.self) { try [1].withUnsafeBytes { try writer.write($0, at: 5) } }
        #expect(try place.store.list(place.base).isEmpty)
        #expect(try place.store.look(at: place.base + "d/f") == nil)
        try writer.finish()
        #expect(try place.store.get(place.base + "d/f") == content)
        #expect(throws: IOFailure.self) { try writer.finish() }
    }

    @Test(arguments: Kind.allCases) func whatIsAbandonedOrReleasedIsNowhere(_ kind: Kind) throws {
        let place = try Place(kind)
        let writer = try place.store.openForWriting(place.base + "a")
        try [UInt8](repeating: 1, count: 100).withUnsafeBytes { try writer.write($0, at: 0) }
        writer.abandon()
        #expect(throws: IOFailure.self) { try writer.finish() }
        do {
            let released = try place.store.openForWriting(place.base + "b")
            try [UInt8](repeating: 1, count: 100).withUnsafeBytes { try released.write($0, at: 0) }
        }
        #expect(try place.store.list(place.base).isEmpty)
    }
}
