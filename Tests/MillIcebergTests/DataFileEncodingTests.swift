import MillIO
import MillObjectStore
import MillTestKit
import Testing

@testable import MillIceberg
@testable import MillParquet

@Suite struct DataFileEncodingTests {
    /// Iceberg's batch readers for Spark take plain values and dictionaries: VectorizedPageIterator of Iceberg 1.10, and 1.4 before it.
    @Test func dataFilesHaveTheEncodingsThatSparkReadsInBatches() throws {
        let taken: Set<Encoding> = [.plain, .plainDictionary, .rle]
        var sample = try SampleTable("encodings", seed: 1)
        for file in try sample.append(5000) {
            let footer = try ParquetFile(sample.table.store.openForReading(file.path)).metadata
            for column in footer.rowGroups.flatMap(\.columns) {
                #expect(Set(column.encodings).isSubset(of: taken.map(\.rawValue)), "\(column.path)")
            }
        }
    }
}
