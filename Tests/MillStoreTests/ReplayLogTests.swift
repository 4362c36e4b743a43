import MillBase
import MillConnectorKit
import MillIO
import Testing

@testable import MillStore

@Suite struct ReplayLogTests {
    private let files = MemoryFileSystem()
    private var place: ReplayLog.Place { ReplayLog.Place(files, directory: "/replay", name: "7") }

    private func entry(_ number: Int64) -> ReplayLog.Entry {
        ReplayLog.Entry(split: SourceSplit(name: "t/0", topic: "t", partition: 0), position: number, record: Array("record \(number)".utf8))
    }

    @Test func everyCutOfTheFileGivesItsWholeEntries() throws {
        let log = ReplayLog(at: place, bytesMax: 1 << 20)
        var ends: [Int] = []
        for number in Int64(1)...3 {
            try log.append([entry(number)])
            ends.append(try files.open("/replay/7", .read).size())
        }
        #expect(log.entries == [entry(1), entry(2), entry(3)])
        let bytes = try files.open("/replay/7", .read).readAll()
        for length in 0...bytes.count {
            let file = try files.open("/replay/7", .create)
            try file.write(Array(bytes[..<length]))
            let read = try ReplayLog(reading: place, bytesMax: 1 << 20)
            #expect(read.entries == Array([entry(1), entry(2), entry(3)].prefix(ends.count { $0 <= length })), "\(length)")
            try read.append([entry(9)])
            #expect(try ReplayLog(reading: place, bytesMax: 1 << 20).entries.last == entry(9))
        }
    }

    /// What was durable when something behind it was written is not cut off as torn.
    @Test func everyBrokenByteIsSeen() throws {
        let log = ReplayLog(at: place, bytesMax: 1 << 20)
        try log.append([entry(1)])
        let firstEnd = try files.open("/replay/7", .read).size()
        try log.append([entry(2), entry(3)])
        let bytes = try files.open("/replay/7", .read).readAll()
        for place in bytes.indices {
            var broken = bytes
            broken[place] ^= 0x40
            try files.open("/replay/7", .create).write(broken)
            if place < firstEnd {
                let error = #expect(throws: SQLError.self, "byte \(place)") { try ReplayLog(reading: self.place, bytesMax: 1 << 20) }
                #expect(error?.sqlState == .dataCorrupted && error?.message.contains("byte 0") == true)
                #expect(try files.open("/replay/7", .read).readAll() == broken)
            } else {
                let read = try ReplayLog(reading: self.place, bytesMax: 1 << 20)
                #expect(read.entries.first == entry(1) && read.count < 3, "byte \(place)")
            }
        }
    }

    @Test func readersGetWhatTheyAskFor() throws {
        let log = ReplayLog(at: nil, bytesMax: 1 << 20)
        try log.append((0..<5).map(entry))
        #expect(log.entries(from: 1, countMax: 2, bytesMax: 1000) == [entry(1), entry(2)])
        #expect(log.entries(from: 1, countMax: 10, bytesMax: 9) == [entry(1), entry(2)])
        #expect(log.entries(from: 5, countMax: 10, bytesMax: 9) == [])
    }
}
