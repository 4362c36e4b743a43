import MillBase
import MillConnectorKit
import MillIO
import Testing

@testable import MillConnectors

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A directory of its own, removed at the end.
private final class Scratch {
    let path: String
    private let files = LocalFileSystem()

    init() throws {
        var template = Array("/tmp/millrace-files-XXXXXX".utf8CString)
        path = String(cString: try #require(mkdtemp(&template)))
    }

    deinit { try? files.remove(path) }

    func write(_ name: String, _ text: String) throws {
        if let slash = name.lastIndex(of: "/") { try files.createDirectory(path + "/" + name[..<slash]) }
        let file = try files.open(path + "/" + name, .create)
        var text = text
        try text.withUTF8 { bytes in try file.write(UnsafeRawBufferPointer(bytes), at: 0) }
    }
}

@Suite struct FileConnectorTests {
    private func readAll(_ path: String, blockBytes: Int, at offset: Int64 = 0, maxRecords: Int = 3, maxBytes: Int = 1 << 20) throws -> [ReadRecord] {
        let connector = FileConnector(path: path, files: LocalFileSystem(), blockBytes: blockBytes)
        let split = try #require(try connector.currentSplits().first)
        let reader = try connector.openReader(split, at: SplitOffset(offset)) {}
        var records: [ReadRecord] = []
        var last = offset
        while let chunk = try reader.poll(maxRecords: maxRecords, maxBytes: maxBytes) {
            #expect(chunk.count <= maxRecords)
            #expect(chunk.isFollowedByNewlines)
            #expect(chunk.nextOffset.position > last)
            // Its own lines and not its block; the newline that ends the last line may not be one of the file.
            #expect(Int64(chunk.byteCount) <= chunk.nextOffset.position - last + 1)
            last = chunk.nextOffset.position
            records += chunk.records
        }
        #expect(reader.isFinished)
        #expect(SplitOffset(last) == reader.highWatermark)
        return records
    }

    @Test(arguments: ["\n", "\r\n"]) func linesAreTheSameForAllBlockSizes(newline: String) throws {
        let scratch = try Scratch()
        let lines = ["{\"a\":1}", "", "x", "a line that is longer than some of the blocks it is read in", "", "é", "last one"]
        for hasLastNewline in [true, false] {
            try scratch.write("f", lines.joined(separator: newline) + (hasLastNewline ? newline : ""))
            var expected: [ReadRecord] = []
            var position: Int64 = 0
            for line in lines {
                if !line.isEmpty { expected.append(ReadRecord(position: position, value: line)) }
                position += Int64(line.utf8.count + newline.utf8.count)
            }
            for blockBytes in 1...64 {
                #expect(try readAll(scratch.path + "/f", blockBytes: blockBytes) == expected, "blocks of \(blockBytes)")
                #expect(try readAll(scratch.path + "/f", blockBytes: blockBytes, maxBytes: 1) == expected)
            }
            // Every record's position is a place to go on from.
            for (index, record) in expected.enumerated() {
                #expect(try readAll(scratch.path + "/f", blockBytes: 16, at: record.position) == Array(expected[index...]))
            }
        }
    }

    /// A block is written again only once nobody holds a chunk of it.
    @Test func chunksThatAreHeldStayAsTheyAre() throws {
        let scratch = try Scratch()
        let lines = (0..<400).map { "\($0) " + String(repeating: "x", count: $0 % 37) }
        try scratch.write("f", lines.joined(separator: "\n"))
        let connector = FileConnector(path: scratch.path + "/f", files: LocalFileSystem(), blockBytes: 64)
        for every in 1...5 {
            let reader = try connector.openReader(try #require(try connector.currentSplits().first), at: SplitOffset(0)) {}
            var (held, read): ([RawChunk], [[ReadRecord]]) = ([], [])
            while let chunk = try reader.poll(maxRecords: 3, maxBytes: 1 << 20) {
                read.append(chunk.records)
                if read.count % every == 0 { held.append(chunk) }
            }
            #expect(read.joined().map(\.value) == lines)
            #expect(held.map(\.records) == stride(from: every - 1, to: read.count, by: every).map { read[$0] })
        }
    }

    @Test func recordsOfCSVAreTheSameForAllBlockSizes() throws {
        let scratch = try Scratch()
        let records = ["1,\"two\nlines, and more\"", "2,\"a \"\"quote\"\"\"", "3,", "\"4\",é"]
        for text in [records.joined(separator: "\n"), records.joined(separator: "\r\n") + "\r\n\r\n"] {
            try scratch.write("f.csv", "\u{FEFF}id,\"na\nme\"\n" + text)
            for blockBytes in 1...40 {
                let connector = FileConnector(
                    path: scratch.path + "/f.csv", format: .csv(CSVDialect()), files: LocalFileSystem(), blockBytes: blockBytes)
                let split = try #require(try connector.currentSplits().first)
                let reader = try connector.openReader(split, at: SplitOffset(0)) {}
                var read: [ReadRecord] = []
                while let chunk = try reader.poll(maxRecords: 2, maxBytes: 1 << 20) {
                    #expect(chunk.file?.header == ["id", "na\nme"])
                    read += chunk.records
                }
                #expect(reader.isFinished)
                #expect(read.map(\.value) == records, "blocks of \(blockBytes)")
                // Every record's position is a place to go on from.
                for (index, record) in read.enumerated() {
                    let later = try connector.openReader(split, at: SplitOffset(record.position)) {}
                    #expect(try later.poll(maxRecords: 10, maxBytes: 1 << 20)?.records.first == read[index])
                }
            }
        }
    }

    @Test func aQuoteThatIsNotClosedEndsTheSplitAloudOrItsRecord() throws {
        let scratch = try Scratch()
        try scratch.write("f.csv", "id\n1\n\"" + String(repeating: "x", count: 17 << 20))
        let connector = FileConnector(path: scratch.path + "/f.csv", format: .csv(CSVDialect()), files: LocalFileSystem())
        let split = try #require(try connector.currentSplits().first)
        let reader = try connector.openReader(split, at: SplitOffset(0)) {}
        #expect(try reader.poll(maxRecords: 10, maxBytes: 1 << 20)?.count == 1)
        #expect(throws: SQLError.self) { while !reader.isFinished { _ = try reader.poll(maxRecords: 10, maxBytes: 1 << 20) } }
    }

    @Test func emptyFilesAreFinishedAtOnce() throws {
        let scratch = try Scratch()
        for text in ["", "\n", "\r\n\n"] {
            try scratch.write("f", text)
            #expect(try readAll(scratch.path + "/f", blockBytes: 4) == [])
        }
    }

    @Test func directoriesAndPatternsGiveTheirFilesInOrder() throws {
        let scratch = try Scratch()
        for name in ["b/part-1.jsonl", "b/part-0.jsonl", "b/.hidden", "b/_tmp", "b/other.txt", "b/deep/part-9.jsonl", "c/part-2.jsonl"] { try scratch.write(name, "{}\n") }
        func names(_ pattern: String) throws -> [String] {
            try FileConnector(path: scratch.path + "/" + pattern, files: LocalFileSystem()).currentSplits().map { String($0.name.dropFirst(scratch.path.utf8.count + 1)) }
        }
        #expect(try names("b") == ["b/other.txt", "b/part-0.jsonl", "b/part-1.jsonl"])
        #expect(try names("b/*.jsonl") == ["b/part-0.jsonl", "b/part-1.jsonl"])
        #expect(try names("*/part-?.jsonl") == ["b/part-0.jsonl", "b/part-1.jsonl", "c/part-2.jsonl"])
        #expect(try names("b/part-[1-3].jsonl") == ["b/part-1.jsonl"])
        #expect(try names("b/part-[!1].*") == ["b/part-0.jsonl"])
        #expect(try names("**/*.jsonl") == ["b/deep/part-9.jsonl", "b/part-0.jsonl", "b/part-1.jsonl", "c/part-2.jsonl"])
        #expect(throws: SQLError.self) { try names("missing") }
        #expect(throws: SQLError.self) { try FileConnector(path: scratch.path + "/*.csv", files: LocalFileSystem()).resolveOrigin() }
    }

    @Test func aFileThatGotShorterIsAnError() throws {
        let scratch = try Scratch()
        try scratch.write("f", "{}\n")
        #expect(throws: SQLError.self) { try readAll(scratch.path + "/f", blockBytes: 16, at: 4) }
    }
}
