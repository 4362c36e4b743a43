import MillBase
import MillPgWire
import Testing

@testable import MillPgServer

struct PgParameterTests {
    private func array(_ element: PgOID, _ values: [[UInt8]?], dimensions: Int32 = 1) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.appendBigEndian(dimensions)
        bytes.appendBigEndian(Int32(values.contains { $0 == nil } ? 1 : 0))
        bytes.appendBigEndian(element.rawValue)
        guard dimensions > 0 else { return bytes }
        bytes.appendBigEndian(Int32(values.count))
        bytes.appendBigEndian(Int32(1))
        for value in values {
            bytes.appendBigEndian(Int32(value?.count ?? -1))
            bytes += value ?? []
        }
        return bytes
    }

    private func value(_ type: PgOID, _ bytes: [UInt8]) throws -> PgParameter.Value {
        try PgParameter(BoundParameter(type, .binary, bytes)).value
    }

    @Test func binaryArraysBecomeTheirText() throws {
        let numbers = array(.int4, [[0, 0, 0, 1], nil, [255, 255, 255, 255]])
        #expect(try value(PgOID(1007), numbers) == .text("{1,NULL,-1}"))
        #expect(try value(PgOID(1009), array(.text, [Array("a b".utf8), Array("c".utf8), Array("NULL".utf8)])) == .text("{\"a b\",c,\"NULL\"}"))
        #expect(try value(PgOID(1182), array(.date, [[0, 0, 0, 0]])) == .text("{2000-01-01}"))
        #expect(try value(PgOID(1000), array(.bool, [[1], [0]])) == .text("{t,f}"))
        #expect(try value(PgOID(1007), array(.int4, [], dimensions: 0)) == .text("{}"))
        #expect(throws: SQLError.self) { try value(PgOID(1007), array(.int4, [], dimensions: 2)) }
        #expect(throws: SQLError.self) { try value(PgOID(1007), array(.text, [[65]])) }
        for length in numbers.indices { #expect(throws: SQLError.self) { try value(PgOID(1007), Array(numbers[..<length])) } }
        #expect(throws: SQLError.self) { try value(PgOID(1007), numbers + [0]) }
    }
}
