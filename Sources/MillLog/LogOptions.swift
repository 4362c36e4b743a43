/// How the log keeps its promises, and its sizes.
package struct LogOptions: Sendable {
    /// When an append is acknowledged and seen.
    package enum Flush: Sendable, Hashable {
        /// After fsync, shared by all that wait: nothing acknowledged is lost to a power cut.
        case sync
        /// When the system has it, as Kafka does: nothing is lost to kill -9.
        case os
    }

    package var flush: Flush = .sync
    package var segmentBytesMax = 256 << 20
    /// About so many bytes of each partition a start has to check at most: whenever as many have become durable, the index of the last
    /// segment is written. With `Flush.os` it is the whole of that segment.
    package var uncheckedBytesMax = 16 << 20
    /// Bytes between two entries of a segment's index; a look-up reads at most this much too much.
    package var indexIntervalBytes = 32 << 10
    /// The largest record batch; Kafka's `message.max.bytes`, but more generous, as clients have limits of their own.
    package var batchBytesMax = 16 << 20
    /// The most that a compressed batch may become.
    package var decompressedBytesMax = 128 << 20
    /// A producer that has been silent this long is forgotten, as in Kafka.
    package var producerExpirationMillis: Int64 = 24 * 3600 * 1000
    /// Keys that one run of compaction remembers, 16 bytes and an offset each: more take more runs.
    package var compactionKeysMax = 1_000_000
    /// Of the last records of all partitions, kept in memory for their readers: longer ones leave it sooner. What is written in whole
    /// blocks is not in the system's page cache.
    package var tailBytesMax = 64 << 20
    /// Threads that write and sync files.
    package var flushThreads = 4
    package var partitionsMax = 10_000

    package init() {}
}
