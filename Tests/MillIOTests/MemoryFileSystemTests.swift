import MillIO
import MillTestKit
import Testing

func put(_ text: String, _ file: any File, at offset: Int = 0) throws { try Array(text.utf8).withUnsafeBytes { try file.write($0, at: offset) } }

func content(_ file: any File) throws -> String {
    var bytes = [UInt8](repeating: 0, count: try file.size())
    let count = try bytes.withUnsafeMutableBytes { try file.read(at: 0, into: $0) }
    return String(decoding: bytes.prefix(count), as: UTF8.self)
}

@Suite struct MemoryFileSystemTests {
    @Test func aDurableDirectoryIsThereAfterAPowerCutWithAllAboveIt() throws {
        for seed in 0..<20 {
            let files = MemoryFileSystem()
            if seed % 2 == 0 { try files.createDirectory("/a") }
            // Made by a process that ended before it was durable.
            if seed % 4 == 1 { try files.createDirectory("/a/b/c") }
            if seed % 4 == 1 { for path in ["/", "/a"] { try files.syncDirectory(path) } }
            if seed % 2 == 0 { try files.syncDirectory("/") }
            try files.createDurableDirectory("/a/b/c")
            if seed % 4 == 1 { try files.syncDirectory("/a") }
            files.crash(random: SeededSource(UInt64(seed)))
            #expect(files.exists("/a/b/c"), "seed \(seed)")
        }
    }

    @Test func syncedContentSurvivesAPowerCut() throws {
        for seed in 0..<50 {
            let files = MemoryFileSystem()
            try files.createDirectory("/a/b")
            let file = try files.open("/a/b/f", .readWrite)
            try put("kept", file)
            try file.sync()
            try files.syncDirectory("/a/b")
            try files.syncDirectory("/a")
            try files.syncDirectory("/")
            try put("lost or not", file, at: 4)
            files.crash(random: SeededSource(UInt64(seed)))
            #expect(throws: IOFailure.self) { try content(file) }
            #expect(try content(files.open("/a/b/f", .read)).hasPrefix("kept"))
        }
    }

    @Test func unsyncedThingsAreSometimesLost() throws {
        var lostEntries = 0
        var lostWrites = 0
        for seed in 0..<50 {
            let files = MemoryFileSystem()
            let kept = try files.open("/kept", .readWrite)
            try files.syncDirectory("/")
            try put("x", kept)
            _ = try files.open("/new", .readWrite)
            files.crash(random: SeededSource(UInt64(seed)))
            if !files.exists("/new") { lostEntries += 1 }
            if try content(files.open("/kept", .read)).isEmpty { lostWrites += 1 }
        }
        #expect((1..<50).contains(lostEntries) && (1..<50).contains(lostWrites))
    }

    @Test func directoriesMoveWithTheirFiles() throws {
        let files = MemoryFileSystem()
        try files.createDirectory("/a")
        try put("x", files.open("/a/f", .readWrite))
        try files.rename("/a", to: "/b")
        #expect(try files.list("/") == ["b"] && files.list("/b") == ["f"])
        try files.remove("/b")
        #expect(!files.exists("/b/f"))
    }

    @Test func faultsAreRaisedAsTheSystemWould() throws {
        let files = MemoryFileSystem()
        files.setFault { operation, path in operation == .write && path.hasSuffix("/full") ? 28 : nil }
        let file = try files.open("/full", .readWrite)
        #expect(throws: IOFailure("write", path: "/full", errorNumber: 28)) { try put("x", file) }
        #expect(try content(file).isEmpty)
    }
}
