import MillBase
import MillColumnar
import MillIO
import MillKafkaWire
import MillTestKit
import Synchronization
import Testing

@testable import MillLog

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

@Suite struct DMLLogTests {
    private static let types: [SQLType] = [
        .boolean, .int16, .int32, .int64, .float32, .float64, .numeric, .varchar, .bytea, .date, .time, .timestamp, .timestamptz, .interval, .jsonb,
    ]
    private static let path = "/data/dml/00000000000000000001.dml"

    private func open(_ disk: Disk, segmentBytesMax: Int = 16 << 20) throws -> DMLLog {
        var options = DMLLog.Options()
        options.segmentBytesMax = segmentBytesMax
        return try DMLLog(environment: Environment(files: disk.files, clock: VirtualClock(), random: disk.random), directory: "/data/dml", options: options)
    }

    /// A transaction that adds rows to one table of one bigint.
    private func numbers(_ values: [Int64], table: UInt32 = 7, nextRowID: Int64 = 1) -> DMLTransaction {
        let column = Column(.int64, capacity: values.count)
        for value in values { column.append(value) }
        return DMLTransaction(
            changes: [DMLTransaction.TableChange(table: ObjectID(table), batches: [DeltaBatch(columns: [column], count: values.count)])], nextRowID: nextRowID)
    }

    private func readNumbers(_ log: DMLLog, from position: UInt64 = 1) throws -> [[Int64]] {
        var found: [[Int64]] = []
        var expected = position
        try log.read(from: DMLPosition(position), types: { _ in [.int64] }) { (position, transaction) throws(SQLError) in
            #expect(position.number == expected)
            expected += 1
            found.append(
                transaction.changes.flatMap(\.batches).flatMap { batch in (0..<batch.count).map { batch.columns[0].values(Int64.self)[$0] } })
        }
        return found
    }

    @Test func everyTypeComesBackAsItWas() async throws {
        let random = SeededSource(5)
        var expected: [[String]] = []
        let disk = try Disk()
        let log = try open(disk)
        for count in [1, 3, 64, 65, 1000] {
            let columns = Self.types.map { type in
                let column = Column(type, capacity: count)
                for _ in 0..<count { column.append(scalar(type, random)) }
                return column
            }
            let weights = count % 2 == 0 ? nil : Weights((0..<count).map { $0 % 2 == 0 ? 1 : -1 })
            let batch = DeltaBatch(columns: columns, count: count, weights: weights)
            expected.append(lines(batch))
            let change = DMLTransaction.TableChange(table: ObjectID(1), batches: [batch])
            _ = try await log.append(DMLTransaction(changes: [change], nextRowID: 1))
        }
        var found: [[String]] = []
        try log.read(from: DMLPosition(1), types: { _ in Self.types }) { (_, transaction) throws(SQLError) in
            found.append(transaction.changes.flatMap(\.batches).flatMap(lines))
        }
        #expect(found == expected)
        log.close()
    }

    private func lines(_ batch: DeltaBatch) -> [String] {
        (0..<batch.count).map { row in "\(batch.weight(row)) " + batch.columns.map { "\($0.scalar(row))" }.joined(separator: " ") }
    }

    private func scalar(_ type: SQLType, _ random: SeededSource) -> Scalar {
        guard random.below(4) > 0 else { return .null }
        let number = Int64(bitPattern: random.next())
        switch type.physical {
        case .bool8: return .boolean(number > 0)
        case .int16: return .int(number % 32768)
        case .int32: return .int(number % 2_147_483_648)
        case .int64: return .int(number)
        case .float32: return .float(Double(Float(number)))
        case .float64: return .float(Double(number) / 3)
        case .decimal: return .decimal(Decimal(unscaled: Int128(number), scale: Int32(random.below(20))))
        case .interval: return .interval(Interval(months: Int32(random.below(99)), days: 3, micros: number))
        case .string:
            let text = String(repeating: "ä", count: random.below(20))
            return type == .bytea ? .bytes(Array(text.utf8)) : .string(text)
        }
    }

    /// Whatever was acknowledged is there after a power cut, in order; what was not may be there, as a prefix.
    @Test func acknowledgedTransactionsSurviveEveryPowerCut() async throws {
        for seed in UInt64(0)..<200 {
            let disk = try Disk(seed)
            var acknowledged: [[Int64]] = []
            var sent: [[Int64]] = []
            var rowID: Int64 = 1
            for life in 0..<4 {
                let log = try open(disk, segmentBytesMax: 400)
                let found = try readNumbers(log)
                #expect(found.starts(with: acknowledged), "seed \(seed) life \(life): \(found.count) of \(acknowledged.count)")
                #expect(sent.starts(with: found), "seed \(seed) life \(life)")
                #expect(log.nextRowID <= rowID && log.nextRowID > Int64(found.joined().count), "seed \(seed) life \(life)")
                #expect(log.durablePosition.number == UInt64(found.count))
                (acknowledged, sent, rowID) = (found, found, log.nextRowID)
                for index in 0..<disk.random.below(12) {
                    let values = (0...disk.random.below(8)).map { Int64(life * 1000 + index * 10 + $0) }
                    sent.append(values)
                    rowID += Int64(values.count)
                    let position = try log.write(numbers(values, nextRowID: rowID))
                    // Else nobody waits: the power may go while the fsync is under way.
                    if index % 3 != 2 {
                        try await log.sync(upTo: position)
                        acknowledged = sent
                    }
                }
                disk.files.crash(random: disk.random)
                log.close()
            }
        }
    }

    /// A process that ends before a segment's name is durable leaves one that the next process writes to.
    @Test func aSegmentWhoseNameWasNotDurableIsAfterAStart() async throws {
        for seed in UInt64(0)..<20 {
            let disk = try Disk(seed)
            let log = try open(disk, segmentBytesMax: 40)
            _ = try await log.append(numbers([1]))
            disk.files.setFault { operation, _ in operation == .syncDirectory ? 5 : nil }
            await #expect(throws: LogError.self) { try await log.append(self.numbers([2])) }
            disk.files.setFault(nil)
            let next = try open(disk)
            _ = try await next.append(numbers([3]))
            let acknowledged = try readNumbers(next)
            disk.files.crash(random: disk.random)
            #expect(try readNumbers(try open(disk)) == acknowledged, "seed \(seed)")
        }
    }

    @Test func aTornTailIsCutAndReported() async throws {
        let disk = try Disk()
        var log = try open(disk)
        _ = try await log.append(numbers([1]))
        disk.files.crash(random: disk.random)
        let file = try disk.files.open(Self.path, .readWrite)
        let size = try file.size()
        var torn: [UInt8] = []
        DMLRecord.append(DMLRecord.encodeChanges(numbers([2])), number: DMLPosition(2), nextRowID: 1, to: &torn)
        torn.removeLast(3)
        try torn.withUnsafeBytes { try file.write($0, at: size) }
        log = try open(disk)
        #expect(log.truncatedTail == TruncatedTail(path: Self.path, keptBytes: size, cutBytes: torn.count))
        #expect(try await log.append(numbers([3])) == DMLPosition(2))
        #expect(try readNumbers(log) == [[1], [3]])
    }

    /// What the second flush's mark says was durable is not cut off as torn, whichever byte is broken; what no mark vouches for is.
    @Test func everyBrokenByteIsSeen() async throws {
        let disk = try Disk()
        let log = try open(disk)
        _ = try await log.append(numbers([1]))
        let firstEnd = try disk.files.open(Self.path, .read).size()
        _ = try await log.append(numbers([2, 3]))
        disk.files.crash(random: disk.random)
        let file = try disk.files.open(Self.path, .readWrite)
        let bytes = try file.readAll().array
        for place in bytes.indices {
            var broken = bytes
            broken[place] ^= 0x40
            try file.truncate(to: 0)
            try broken.withUnsafeBytes { try file.write($0, at: 0) }
            switch place {
            case ..<DMLRecord.headerBytes: #expect(throws: LogError.self, "byte \(place)") { try open(disk) }
            case ..<(DMLRecord.headerBytes + DMLRecord.markBytes):
                let reopened = try open(disk)
                #expect(try readNumbers(reopened) == [[1], [2, 3]], "byte \(place)")
                #expect(reopened.damage.map(\.first) == [DMLPosition(1)] && reopened.damage.map(\.next) == [DMLPosition(1)])
            case ..<firstEnd:
                let reopened = try open(disk)
                let lost = DMLDamage(path: Self.path, offset: DMLRecord.headerBytes + DMLRecord.markBytes, first: DMLPosition(1), next: DMLPosition(2))
                #expect(reopened.damage == [lost] && reopened.truncatedTail == nil, "byte \(place)")
                #expect(try readNumbers(reopened, from: 2) == [[2, 3]], "byte \(place)")
                let error = #expect(throws: SQLError.self, "byte \(place)") { try readNumbers(reopened) }
                #expect(error?.sqlState == .dataCorrupted && error?.message.contains("byte 64") == true)
                #expect(try await reopened.append(numbers([4])) == DMLPosition(3))
            default: #expect(try readNumbers(try open(disk)) == [[1]], "byte \(place)")
            }
        }
    }

    /// Records of one flush lie behind one another; a power cut may lose the first and keep the second.
    @Test func aHoleInAFlushThatWasNeverDurableIsATornTail() async throws {
        let disk = try Disk()
        let log = try open(disk)
        _ = try await log.append(numbers([1]))
        let size = try disk.files.open(Self.path, .read).size()
        var torn = DMLRecord.mark(DMLRecord.Header(first: DMLPosition(1), nextRowID: 1))
        for number in UInt64(2)...3 {
            DMLRecord.append(DMLRecord.encodeChanges(numbers([Int64(number)])), number: DMLPosition(number), nextRowID: 1, to: &torn)
        }
        torn[DMLRecord.markBytes + 12] ^= 1
        log.close()
        let file = try disk.files.open(Self.path, .readWrite)
        try torn.withUnsafeBytes { try file.write($0, at: size) }
        let reopened = try open(disk)
        #expect(reopened.truncatedTail?.keptBytes == size + DMLRecord.markBytes && reopened.damage.isEmpty)
        #expect(try readNumbers(reopened) == [[1]])
        #expect(try await reopened.append(numbers([9])) == DMLPosition(2))
    }

    /// A power cut in the making of a segment may leave its 32 bytes, and none of them.
    @Test func aLastSegmentWithoutAHeaderIsMadeAnew() async throws {
        let disk = try Disk()
        let log = try open(disk, segmentBytesMax: 100)
        for number in Int64(1)...3 { _ = try await log.append(numbers([number])) }
        log.close()
        let path = "/data/dml/00000000000000000004.dml"
        try disk.files.open(path, .create).truncate(to: DMLRecord.headerBytes)
        let reopened = try open(disk, segmentBytesMax: 100)
        #expect(try readNumbers(reopened) == [[1], [2], [3]])
        #expect(try await reopened.append(numbers([4])) == DMLPosition(4))
    }

    /// Alone, such a file is all that says which number is next.
    @Test func anOnlySegmentWithoutAHeaderIsRefused() throws {
        let disk = try Disk()
        try disk.files.createDirectory("/data/dml")
        try disk.files.open("/data/dml/00000000000000000004.dml", .create).truncate(to: DMLRecord.headerBytes)
        #expect(throws: LogError.self) { try open(disk) }
        #expect(try disk.files.list("/data/dml").count == 1)
    }

    @Test func whoWaitsWhenTheLogClosesIsTold() async throws {
        for seed in UInt64(0)..<20 {
            let log = try open(try Disk(seed))
            async let result: Result<DMLPosition, any Error> = {
                do { return .success(try await log.append(numbers([1]))) } catch { return .failure(error) }
            }()
            log.close()
            _ = await result
            #expect(throws: LogError.closed) { try log.write(numbers([2])) }
        }
    }

    @Test func discardedSegmentsGoAndNumbersGoOn() async throws {
        let disk = try Disk()
        var log = try open(disk, segmentBytesMax: 200)
        for number in Int64(1)...20 { _ = try await log.append(numbers([number], nextRowID: number * 10)) }
        let before = try disk.files.list("/data/dml")
        #expect(before.count > 4)
        try log.discard(upTo: DMLPosition(10))
        let after = try disk.files.list("/data/dml")
        #expect(after.count < before.count && after.last == before.last)
        #expect(try readNumbers(log, from: 11) == (11...20).map { [$0] })
        #expect(throws: SQLError.self) { try readNumbers(log, from: 1) }
        try log.discard(upTo: DMLPosition(20))
        #expect(try disk.files.list("/data/dml").count == 1)
        log.close()
        log = try open(disk, segmentBytesMax: 200)
        #expect(log.nextRowID == 200)
        #expect(try await log.append(numbers([21])) == DMLPosition(21))
        #expect(try readNumbers(log, from: 21) == [[21]])
    }

    @Test func aDamagedEarlierSegmentIsNamed() async throws {
        let disk = try Disk()
        let log = try open(disk, segmentBytesMax: 200)
        for number in Int64(1)...9 { _ = try await log.append(numbers([number])) }
        let file = try disk.files.open(Self.path, .readWrite)
        let size = try file.size()
        try [UInt8(0xff)].withUnsafeBytes { try file.write($0, at: size - 1) }
        let error = #expect(throws: SQLError.self) { try readNumbers(log) }
        #expect(error?.sqlState == .dataCorrupted && error?.message.contains(Self.path) == true)
    }

    @Test func transactionsThatComeWhileAFlushRunsShareTheNext() async throws {
        let disk = try Disk()
        let log = try open(disk)
        let syncs = Mutex(0)
        let isHeld = Mutex(true)
        let gate = Mutex(())
        gate._unsafeLock()
        disk.files.setFault { operation, path in
            guard operation == .sync, path.hasSuffix(".dml") else { return nil }
            syncs.withLock { $0 += 1 }
            // The first one waits until all others are written.
            let waits = isHeld.withLock { held in
                defer { held = false }
                return held
            }
            if waits { gate.withLock { _ in } }
            return nil
        }
        var last = DMLPosition.zero
        for number in Int64(0)..<100 { last = try log.write(numbers([number])) }
        gate._unsafeUnlock()
        try await log.sync(upTo: last)
        #expect(syncs.withLock { $0 } <= 2)
        #expect(try readNumbers(log).count == 100)
    }

    @Test func aFullDiskRefusesAndTheLogGoesOn() async throws {
        let disk = try Disk()
        let log = try open(disk, segmentBytesMax: 200)
        disk.files.setFault { operation, _ in operation == .reserve ? ENOSPC : nil }
        let error = #expect(throws: LogError.self) { try log.write(numbers([1])) }
        #expect(error?.sqlError.sqlState == .diskFull)
        disk.files.setFault(nil)
        for number in Int64(1)...5 { _ = try await log.append(numbers([number])) }
        // No room for another segment: the last one goes on over its limit, in room that it has.
        let segments = try disk.files.list("/data/dml")
        disk.files.setFault { operation, _ in operation == .reserve ? ENOSPC : nil }
        for number in Int64(6)...9 { _ = try? await log.append(numbers([number])) }
        #expect(try disk.files.list("/data/dml") == segments)
        disk.files.setFault(nil)
        _ = try await log.append(numbers([10]))
        #expect(try readNumbers(log).flatMap { $0 } == (try readNumbers(open(disk, segmentBytesMax: 200))).flatMap { $0 })
        #expect(try readNumbers(log).count == Int(log.durablePosition.number))
    }

    @Test func afterAFailedSyncNothingIsTaken() async throws {
        let disk = try Disk()
        let log = try open(disk)
        _ = try await log.append(numbers([1]))
        disk.files.setFault { operation, _ in operation == .sync ? EIO : nil }
        await #expect(throws: LogError.self) { try await log.append(numbers([2])) }
        disk.files.setFault(nil)
        #expect(throws: LogError.self) { try log.write(numbers([3])) }
        #expect(log.durablePosition == DMLPosition(1))
        #expect(try readNumbers(log) == [[1]])
    }

    @Test func tablesThatAreNoMoreAreLeftOut() async throws {
        let disk = try Disk()
        let log = try open(disk)
        var transaction = numbers([1], table: 3)
        transaction.changes += numbers([2], table: 4).changes
        _ = try await log.append(transaction)
        var tables: [ObjectID] = []
        try log.read(from: DMLPosition(1), types: { $0 == ObjectID(4) ? [.int64] : nil }) { (_, transaction) throws(SQLError) in
            tables += transaction.changes.map(\.table)
        }
        #expect(tables == [ObjectID(4)])
        #expect(throws: SQLError.self) { try log.read(from: DMLPosition(1), types: { _ in [.varchar] }) { (_, _) throws(SQLError) in } }
    }
}
