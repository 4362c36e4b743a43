import MillBase
import MillIO
import MillKafkaWire
import MillTestKit
import Synchronization
import Testing

@testable import MillLog

/// A disk that outlives the logs on it.
struct Disk {
    let files = MemoryFileSystem()
    let clock = VirtualClock()
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
        return try Log(environment: Environment(files: files, clock: clock, random: random), directory: "/data/log", options: options)
    }
}

func batch(_ values: [String], timestamp: Int64 = 1_700_000_000_000, compression: Compression = .none, producer: (id: Int64, epoch: Int16, sequence: Int32)? = nil) throws -> WireBytes {
    var builder = RecordBatchBuilder()
    for (index, value) in values.enumerated() { builder.append(value: Array(value.utf8), timestamp: timestamp + Int64(index)) }
    if let producer { (builder.producerID, builder.producerEpoch, builder.baseSequence) = (producer.id, producer.epoch, producer.sequence) }
    return try builder.finish(compression: compression)
}

/// Fails every file operation from the n-th on, for each n, and cuts the power; `check` sees what a start makes of it.
func atEveryOperation(
    _ options: @escaping (inout LogOptions) -> Void = { _ in }, _ prepare: (Log, Disk) throws -> Void = { _, _ in }, _ run: (Log) throws -> Void,
    _ check: (Log) throws -> Void
) throws {
    for limit in 0..<400 {
        let disk = try Disk(UInt64(limit))
        let log = try disk.open(options)
        try prepare(log, disk)
        let count = Mutex(0)
        disk.files.setFault { operation, _ in count.withLock { $0 += 1; return $0 > limit ? 5 : nil } }
        let finished = (try? run(log)) != nil  // an error is one of the two outcomes
        let reached = count.withLock { $0 }
        disk.files.crash(random: disk.random)
        disk.files.setFault(nil)
        try check(try disk.open(options))
        if finished, reached <= limit { return }
    }
}

/// What readers of committed records get.
func readCommitted(_ partition: PartitionLog) throws -> [String] {
    let decoder = RecordDecoder()
    var next = partition.logStartOffset
    var values: [String] = []
    while next < partition.lastStableOffset {
        let slice = try partition.read(from: next, maxBytes: 100, isolation: .committed)
        var batches = slice.batches
        while let batch = try batches.next() {
            if batch.nextOffset <= next { continue }
            #expect(batch.baseOffset < partition.lastStableOffset)
            if batch.isControl || slice.isAborted(batch) { continue }
            var cursor = try decoder.records(of: batch)
            while let record = try cursor.next() {
                if record.offset >= next { values.append(record.value.map { String(decoding: $0, as: UTF8.self) } ?? "null") }
            }
        }
        next = slice.nextOffset
    }
    return values
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
