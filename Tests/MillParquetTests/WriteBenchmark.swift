import MillColumnar
import MillIO
import Testing

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

@testable import MillParquet

/// Our half of Scripts/bench-parquet, which names a file of rows: reads it, then writes it again some times, and prints the CPU seconds.
@Suite(.enabled(if: getenv("MILLRACE_PARQUET_BENCH") != nil)) struct WriteBenchmark {
    @Test func cpuSecondsOfReadingAndWriting() throws {
        let path = try #require(getenv("MILLRACE_PARQUET_BENCH").map { String(cString: $0) })
        let files = LocalFileSystem()
        var batches: [ParquetScan.Batch] = []
        var file = try ParquetFile(try files.open(path, .read))
        let columns = file.columns.map { ParquetColumn($0.name, $0.type ?? .varchar) }
        let scan = try ParquetScan(file, columns.indices.map { .init($0) })
        while let batch = try scan.next() { batches.append(batch) }
        let rowCount = batches.reduce(0) { $0 + $1.count }
        for codec in [ParquetCompression.zstd(level: 1), .none] {
            let name = codec == .none ? "none" : "zstd"
            for _ in 0..<5 {
                let start = Self.cpuSeconds()
                let output = try files.open("\(path).\(name)", .create)
                var options = ParquetWriterOptions()
                options.compression = codec
                let writer = try ParquetWriter(output, columns, options)
                for batch in batches { try writer.append(batch.columns, count: batch.count) }
                try writer.finish()
                let written = Self.cpuSeconds()
                file = try ParquetFile(output)
                let scan = try ParquetScan(file, columns.indices.map { .init($0) })
                while try scan.next() != nil {}
                print("millrace,\(name),\(rowCount),\(written - start),\(Self.cpuSeconds() - written),\(try output.size())")
            }
        }
    }

    private static func cpuSeconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
