import MillBase
import MillConnectorKit
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A record as a reader gave it.
struct ReadRecord: Hashable {
    var position: Int64
    /// nil is a tombstone.
    var value: String?
}

extension RawChunk {
    var records: [ReadRecord] {
        (0..<count).map { index in
            let length = Int(lengths[index])
            guard length >= 0 else { return ReadRecord(position: positions[index], value: nil) }
            let value = UnsafeRawBufferPointer(start: bytes + Int(starts[index]), count: length)
            return ReadRecord(position: positions[index], value: String(decoding: value, as: UTF8.self))
        }
    }

    /// Each record is followed by a newline.
    var isFollowedByNewlines: Bool {
        (0..<count).allSatisfy { lengths[$0] < 0 || [10, 13].contains(bytes.load(fromByteOffset: Int(starts[$0]) + Int(lengths[$0]), as: UInt8.self)) }
    }
}

/// Told by a reader that there is data; lets a test wait for that.
final class Bell: Sendable {
    private struct Handles: @unchecked Sendable {
        // Both are made for use from several threads.
        let mutex: UnsafeMutablePointer<pthread_mutex_t>
        let condition: UnsafeMutablePointer<pthread_cond_t>
    }
    private let handles: Handles
    private let rung = Atomic(0)

    init() {
        handles = Handles(mutex: .allocate(capacity: 1), condition: .allocate(capacity: 1))
        pthread_mutex_init(handles.mutex, nil)
        pthread_cond_init(handles.condition, nil)
    }

    func ring() {
        pthread_mutex_lock(handles.mutex)
        rung.add(1, ordering: .relaxed)
        pthread_cond_broadcast(handles.condition)
        pthread_mutex_unlock(handles.mutex)
    }

    /// Waits until it rings after `seen` rings, for `seconds` at most.
    func wait(after seen: Int, seconds: Int) {
        var deadline = timespec()
        clock_gettime(CLOCK_REALTIME, &deadline)
        deadline.tv_sec += seconds
        pthread_mutex_lock(handles.mutex)
        while rung.load(ordering: .relaxed) <= seen, pthread_cond_timedwait(handles.condition, handles.mutex, &deadline) == 0 {}
        pthread_mutex_unlock(handles.mutex)
    }

    var count: Int { rung.load(ordering: .relaxed) }
}

/// Reads until `count` records are there, waiting for the bell only; fewer when 20 seconds pass without one.
func read(_ reader: any SplitReader, _ bell: Bell, count: Int, maxRecords: Int = 1000, maxBytes: Int = 1 << 20) throws -> [ReadRecord] {
    var records: [ReadRecord] = []
    while records.count < count {
        let seen = bell.count
        if let chunk = try reader.poll(maxRecords: maxRecords, maxBytes: maxBytes) {
            records += chunk.records
            precondition(chunk.isFollowedByNewlines, "a newline follows each record")
            continue
        }
        bell.wait(after: seen, seconds: 20)
        if bell.count == seen { break }
    }
    return records
}

/// Polls until the reader fails; nil when 20 seconds pass without data or failure.
func failure(of reader: any SplitReader, _ bell: Bell) -> SQLError? {
    while true {
        let seen = bell.count
        do throws(SQLError) {
            if try reader.poll(maxRecords: 1000, maxBytes: 1 << 20) != nil { continue }
        } catch { return error }
        bell.wait(after: seen, seconds: 20)
        if bell.count == seen { return nil }
    }
}
