import MillTestKit
import Testing

@testable import MillIceberg

@Suite struct DeletionVectorTests {
    private func sample(_ random: inout SeededGenerator) -> Set<Int64> {
        var result: Set<Int64> = []
        for _ in 0..<random.number(0...4) {
            let start = Int64(random.pick([0, 1, 65_535, 1 << 20, 5 << 32]))
            switch random.number(0...2) {
            case 0: for offset in 0..<Int64(random.number(0...70_000)) { result.insert(start + offset) }
            case 1: for offset in 0..<Int64(random.number(0...9000)) { result.insert(start + offset * 7) }
            default: for _ in 0..<random.number(0...50) { result.insert(start + Int64(random.number(0...10_000_000))) }
            }
        }
        return result
    }

    @Test(arguments: 1...20) func positionsGoThereAndBack(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let wanted = sample(&random)
        let positions = DeletedPositions(wanted)
        #expect(positions.count == wanted.count)
        #expect(positions.positions == wanted.sorted())
        let decoded = try DeletionVector.decode(DeletionVector.encode(positions), countMax: wanted.count)
        #expect(decoded == positions)
        for position in [0, 1, 65_535, 65_536, 1 << 20, 5 << 32] as [Int64] {
            #expect(decoded.contains(position) == wanted.contains(position))
        }
    }

    @Test func unionsCountEachPositionOnce() {
        var one = DeletedPositions([1, 2, 3])
        one.formUnion(DeletedPositions([3, 4, 1 << 40]))
        #expect(one.positions == [1, 2, 3, 4, 1 << 40])
        #expect(one.count == 5)
    }

    @Test(arguments: 1...200) func damageIsAnErrorNotACrash(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var bytes = DeletionVector.encode(DeletedPositions(sample(&random)))
        for _ in 0...random.number(0...3) where !bytes.isEmpty {
            switch random.number(0...2) {
            case 0: bytes[random.number(0...bytes.count - 1)] = UInt8(random.number(0...255))
            case 1: bytes.removeLast(random.number(0...bytes.count - 1))
            default: bytes.append(UInt8(random.number(0...255)))
            }
        }
        // Whatever it is, it says so or gives positions within the bound.
        if let positions = try? DeletionVector.decode(bytes, countMax: 1_000_000) { #expect(positions.count <= 1_000_000) }
    }

    @Test func aFewBytesCannotStandForBillions() {
        // Full runs in every block, with the checksum right.
        var vector: [UInt8] = [0xD1, 0xD3, 0x39, 0x64]
        vector.append(littleEndian: UInt64(1))
        vector.append(littleEndian: UInt32(0))
        vector.append(littleEndian: UInt32(12_347) | 65_535 << 16)
        vector += [UInt8](repeating: 0xFF, count: 8192)
        for key in 0..<65_536 { vector.append(littleEndian: UInt32(key) | 0xFFFF << 16) }
        vector += [UInt8](repeating: 0, count: 4 * 65_536)
        for _ in 0..<65_536 {
            vector.append(littleEndian: UInt16(1))
            vector.append(littleEndian: UInt32(0xFFFF) << 16)
        }
        #expect(throws: BadBytes("a deletion vector has more than 1000 positions")) {
            try DeletionVector.decode(DeletionVector.framed(vector), countMax: 1000)
        }
    }
}
