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
        var startOffset: Int64
        var nextOffset: Int64
        var producers = ProducerStates()
        var transactions = TransactionIndex()
        var failure: LogError?
        var tails: [TruncatedTail] = []
    }

    /// A partition that does not exist yet, in an existing directory.
    static func create(in directory: String, _ files: any FileSystem, at offset: Int64 = 0) throws(IOFailure) -> Recovered {
        let first = try makeSegment(offset, in: directory, files, .create)
        try first.file.sync()
        return Recovered(segments: [first], active: first, startOffset: offset, nextOffset: offset)
    }

    /// Reads what is there, checks what no index vouches for, and cuts a torn tail (docs/internals/log.md).
    /// - Throws: `storage` when the files cannot be read; damage is not thrown but becomes the partition's `failure`.
    static func recover(_ directory: String, _ files: any FileSystem, _ options: LogOptions, nowMillis: Int64) throws(LogError) -> Recovered {
        var start: Int64 = 0
        var damage: LogError?
        do throws(LogError) { start = try LogStart.read(in: directory, files) ?? 0 } catch {
            guard case .corrupted = error else { throw error }
            // Where it begins is open, so nothing is given out or taken away.
            damage = error
        }
        do throws(IOFailure) {
            var result = try scanAll(directory, files, options, nowMillis, from: start)
            result.failure = damage ?? result.failure
            if result.failure == nil, result.nextOffset < start {
                // All there was had been deleted, and with `log.flush=os` a power cut took the end.
                for segment in result.segments { try remove(segment, files) }
                try files.syncDirectory(directory)
                let tails = result.tails
                result = try create(in: directory, files, at: start)
                result.tails = tails
            }
            result.startOffset = max(start, result.segments[0].baseOffset)
            result.transactions.removeAborted(before: result.startOffset)
            for segment in result.segments { segment.visibleSize = segment.size }
            return result
        } catch {
            throw .storage(error)
        }
    }

    private static func scanAll(
        _ directory: String, _ files: any FileSystem, _ options: LogOptions, _ nowMillis: Int64, from start: Int64
    ) throws(IOFailure) -> Recovered {
        let names = try SegmentName.surviving(in: directory, files, from: start)
        var result: Recovered?
        var producers = ProducerStates()
        var transactions = TransactionIndex()
        var expected = names.first?.baseOffset ?? 0
        for (place, name) in names.enumerated() {
            let isLast = place + 1 == names.count
            let segment = try makeSegment(name.baseOffset, generation: name.generation, in: directory, files, .readWrite)
            let scan = try scan(segment, &producers, &transactions, options, nowMillis, in: directory, files, followedBy: names[(place + 1)...])
            var tails = result?.tails ?? []
            var failure = scan.failure
            if failure == nil, segment.baseOffset != expected { failure = .corrupted(path: segment.file.path, reason: "it follows offset \(expected)") }
            if let tail = scan.tail { tails.append(tail) }
            // Without its index, a segment that compaction has been in does not know where it ended.
            if scan.tail == nil, !scan.hasIndex, segment.generation > 0, !isLast { segment.nextOffset = max(segment.nextOffset, names[place + 1].baseOffset) }
            expected = segment.nextOffset
            result = Recovered(
                segments: (result?.segments ?? []) + [segment], active: segment, startOffset: names[0].baseOffset, nextOffset: expected,
                producers: producers, transactions: transactions, failure: failure, tails: tails)
            if failure != nil { break }
            if !isLast, scan.tail == nil, !scan.hasIndex {
                try segment.file.sync()
                try writeIndex(segment.encodedIndex(producers, transactions), at: segment.indexPath, files)
                try files.syncDirectory(directory)
            }
            if scan.tail != nil, !isLast {
                result?.tails += try dropSegments(Array(names[(place + 1)...]), directory, files)
                break
            }
        }
        if let result { return result }
        return try create(in: directory, files, at: start)
    }

    private struct Scan {
        var tail: TruncatedTail?
        var failure: LogError?
        /// All of the segment is vouched for by its index file.
        var hasIndex = false
    }

    private static func scan(
        _ segment: Segment, _ producers: inout ProducerStates, _ transactions: inout TransactionIndex, _ options: LogOptions, _ nowMillis: Int64,
        in directory: String, _ files: any FileSystem, followedBy later: ArraySlice<SegmentName>
    ) throws(IOFailure) -> Scan {
        let isLast = later.isEmpty
        let fileSize = try segment.file.size()
        if files.exists(segment.indexPath) {
            if let known = segment.restore(fromIndex: try files.open(segment.indexPath, .read).readAll()) {
                producers = known.0
                transactions.advance(to: known.1)
            }
            if segment.size > fileSize {
                return Scan(failure: .corrupted(path: segment.file.path, reason: "\(segment.size) bytes were durable, \(fileSize) are there"))
            }
        }
        let covered = segment.size
        var (foundProducers, foundTransactions) = (producers, transactions)
        do throws(LogError) {
            try forEachBatch(segment.file, from: covered, to: fileSize) { batch throws(RecordError) in
                try batch.validateChecksum()
                try batch.validateHeader(isStored: true)
                // Only compaction leaves gaps. No checksum covers a batch's offset, so any other would be taken for one.
                let isNext = batch.baseOffset == segment.nextOffset || batch.baseOffset > segment.nextOffset && segment.generation > 0 && !isLast
                guard isNext, batch.baseOffset - segment.baseOffset <= Int64(Int32.max) else { throw .invalidHeader }
                segment.add(batch, indexIntervalBytes: options.indexIntervalBytes)
                segment.noteAppend(nowMillis)
                foundProducers.record(batch, baseOffset: batch.baseOffset, nowMillis: nowMillis)
                foundTransactions.note(batch)
                return true
            }
        } catch {
            guard case .storage(let failure) = error else { return Scan(failure: error) }
            throw failure
        }
        (producers, transactions) = (foundProducers, foundTransactions)
        guard segment.size < fileSize else {
            let hasIndex = covered == fileSize && covered > 0
            // A process may have ended between a write and its sync, or before the segment's name was durable: from here on it is read and
            // appended to, and must not go with the machine.
            if isLast, !hasIndex {
                try segment.file.sync()
                try files.syncDirectory(directory)
            }
            return Scan(hasIndex: hasIndex)
        }
        // An index is written when its segment is durable, and all before it are.
        for name in later where try hasIndex(name, in: directory, files) {
            let reason = "no batch at byte \(segment.size), and \(name.text).log, which follows it, was acknowledged"
            return Scan(failure: .corrupted(path: segment.file.path, reason: reason))
        }
        try segment.file.truncate(to: segment.size)
        try segment.file.sync()
        return Scan(tail: TruncatedTail(path: segment.file.path, keptBytes: segment.size, cutBytes: fileSize - segment.size))
    }

    /// Whether a whole index says that something of the segment was durable.
    private static func hasIndex(_ name: SegmentName, in directory: String, _ files: any FileSystem) throws(IOFailure) -> Bool {
        let segment = try makeSegment(name.baseOffset, generation: name.generation, in: directory, files, .read)
        guard files.exists(segment.indexPath) else { return false }
        return segment.restore(fromIndex: try files.open(segment.indexPath, .read).readAll()) != nil && segment.size > 0
    }

    private static func dropSegments(_ names: [SegmentName], _ directory: String, _ files: any FileSystem) throws(IOFailure) -> [TruncatedTail] {
        var tails: [TruncatedTail] = []
        // From the last one back, so that another crash leaves no gap.
        for name in names.reversed() {
            let path = directory + "/" + name.text
            tails.append(TruncatedTail(path: path + ".log", keptBytes: 0, cutBytes: try files.open(path + ".log", .read).size()))
            try files.remove(path + ".index")
            try files.remove(path + ".log")
        }
        try files.syncDirectory(directory)
        return tails
    }

    static func remove(_ segment: Segment, _ files: any FileSystem) throws(IOFailure) {
        try files.remove(segment.indexPath)
        try files.remove(segment.file.path)
    }
}
