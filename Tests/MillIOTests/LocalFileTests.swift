import MillIO
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

@Suite struct LocalFileTests {
    private static func blocks(_ path: String) -> Int {
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_blocks) * 512 : -1
    }

    /// A new directory and a path in it.
    private static func place() throws -> (directory: String, path: String) {
        var template = Array("/tmp/millrace-file-XXXXXX".utf8CString)
        let directory = String(cString: try #require(mkdtemp(&template)))
        return (directory, directory + "/log")
    }

    @Test func roomIsReservedBeyondTheSizeAndGivenBack() throws {
        let (directory, path) = try Self.place()
        defer { rmdir(directory) }
        let file = try LocalFileSystem().open(path, .create)
        defer { unlink(path) }
        try file.reserve(1 << 20)
        #expect(try file.size() == 0)
        let content = UnsafeMutableRawBufferPointer.allocate(byteCount: 4, alignment: 1)
        defer { content.deallocate() }
        content.copyBytes(from: "kept".utf8)
        try file.write(UnsafeRawBufferPointer(content), at: 0)
        try file.reserve(1 << 20)
        #expect(try file.size() == 4)
        // A file system without the call reserves nothing.
        #expect(Self.blocks(path) <= 2 << 20)
        try file.truncate(to: 4)
        try file.sync()
        #expect(try file.size() == 4)
        #expect(Self.blocks(path) <= 64 << 10)
        let read = UnsafeMutableRawBufferPointer.allocate(byteCount: 8, alignment: 1)
        defer { read.deallocate() }
        #expect(try file.read(at: 0, into: read) == 4)
        #expect(read.prefix(4).elementsEqual(content))
    }

    /// Past the page cache or not, as the file system has it: what was written is what is read.
    @Test func wholeBlocksAndOtherWritesMix() throws {
        let (directory, path) = try Self.place()
        defer { rmdir(directory) }
        let file = try LocalFileSystem().open(path, .create)
        defer { unlink(path) }
        let content = UnsafeMutableRawBufferPointer.allocate(byteCount: 4 * fileBlockBytes, alignment: fileBlockBytes)
        defer { content.deallocate() }
        for index in content.indices { content[index] = UInt8(truncatingIfNeeded: index / 7) }
        func part(_ range: Range<Int>) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: content[range]) }
        // The second block twice: in part through the cache, then whole.
        try file.writeBlocks(part(0..<fileBlockBytes), at: 0)
        try file.write(part(fileBlockBytes..<fileBlockBytes + 100), at: fileBlockBytes)
        try file.sync()
        #expect(try file.size() == fileBlockBytes + 100)
        try file.writeBlocks(part(fileBlockBytes..<4 * fileBlockBytes), at: fileBlockBytes)
        let read = UnsafeMutableRawBufferPointer.allocate(byteCount: content.count, alignment: 1)
        defer { read.deallocate() }
        #expect(try file.read(at: 0, into: read) == content.count)
        #expect(read.elementsEqual(content))
    }
}
