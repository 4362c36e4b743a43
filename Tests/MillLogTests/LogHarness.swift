import MillBase
import MillIO
import MillKafkaWire
import MillTestKit
import Testing

@testable import MillLog

struct FixedClock: Clock {
    var nowMicros: Int64 { 1_700_000_000_000_000 }
    var monotonicNanos: UInt64 { 0 }
    func sleep(for duration: Duration) async throws {}
}

/// A disk that outlives the logs on it.
struct Disk {
    let files = MemoryFileSystem()
    let random: SeededSource

    init(_ seed: UInt64 = 1) throws {
        random = SeededSource(seed)
        try files.createDirectory("/data")
        try files.syncDirectory("/")
    }

    func open(_ change: (inout LogOptions) -> Void = { _ in }) throws -> Log {
        var options = LogOptions()
        options.flushThreads = 2
        change(&options)
        return try Log(environment: Environment(files: files, clock: FixedClock(), random: random), directory: "/data/log", options: options)
    }
}

func batch(_ values: [String], timestamp: Int64 = 1_700_000_000_000, compression: Compression = .none, producer: (id: Int64, epoch: Int16, sequence: Int32)? = nil) throws -> WireBytes {
    var builder = RecordBatchBuilder()
    for (index, value) in values.enumerated() { builder.append(value: Array(value.utf8), timestamp: timestamp + Int64(index)) }
    if let producer { (builder.producerID, builder.producerEpoch, builder.baseSequence) = (producer.id, producer.epoch, producer.sequence) }
    return try builder.finish(compression: compression)
}

/// Every record from `offset` to the high watermark, read in pieces of `maxBytes`.
func readAll(_ partition: PartitionLog, from offset: Int64 = 0, maxBytes: Int = 500) throws -> [String] {
    let decoder = RecordDecoder()
    var next = offset
    var values: [String] = []
    while true {
        let slice = try partition.read(from: next, maxBytes: maxBytes)
        if slice.isEmpty {
            #expect(next == slice.highWatermark)
            return values
        }
        var batches = slice.batches
        while let batch = try batches.next() {
            try batch.validateChecksum()
            var cursor = try decoder.records(of: batch)
            while let record = try cursor.next() {
                if record.offset < next { continue }
                #expect(record.offset == offset + Int64(values.count))
                values.append(record.value.map { String(decoding: $0, as: UTF8.self) } ?? "null")
            }
        }
        #expect(batches.remainingBytes == 0)
        #expect(slice.nextOffset > next)
        next = slice.nextOffset
    }
}
