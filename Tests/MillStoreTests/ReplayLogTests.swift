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
        try log.append([entry(1), entry(2)])
        try log.append([entry(3)])
        #expect(log.entries == [entry(1), entry(2), entry(3)])
        let bytes = try files.open("/replay/7", .read).readAll()
        for length in 0...bytes.count {
            let file = try files.open("/replay/7", .create)
            try file.write(Array(bytes[..<length]))
            let read = try ReplayLog(reading: place, bytesMax: 1 << 20)
            #expect(read.entries == Array([entry(1), entry(2), entry(3)].prefix(read.count)) && read.count == (length * 3) / bytes.count, "\(length)")
            try read.append([entry(9)])
            #expect(try ReplayLog(reading: place, bytesMax: 1 << 20).entries.last == entry(9))
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
