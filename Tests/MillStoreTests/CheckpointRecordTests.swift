import MillBase
import MillConnectorKit
import MillState
import Testing

@testable import MillStore

@Suite struct CheckpointRecordTests {
    private func place(_ job: UInt32) -> TablePlace { TablePlace(job: ObjectID(job), node: 7, ordinal: 2, worker: 3) }

    private var record: CheckpointRecord {
        let offsets: SourceOffsets = [
            ObjectID(16384): [
                SourceSplit(name: "t/0", topic: "t", partition: 0): SplitOffset(5),
                SourceSplit(name: "t/1", topic: "t", partition: 1): SplitOffset(.max),
            ], ObjectID(9): [:],
        ]
        return CheckpointRecord(
            number: 41, position: EpochPosition(epoch: Epoch(77), openedAtMicros: -5, dmlPosition: DMLPosition(12), offsets: offsets), workers: 4,
            nextTable: 9,
            files: [.init(number: 3, bytes: 1 << 40), .init(number: 4, bytes: 16)],
            tables: [1, 2].map {
                .init(
                    id: TableID($0), place: place($0),
                    shape: TableShape(kind: $0 == 1 ? .rows : .ordered, rowBytes: 64, layout: 24, used: 9, count: 7, first: 2))
            },
            notes: [
                StateNote(object: ObjectID(9), kind: "rejects", bytes: [1, 2, 3]), StateNote(object: ObjectID(9), kind: "ü", bytes: []),
            ])
    }

    @Test func readsWhatItWrote() throws { #expect(try CheckpointRecord(record.bytes) == record) }

    @Test func isRefusedWithAnyByteChangedOrMissingOrTooMany() {
        let bytes = record.bytes
        for index in bytes.indices {
            for bit in [UInt8(1), 128] {
                var damaged = bytes
                damaged[index] ^= bit
                #expect(throws: RecordDamage.self, "byte \(index)") { try CheckpointRecord(damaged) }
            }
            #expect(throws: RecordDamage.self, "\(index) bytes") { try CheckpointRecord(Array(bytes[..<index])) }
        }
        #expect(throws: RecordDamage.self) { try CheckpointRecord(bytes + [0]) }
    }

    /// Numbers that would overflow when they are counted on, under a checksum that fits.
    @Test func impossibleNumbersAreRefused() throws {
        let changes: [(String, (inout CheckpointRecord) -> Void)] = [
            ("number", { $0.number = .max }), ("epoch", { $0.position.epoch = Epoch(.max) }),
            ("transaction", { $0.position.dmlPosition = DMLPosition(.max) }), ("file", { $0.files[0].number = .max }),
            ("bytes", { $0.files[0].bytes = 1 << 63 }), ("rows", { $0.tables[0].shape.count = 1 << 63 }),
            ("used", { $0.tables[1].shape.used = .max }),
        ]
        for (what, change) in changes {
            var record = record
            change(&record)
            #expect(throws: RecordDamage.self, "\(what)") { try CheckpointRecord(record.bytes) }
        }
    }
}
