import MillKafkaWire
import Synchronization

/// The last records of a partition, in the memory that they came in: a reader that keeps up gets slices of it, without a copy and without
/// the disk. Guarded by the partition's state lock.
struct LogTail: Sendable {
    /// Whole batches, back to back as in the segment.
    struct Entry: Sendable {
        var baseOffset: Int64
        var nextOffset: Int64
        var segment: Segment
        var position: Int
        var bytes: WireBytes
    }

    /// Ascending and without gaps from `first` on; before it are holes.
    private var entries: [Entry?] = []
    private var first = 0

    mutating func append(_ entry: Entry) {
        // What does not follow on, such as after a write that failed, begins anew.
        if let last = entries.last, last?.nextOffset != entry.baseOffset { (entries, first) = ([], 0) }
        entries.append(entry)
    }

    /// Forgets what lies before an offset.
    mutating func drop(before offset: Int64) {
        while first < entries.count, (entries[first]?.nextOffset ?? 0) <= offset {
            entries[first] = nil
            first += 1
        }
        if first == entries.count || first > 1024 && first > entries.count / 2 {
            entries.removeFirst(first)
            first = 0
        }
    }

    /// Forgets everything if any of it lies in one of these segments.
    mutating func forget(_ segments: [Segment]) {
        guard entries[first...].contains(where: { entry in segments.contains { $0 === entry?.segment } }) else { return }
        (entries, first) = ([], 0)
    }

    /// The entry that holds an offset, and those of its segment after it that end at or below `end`, as far as they are small and fit
    /// in `maxBytes`; empty when there is none.
    func entries(from offset: Int64, below end: Int64, maxBytes: Int) -> [Entry] {
        guard let place = place(of: offset), let entry = entries[place], entry.nextOffset <= end else { return [] }
        var found = [entry]
        var byteCount = entry.bytes.count
        var next = place + 1
        while next < entries.count, byteCount < LogTail.sliceBytesMin, let more = entries[next], more.nextOffset <= end,
            more.segment === entry.segment, byteCount + more.bytes.count <= maxBytes
        {
            found.append(more)
            byteCount += more.bytes.count
            next += 1
        }
        return found
    }

    /// From so many bytes on, an entry is worth a read of its own; smaller ones are given out together.
    static let sliceBytesMin = 64 << 10

    private func place(of offset: Int64) -> Int? {
        var low = first
        var high = entries.count
        while low < high {
            let middle = (low + high) / 2
            if (entries[middle]?.nextOffset ?? 0) <= offset { low = middle + 1 } else { high = middle }
        }
        return low < entries.count && (entries[low]?.baseOffset ?? .max) <= offset ? low : nil
    }
}

/// Memory for the tails of all partitions of a log: when there is too much, the oldest entry goes, whoever's it is.
///
/// Threading: any thread. Calls `PartitionLog.dropTail` without its lock.
final class TailBudget: Sendable {
    private struct Held: Sendable {
        weak var partition: PartitionLog?
        var nextOffset: Int64
        var byteCount: Int
    }

    private struct State {
        /// In the order they came; before `first` are those that went.
        var held: [Held] = []
        var first = 0
        var byteCount = 0
    }

    private let state = Mutex(State())
    private let bytesMax: Int

    /// Beside the memory of its bytes.
    private static let entryBytes = 256

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    /// Takes note of a partition's newest entry, for which the oldest ones may have to go.
    func add(_ entry: LogTail.Entry, of partition: PartitionLog) {
        let gone = state.withLock { state in
            // The whole buffer stays as long as a part of it does.
            let byteCount = (entry.bytes.buffer?.capacity ?? 0) + Self.entryBytes
            state.held.append(Held(partition: partition, nextOffset: entry.nextOffset, byteCount: byteCount))
            state.byteCount += byteCount
            let start = state.first
            while state.byteCount > bytesMax, state.first < state.held.count {
                state.byteCount -= state.held[state.first].byteCount
                state.first += 1
            }
            let gone = Array(state.held[start..<state.first])
            if state.first == state.held.count || state.first > 1024 && state.first > state.held.count / 2 {
                state.held.removeFirst(state.first)
                state.first = 0
            }
            return gone
        }
        for entry in gone { entry.partition?.dropTail(before: entry.nextOffset) }
    }
}
