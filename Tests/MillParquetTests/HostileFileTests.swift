import MillBase
import MillColumnar
import MillIO
import MillTestKit
import Testing

@testable import MillParquet

@Suite struct HostileFileTests {
    private static func bytes(of file: any File) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: try file.size())
        _ = try bytes.withUnsafeMutableBytes { try file.read(at: 0, into: $0) }
        return bytes
    }

    private static func file(_ bytes: some Sequence<UInt8>, _ files: MemoryFileSystem) throws -> any File {
        let file = try files.open("hostile", .create)
        try Array(bytes).withUnsafeBytes { try file.write($0, at: 0) }
        return file
    }

    /// Reads all that can be read; the errors of others than the format are not expected.
    private static func readAll(_ file: any File) throws {
        let file = try ParquetFile(file)
        let columns = file.columns.indices.filter { file.columns[$0].type != nil }
        let scan = try ParquetScan(file, columns.map { .init($0) }, where: columns.map { ParquetCondition(column: $0, .isNotNull) })
        while try scan.next() != nil {}
    }

    @Test(arguments: 1...6) func everyCutOfAFileIsAnErrorWithItsName(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let files = MemoryFileSystem()
        try SampleFile(using: &random, rows: 40).write("f", to: files)
        let whole = try Self.bytes(of: try files.open("f", .read))
        for count in 0..<whole.count {
            do {
                try Self.readAll(try Self.file(whole[..<count], files))
                Issue.record("cut to \(count) of \(whole.count)")
            } catch let error as ParquetError {
                guard case .malformed("hostile", _, _, _) = error else {
                    Issue.record("cut to \(count): \(error)")
                    continue
                }
                #expect(error.sqlError.sqlState == .dataCorrupted)
            }
        }
    }

    @Test(arguments: 1...40) func damagedFilesAreErrorsOrFiles(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed &* 104_729)
        let files = MemoryFileSystem()
        var sample = SampleFile(using: &random, rows: random.pick([10, 300]))
        sample.options.writesChecksums = random.oneIn(4)
        try sample.write("f", to: files)
        let whole = try Self.bytes(of: try files.open("f", .read))
        for _ in 0..<300 {
            var damaged = whole
            for _ in 0..<random.number(1...3) { damaged[random.number(0...damaged.count - 1)] = UInt8(random.number(0...255)) }
            do { try Self.readAll(try Self.file(damaged, files)) } catch is ParquetError {}
        }
    }

    @Test func aDamagedPageWithAChecksumIsSeen() throws {
        let files = MemoryFileSystem()
        var options = ParquetWriterOptions()
        options.compression = .none
        let writer = try ParquetWriter(try files.open("f", .create), [ParquetColumn("n", .int64, encoding: .plain)], options)
        try writer.append([Column.constant(.int(7), .int64, count: 100)], count: 100)
        let page = try writer.finish().rowGroups[0].columns[0].dataPageOffset
        var damaged = try Self.bytes(of: try files.open("f", .read))
        damaged[Int(page) + 200] ^= 1
        let file = try Self.file(damaged, files)
        #expect(throws: ParquetError.malformed(file: "hostile", offset: Int(page), column: "n", .badChecksum)) { try Self.readAll(file) }
    }

    @Test func whatIsNoParquetFileIsSaidSo() throws {
        let files = MemoryFileSystem()
        #expect(throws: ParquetError.malformed(file: "hostile", offset: 0, column: nil, .cutShort)) {
            try ParquetFile(try Self.file([], files))
        }
        let text = Array("this is no such file at all".utf8)
        #expect(throws: ParquetError.malformed(file: "hostile", offset: text.count - 4, column: nil, .noMagicNumber)) {
            try ParquetFile(try Self.file(text, files))
        }
        #expect(throws: ParquetError.unsupported(file: "hostile", column: nil, feature: "it is encrypted")) {
            try ParquetFile(try Self.file(Array("PARE".utf8) + [0, 0, 0, 0] + Array("PARE".utf8), files))
        }
    }
}
