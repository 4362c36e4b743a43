import MillBase
import MillColumnar
import MillPlan
import MillState

/// The sessions of one operator, found by partition and time: what `SessionAggregateOperator` keeps.
///
/// A session is a row without columns in a `StateTable`, reached by its number. Its payload:
/// ```
/// offset  size  meaning
/// 0       4     the operator's mark
/// 4       4     row number of its partition
/// 8       8     first: the least time; `timeless` for the rows without a time, which are one session
/// 16      8     last: the greatest time; below `first` in a session that has become part of another
/// 24      ...   the operator's own
/// ```
/// Most rows come in the order of time, so each partition's latest session is in the partition's payload (its number plus 1, 0 for
/// none), and only the others are in `earlier`, an ordered table (partition, first) -> number. A row within or behind the latest
/// session costs no look-up but the partition's; a session costs one ordered insertion when a later one begins.
///
/// Invariant: sessions of one partition are more than the gap apart.
final class SessionStore {
    let partitions: StateTable
    let sessions: StateTable
    private let earlier = OrderedTable(payloadBytes: 8)
    private let gap: Int64
    private let key = UnsafeMutableRawBufferPointer.allocate(byteCount: 12, alignment: 8)

    static let payloadBytes = 24
    static let timeless = Int64.min

    /// - Parameters:
    ///   - partition: types of the partition's columns.
    ///   - extraBytes: the operator's own part of a session.
    ///   - payloadStrings: where in a session's payload strings of the operator lie, which `stringsOwner` keeps.
    init(partition: [SQLType], gapMicros: Int64, extraBytes: Int, payloadStrings: [Int], stringsOwner: AnyObject) {
        gap = gapMicros
        partitions = StateTable(columns: partition, payloadBytes: 8)
        sessions = StateTable(
            columns: [], payloadBytes: Self.payloadBytes + extraBytes, indexed: false, payloadStrings: payloadStrings, stringsOwner: stringsOwner)
    }

    deinit { key.deallocate() }

    var tables: [any DurableTable] { [partitions, sessions, earlier] }

    var byteCount: Int { partitions.byteCount + sessions.byteCount + earlier.byteCount }

    /// For reading, or for changing a session that was begun or touched in this epoch.
    @inline(__always) func session(_ number: RowNumber) -> Session { Session(payload: sessions.preparedPayload(number)) }

    /// The number of a partition's latest session plus 1.
    @inline(__always) func latest(of partition: RowNumber) -> UInt32 { partitions.payload(partition).load(as: UInt32.self) }

    private func setLatest(_ number: RowNumber, of partition: RowNumber) {
        partitions.writablePayload(partition).storeBytes(of: number + 1, as: UInt32.self)
    }

    // MARK: Neighbours

    private func setKey(_ partition: RowNumber, _ time: Int64) -> UnsafeRawBufferPointer {
        key.storeBytes(of: partition.bigEndian, as: UInt32.self)
        key.storeBytes(of: (UInt64(bitPattern: time) ^ 1 << 63).bigEndian, toByteOffset: 4, as: UInt64.self)
        return UnsafeRawBufferPointer(key)
    }

    /// The sessions of a partition that begin last at or before a time, and first after it.
    func neighbours(of time: Int64, in partition: RowNumber) -> (before: RowNumber?, after: RowNumber?) {
        let latest = latest(of: partition)
        if latest != 0, session(latest - 1).first.pointee <= time { return (latest - 1, nil) }
        let end = setKey(partition, time + 1)
        var before: RowNumber?
        earlier.scan(to: end, descending: true) { _, payload in
            let number = payload.load(as: RowNumber.self)
            let session = session(number)
            if session.partition == partition, session.first.pointee != Self.timeless { before = number }
            return false
        }
        var after: RowNumber?
        earlier.scan(from: end) { _, payload in
            let number = payload.load(as: RowNumber.self)
            if session(number).partition == partition { after = number }
            return false
        }
        return (before, after ?? (latest == 0 ? nil : latest - 1))
    }

    /// The session of a partition's rows without a time.
    func timelessSession(of partition: RowNumber) -> RowNumber? {
        earlier.find(setKey(partition, Self.timeless))?.load(as: RowNumber.self)
    }

    // MARK: Changes

    /// A session that begins and ends at a time, which is not yet any other's of its partition.
    func begin(at time: Int64, in partition: RowNumber) -> RowNumber {
        let number = sessions.append(hash: partitions.storedHash(partition))
        let session = session(number)
        session.partition = partition
        session.first.pointee = time
        session.last.pointee = time
        let latest = latest(of: partition)
        guard time != Self.timeless else {
            insert(number)
            return number
        }
        if latest == 0 {
            setLatest(number, of: partition)
        } else if self.session(latest - 1).first.pointee < time {
            insert(latest - 1)
            setLatest(number, of: partition)
        } else {
            insert(number)
        }
        return number
    }

    /// Lets a session begin at an earlier time, which is after all sessions before it.
    func extend(_ number: RowNumber, backTo time: Int64) {
        let isLatest = latest(of: session(number).partition) == number + 1
        if !isLatest { remove(number) }
        session(number).first.pointee = time
        if !isLatest { insert(number) }
    }

    /// Makes a session and the next one of its partition one: the first of both, which ends where the second did. The second is no
    /// session any more, but keeps its row until `free`.
    func join(_ number: RowNumber, with next: RowNumber) {
        let partition = session(number).partition
        if latest(of: partition) == next + 1 {
            remove(number)
            setLatest(number, of: partition)
        } else {
            remove(next)
        }
        session(number).last.pointee = session(next).last.pointee
        session(next).end()
    }

    /// Gives the row of a session that has ended back.
    func free(_ number: RowNumber) { sessions.remove(number) }

    /// Takes out a session that has come to its end, and its partition when that was the last one. Of a partition all sessions go that
    /// are before the one that goes.
    func close(_ number: RowNumber) {
        let partition = session(number).partition
        if latest(of: partition) == number + 1 {
            partitions.writablePayload(partition).storeBytes(of: 0, as: UInt32.self)
        } else {
            remove(number)
        }
        free(number)
        guard latest(of: partition) == 0 else { return }
        let prefix = UnsafeRawBufferPointer(rebasing: setKey(partition, 0)[..<4])
        if earlier.first(prefix: prefix) == nil { partitions.remove(partition) }
    }

    private func insert(_ number: RowNumber) {
        let session = session(number)
        earlier.findOrInsert(setKey(session.partition, session.first.pointee)).payload.storeBytes(of: number, as: RowNumber.self)
    }

    private func remove(_ number: RowNumber) {
        let session = session(number)
        let isThere = earlier.remove(setKey(session.partition, session.first.pointee))
        precondition(isThere, "an earlier session is found by its partition and first time")
    }

    /// Takes over the partitions of another worker that are this one's, with their sessions.
    /// - Parameters:
    ///   - distribution: of the partitions, in their columns.
    ///   - body: called with sessions as they are numbered there and here; the operator's own part is a copy.
    func adopt(
        from other: SessionStore, _ share: StateShare, by distribution: Distribution, _ body: ([RowNumber], [RowNumber]) -> Void
    ) throws(StateCorruption) {
        var moved = MovedRows(from: other.partitions)
        try share.forEachBatch(of: other.partitions, by: distribution) { (theirs) throws(StateCorruption) in
            let ours = try partitions.adopt(theirs, of: other.partitions)
            for partition in ours { partitions.writablePayload(partition).storeBytes(of: 0, as: UInt32.self) }
            moved.note(theirs, as: ours)
        }
        try other.sessions.forEachBatch { (all) throws(StateCorruption) in
            let theirs = all.filter { moved[other.session($0).partition] != nil }
            guard !theirs.isEmpty else { return }
            let ours = try sessions.adopt(theirs, of: other.sessions)
            for (their, our) in zip(theirs, ours) {
                let former = other.session(their).partition
                guard let partition = moved[former] else { continue }
                session(our).partition = partition
                if other.latest(of: former) == their + 1 { setLatest(our, of: partition) } else { insert(our) }
            }
            body(theirs, ours)
        }
    }

    // MARK: Checking

    func checkInvariants() -> [String] {
        earlier.checkInvariants()
        var broken = partitions.checkInvariants() + sessions.checkInvariants()
        var reached = 0
        var previous: RowNumber?
        earlier.scan { key, payload in
            let number = payload.load(as: RowNumber.self)
            let session = session(number)
            reached += 1
            if !key.elementsEqual(setKey(session.partition, session.first.pointee)) {
                broken.append("session \(number) is under another's key")
            }
            if let previous { broken += checkGap(previous, number) }
            previous = number
            let latest = latest(of: session.partition)
            if latest != 0 { broken += checkGap(number, latest - 1) }
            if latest == 0, session.first.pointee != Self.timeless {
                broken.append("partition \(session.partition) has sessions but no latest")
            }
            return true
        }
        partitions.forEachRow { partition in
            let latest = latest(of: partition)
            guard latest != 0 else { return }
            reached += 1
            if session(latest - 1).partition != partition { broken.append("partition \(partition) has another's session") }
        }
        sessions.forEachRow { number in if !session(number).isLive { broken.append("session \(number) has ended") } }
        if reached != sessions.count { broken.append("\(reached) sessions can be found, \(sessions.count) are there") }
        return broken
    }

    private func checkGap(_ before: RowNumber, _ after: RowNumber) -> [String] {
        let (before, after) = (session(before), session(after))
        guard before.partition == after.partition, before.first.pointee != Self.timeless else { return [] }
        return after.first.pointee - before.last.pointee > gap
            ? [] : ["sessions from \(before.first.pointee) and \(after.first.pointee) are not apart"]
    }
}

/// A view of a session's payload, or of a copy of it.
struct Session {
    let payload: UnsafeMutableRawPointer

    var partition: RowNumber {
        get { payload.load(fromByteOffset: 4, as: RowNumber.self) }
        nonmutating set { payload.storeBytes(of: newValue, toByteOffset: 4, as: RowNumber.self) }
    }
    @inline(__always) var first: UnsafeMutablePointer<Int64> { (payload + 8).assumingMemoryBound(to: Int64.self) }
    @inline(__always) var last: UnsafeMutablePointer<Int64> { (payload + 16).assumingMemoryBound(to: Int64.self) }
    var isLive: Bool { first.pointee <= last.pointee }

    func end() {
        first.pointee = 0
        last.pointee = -1
    }
}
