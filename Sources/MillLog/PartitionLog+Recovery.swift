import MillIO
import MillKafkaWire

/// What a start cut off a partition: bytes that were written and never acknowledged.
package struct TruncatedTail: Sendable, Hashable {
    package var path: String
    package var keptBytes: Int
    package var cutBytes: Int
}

extension PartitionLog {
    /// A partition as a start finds it.
    struct Recovered {
        var segments: [Segment]
        var active: Segment
        var nextOffset: Int64
        var producers: ProducerStates
        var failure: LogError?
        var tails: [TruncatedTail] = []
    }

    /// A partition that does not exist yet, in an existing directory.
    static func create(in directory: String, _ files: any FileSystem) throws(IOFailure) -> Recovered {
        let first = try makeSegment(0, in: directory, files, .create)
        try first.file.sync()
        return Recovered(segments: [first], active: first, nextOffset: 0, producers: ProducerStates())
    }

    /// Reads what is there, checks what no index vouches for, and cuts a torn tail (docs/internals/log.md).
    /// - Throws: `IOFailure` when the files cannot be read; damage is not thrown but becomes the partition's `failure`.
    static func recover(_ directory: String, _ files: any FileSystem, _ options: LogOptions, nowMillis: Int64) throws(LogError) -> Recovered {
        do throws(IOFailure) {
            let bases = try files.list(directory).compactMap { name -> Int64? in
                guard name.hasSuffix(".log") else { return nil }
                return Int64(name.dropLast(4))
            }.sorted()
            guard let start = bases.first else { return try create(in: directory, files) }
            var result: Recovered?
            var producers = ProducerStates()
            var expected = start
            for (place, base) in bases.enumerated() {
                let segment = try makeSegment(base, in: directory, files, .readWrite)
                let scan = try scan(segment, &producers, options, nowMillis, files)
                let segments = (result?.segments ?? []) + [segment]
                var tails = result?.tails ?? []
                var failure = scan.failure
                if failure == nil, base != expected { failure = .corrupted(path: segment.file.path, reason: "it follows offset \(expected)") }
                if let tail = scan.tail { tails.append(tail) }
                expected = segment.nextOffset
                result = Recovered(segments: segments, active: segment, nextOffset: expected, producers: producers, failure: failure, tails: tails)
                if failure != nil { break }
                if place + 1 < bases.count, scan.tail == nil, !scan.hasIndex { try writeIndex(segment, producers, directory, files) }
                if scan.tail != nil, place + 1 < bases.count {
                    result?.tails += try dropSegments(Array(bases[(place + 1)...]), directory, files)
                    break
                }
            }
            guard let result else { return try create(in: directory, files) }
            for segment in result.segments { segment.visibleSize = segment.size }
            return result
        } catch {
            throw .storage(error)
        }
    }

    private struct Scan {
        var tail: TruncatedTail?
        var failure: LogError?
        /// All of the segment is vouched for by its index file.
        var hasIndex = false
    }

    private static func scan(
        _ segment: Segment, _ producers: inout ProducerStates, _ options: LogOptions, _ nowMillis: Int64, _ files: any FileSystem
    ) throws(IOFailure) -> Scan {
        let fileSize = try segment.file.size()
        if files.exists(segment.indexPath) {
            let known = segment.restore(fromIndex: try files.open(segment.indexPath, .read).readAll())
            if let known { producers = known }
            if segment.size > fileSize {
                return Scan(failure: .corrupted(path: segment.file.path, reason: "\(segment.size) bytes were durable, \(fileSize) are there"))
            }
        }
        let covered = segment.size
        var found = producers
        do throws(LogError) {
            try forEachBatch(segment.file, from: covered, to: fileSize) { batch throws(RecordError) in
                try batch.validateChecksum()
                try batch.validateHeader()
                guard batch.baseOffset == segment.nextOffset else { throw .invalidHeader }
                segment.add(batch, indexIntervalBytes: options.indexIntervalBytes)
                found.record(batch, baseOffset: batch.baseOffset, nowMillis: nowMillis)
                return true
            }
        } catch {
            guard case .storage(let failure) = error else { return Scan(failure: error) }
            throw failure
        }
        producers = found
        guard segment.size < fileSize else { return Scan(hasIndex: covered == fileSize && covered > 0) }
        try segment.file.truncate(to: segment.size)
        try segment.file.sync()
        return Scan(tail: TruncatedTail(path: segment.file.path, keptBytes: segment.size, cutBytes: fileSize - segment.size))
    }

    private static func dropSegments(_ bases: [Int64], _ directory: String, _ files: any FileSystem) throws(IOFailure) -> [TruncatedTail] {
        var tails: [TruncatedTail] = []
        // From the last one back, so that another crash leaves no gap.
        for base in bases.reversed() {
            let path = directory + "/" + Segment.name(base)
            tails.append(TruncatedTail(path: path + ".log", keptBytes: 0, cutBytes: try files.open(path + ".log", .read).size()))
            try files.remove(path + ".index")
            try files.remove(path + ".log")
        }
        try files.syncDirectory(directory)
        return tails
    }

    /// The index of a complete segment that a crash kept from being written.
    private static func writeIndex(_ segment: Segment, _ producers: ProducerStates, _ directory: String, _ files: any FileSystem) throws(IOFailure) {
        try segment.file.sync()
        let file = try files.open(segment.indexPath, .create)
        try file.writeAll(segment.encodedIndex(producers))
        try file.sync()
        try files.syncDirectory(directory)
    }
}
