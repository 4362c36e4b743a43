import MillBase
import MillColumnar
import MillIO
import MillTestKit
import Testing

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

@testable import MillParquet

private func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

private let exchangeDirectory = variable("MILLRACE_PARQUET_EXCHANGE")

/// Our half of Scripts/test-parquet, which sets the directory: files for other programs to read, and what we read in theirs.
///
/// Beside each file lies what is in it: a line of JSON with the columns' names and types, then one for each row. Times are numbers, floats
/// their 64 bits, decimals and bytes (in hexadecimal) texts.
@Suite(.enabled(if: exchangeDirectory != nil)) struct ExchangeTests {
    @Test func filesForOthers() throws {
        let directory = try #require(exchangeDirectory) + "/ours"
        let seed = variable("MILLRACE_SEED").flatMap { UInt64($0) } ?? 1
        let files = LocalFileSystem()
        try files.createDirectory(directory)
        for number in 0..<80 {
            var random = SeededGenerator(seed: seed &* 1000 &+ UInt64(number))
            let sample = SampleFile(using: &random, rows: random.pick([0, 1, 700, 9000]), ordinary: number % 2 == 0, old: true)
            let name = "\(directory)/\(number % 2 == 0 ? "ordinary" : "extreme")-\(number).parquet"
            try sample.write(name, to: files)
            let rows = sample.rows.map { row in
                row.map { value in
                    guard case .interval = value else { return value }
                    return .string(Column.constant(value, .interval, count: 1).text(0) ?? "")
                }
            }
            try ExchangeFile.write(sample.columns.map { ($0.name, $0.type) }, rows, name + ".jsonl", files)
        }
    }

    @Test func filesOfOthers() throws {
        let directory = try #require(exchangeDirectory) + "/theirs"
        let files = LocalFileSystem()
        guard files.exists(directory) else { return }
        for name in try files.list(directory) where name.hasSuffix(".parquet") {
            let path = directory + "/" + name
            do {
                let file = try ParquetFile(try files.open(path, .read))
                let columns = file.columns.indices.filter { file.columns[$0].type != nil }
                let rows = try ParquetScan(file, columns.map { .init($0) }).rows().map(\.values)
                try ExchangeFile.write(columns.map { (file.columns[$0].name, file.columns[$0].type ?? .unknown) }, rows, path + ".read", files)
            } catch let error as ParquetError {
                try ExchangeFile.write(error.sqlError.description, path + ".error", files)
            }
        }
    }
}
