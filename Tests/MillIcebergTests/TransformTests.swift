import MillColumnar
import MillTestKit
import Testing

@testable import MillIceberg

/// The vectors of the specification's appendix B, and its examples of transforms.
@Suite struct TransformTests {
    private func hash(_ text: String) -> Int32 { Array(text.utf8).withUnsafeBufferPointer { Murmur3.hash($0) } }
    private func hash(_ bytes: [UInt8]) -> Int32 { bytes.withUnsafeBufferPointer { Murmur3.hash($0) } }

    @Test func hashesAreThoseOfTheSpecification() {
        #expect(Murmur3.hash(34) == 2_017_239_379)
        #expect(hash(SingleValue.decimalBytes(1420)) == -500_754_589)
        #expect(Murmur3.hash(17_486) == -653_330_422)
        #expect(Murmur3.hash(81_068_000_000) == -662_762_989)
        #expect(Murmur3.hash(1_510_871_468_000_000) == -2_047_944_441)
        #expect(Murmur3.hash(1_510_871_468_000_001) == -1_207_196_810)
        #expect(hash("iceberg") == 1_210_000_089)
        #expect(UUIDText.bytes("f79c3e09-677c-4bbd-a479-3f349cb785e7").map { hash($0) } == 1_488_055_340)
        #expect(hash([0, 1, 2, 3]) == -188_683_207)
    }

    private func apply(_ transform: Transform, _ value: Scalar, _ type: IcebergType) -> Scalar? {
        transform.applied(to: .constant(value, type.sqlType ?? .int32, count: 3), of: type, count: 3)?.scalar(2)
    }

    @Test func numbersAreCutDownwards() {
        #expect(apply(.truncate(10), .int(1), .int) == .int(0))
        #expect(apply(.truncate(10), .int(-1), .int) == .int(-10))
        #expect(apply(.truncate(10), .int(-1), .long) == .int(-10))
        let decimal = IcebergType.decimal(precision: 9, scale: 2)
        #expect(apply(.truncate(50), .decimal(Decimal(unscaled: 1065, scale: 2)), decimal) == .decimal(Decimal(unscaled: 1050, scale: 2)))
        // The column's scale counts, not the value's.
        #expect(apply(.truncate(50), .decimal(Decimal(unscaled: 107, scale: 1)), decimal) == .decimal(Decimal(unscaled: 1050, scale: 2)))
    }

    @Test func textsAreCutBetweenCharacters() {
        #expect(apply(.truncate(3), .string("iceberg"), .string) == .string("ice"))
        #expect(apply(.truncate(3), .string("äöüß and much longer than twelve"), .string) == .string("äöü"))
        #expect(apply(.truncate(20), .string("a text that is longer than twenty"), .string) == .string("a text that is longe"))
        #expect(apply(.truncate(3), .string("ab"), .string) == .string("ab"))
        #expect(apply(.truncate(3), .bytes([1, 2, 3, 4, 5]), .binary) == .bytes([1, 2, 3]))
        #expect(apply(.truncate(3), .null, .string) == .null)
    }

    @Test func timesAreCountedFrom1970() {
        // 2017-11-16T22:31:08, and an instant before 1970.
        let (late, early) = (Scalar.int(1_510_871_468_000_000), Scalar.int(-1))
        #expect(apply(.year, late, .timestamp) == .int(47))
        #expect(apply(.month, late, .timestamp) == .int(574))
        #expect(apply(.day, late, .timestamptz) == .int(17_486))
        #expect(apply(.hour, late, .timestamp) == .int(419_686))
        #expect(apply(.year, early, .timestamp) == .int(-1))
        #expect(apply(.month, early, .timestamp) == .int(-1))
        #expect(apply(.day, early, .timestamp) == .int(-1))
        #expect(apply(.hour, early, .timestamp) == .int(-1))
        #expect(apply(.month, .int(17_486), .date) == .int(574))
        #expect(apply(.hour, .int(17_486), .date) == nil)
    }

    @Test func bucketsAreNeverNegative() {
        #expect(apply(.bucket(16), .int(34), .int) == .int(2_017_239_379 % 16))
        #expect(apply(.bucket(16), .string("iceberg"), .string) == .int(1_210_000_089 % 16))
        #expect(
            apply(.bucket(7), .decimal(Decimal(unscaled: 142, scale: 1)), .decimal(precision: 9, scale: 2))
                == .int(Int64((-500_754_589 & Int32.max) % 7)))
        #expect(apply(.bucket(16), .null, .int) == .null)
        #expect(apply(.bucket(16), .float(1), .double) == nil)
    }

    @Test func wholeBatchesOfDecimalsGoToTheirBuckets() {
        let type = IcebergType.decimal(precision: 12, scale: 2)
        let column = Column(.numeric(precision: 12, scale: 2), capacity: 1000)
        // Scales of their own: 14.2 and 14.20 are one value to the table.
        for row in 0..<1000 { column.append(row % 2 == 0 ? Decimal(unscaled: 142, scale: 1) : Decimal(unscaled: 1420, scale: 2)) }
        let buckets = Transform.bucket(7).applied(to: column, of: type, count: 1000)
        #expect(
            buckets.map { column in (0..<1000).allSatisfy { column.scalar($0) == .int(Int64((-500_754_589 & Int32.max) % 7)) } } == true)
    }

    @Test func namesOfTransformsAreRead() {
        for text in ["identity", "bucket[16]", "truncate[4]", "year", "month", "day", "hour", "void"] {
            #expect(Transform(text).description == text)
        }
        for text in ["bucket[0]", "bucket[-1]", "truncate[]", "bucket", "zorder[1]"] { #expect(Transform(text) == .unknown(text)) }
    }

    @Test func directoriesAreForPeople() {
        let spec = PartitionSpec([
            PartitionField(sourceID: 1, fieldID: 1000, name: "a b", .identity),
            PartitionField(sourceID: 2, fieldID: 1001, name: "day", .day),
            PartitionField(sourceID: 2, fieldID: 1002, name: "hour", .hour),
            PartitionField(sourceID: 2, fieldID: 1003, name: "month", .month),
        ])
        let path = spec.path([.string("x/ä"), .int(-1), .int(-1), .int(-1)], [.string, .date, .int, .int])
        #expect(path == "a%20b=x%2F%C3%A4/day=1969-12-31/hour=1969-12-31-23/month=1969-12")
    }
}

@Suite struct SingleValueTests {
    @Test func valuesGoThereAndBack() {
        let values: [(Scalar, IcebergType, [UInt8])] = [
            (.boolean(true), .boolean, [1]), (.int(-2), .int, [0xFE, 0xFF, 0xFF, 0xFF]), (.int(1), .long, [1, 0, 0, 0, 0, 0, 0, 0]),
            (.float(1), .float, [0, 0, 0x80, 0x3F]), (.float(-1), .double, [0, 0, 0, 0, 0, 0, 0xF0, 0xBF]),
            (.decimal(Decimal(unscaled: 1420, scale: 2)), .decimal(precision: 9, scale: 2), [5, 0x8C]),
            (.decimal(Decimal(unscaled: -1, scale: 0)), .decimal(precision: 9, scale: 0), [0xFF]),
            (.decimal(Decimal(unscaled: 128, scale: 0)), .decimal(precision: 9, scale: 0), [0, 0x80]),
            (.string("é"), .string, [0xC3, 0xA9]), (.bytes([1, 2]), .binary, [1, 2]),
            (.string("f79c3e09-677c-4bbd-a479-3f349cb785e7"), .uuid, UUIDText.bytes("f79c3e09-677c-4bbd-a479-3f349cb785e7") ?? []),
        ]
        for (value, type, bytes) in values {
            #expect(SingleValue.encode(value, type) == bytes)
            #expect(SingleValue.decode(bytes, type) == value)
        }
    }

    @Test func boundsFromBeforeAColumnWasWidenedAreRead() {
        #expect(SingleValue.decode([0xFE, 0xFF, 0xFF, 0xFF], .long) == .int(-2))
        #expect(SingleValue.decode([0, 0, 0x80, 0x3F], .double) == .float(1))
    }

    @Test func otherBytesAreNoValue() {
        for type in [IcebergType.boolean, .int, .long, .float, .double, .uuid, .decimal(precision: 9, scale: 2)] {
            #expect(SingleValue.decode([], type) == nil)
            #expect(SingleValue.decode([UInt8](repeating: 1, count: 17), type) == nil)
        }
    }
}
