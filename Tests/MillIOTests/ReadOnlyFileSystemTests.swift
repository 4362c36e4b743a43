import MillIO
import Testing

@Suite struct ReadOnlyFileSystemTests {
    private let disk = MemoryFileSystem()

    private func write(_ text: String, to path: String, _ files: any FileSystem, at offset: Int = 0) throws {
        let file = try files.open(path, .readWrite)
        try Array(text.utf8).withUnsafeBytes { try file.write($0, at: offset) }
    }

    private func text(_ path: String, _ files: any FileSystem) throws -> String { try text(files.open(path, .read)) }

    private func text(_ file: any File) throws -> String {
        var bytes = [UInt8](repeating: 0, count: 100)
        let count = try bytes.withUnsafeMutableBytes { try file.read(at: 0, into: $0) }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    @Test func whatIsChangedIsSeenHereAlone() throws {
        try disk.createDirectory("/data")
        try write("one two", to: "/data/a", disk)
        try write("kept", to: "/data/b", disk)
        let files = ReadOnlyFileSystem(disk)
        let file = try files.open("/data/a", .readWrite)
        try file.truncate(to: 5)
        try Array("ST".utf8).withUnsafeBytes { try file.write($0, at: 4) }
        try file.sync()
        #expect(try text(file) == "one ST" && file.size() == 6)
        try files.remove("/data/b")
        try write("new", to: "/data/c.new", files)
        try files.rename("/data/c.new", to: "/data/c")
        #expect(try files.list("/data") == ["a", "c"] && text("/data/c", files) == "new")
        #expect(!files.exists("/data/b") && files.exists("/data/c") && !files.exists("/data/c.new"))
        #expect(throws: IOFailure.self) { try files.open("/data/b", .read) }
        #expect(throws: IOFailure.self) { try files.open("/data/d", .read) }
        #expect(try disk.list("/data") == ["a", "b"] && text("/data/a", disk) == "one two" && text("/data/b", disk) == "kept")
    }

    @Test func aFileThatIsEmptiedIsAnother() throws {
        try disk.createDirectory("/data")
        try write("old", to: "/data/a", disk)
        let files = ReadOnlyFileSystem(disk)
        try Array("x".utf8).withUnsafeBytes { try files.open("/data/a", .create).write($0, at: 0) }
        #expect(try text("/data/a", files) == "x" && text("/data/a", disk) == "old")
    }
}
