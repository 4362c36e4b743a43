package import MillConnectorKit

/// What has been read of a source since its readers were opened.
package struct SourceStatistics: Sendable {
    package private(set) var recordCount: Int64 = 0
    package private(set) var byteCount: Int64 = 0

    package init() {}

    package mutating func add(_ chunk: RawChunk) {
        recordCount += Int64(chunk.count)
        byteCount += Int64(chunk.byteCount)
    }

    package mutating func merge(_ other: SourceStatistics) {
        recordCount += other.recordCount
        byteCount += other.byteCount
    }
}
