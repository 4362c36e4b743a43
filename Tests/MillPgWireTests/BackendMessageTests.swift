import MillBase
import Testing

@testable import MillPgWire

struct BackendMessageTests {
    private func bytes(_ message: BackendMessage) -> [UInt8] {
        var writer = MessageWriter()
        message.encode(into: &writer)
        return writer.bytes
    }

    @Test func messagesHaveTheBytesOfTheManual() {
        let cases: [(BackendMessage, [UInt8])] = [
            (.authenticationOK, [0x52, 0, 0, 0, 8, 0, 0, 0, 0]),
            (.readyForQuery(.idle), [0x5A, 0, 0, 0, 5, 0x49]),
            (.readyForQuery(.failed), [0x5A, 0, 0, 0, 5, 0x45]),
            (.backendKeyData(CancelKey(processID: 1, secret: -1)), [0x4B, 0, 0, 0, 12, 0, 0, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF]),
            (.parameterStatus(name: "a", value: "b"), [0x53, 0, 0, 0, 8, 0x61, 0, 0x62, 0]),
            (.parseComplete, [0x31, 0, 0, 0, 4]), (.bindComplete, [0x32, 0, 0, 0, 4]), (.closeComplete, [0x33, 0, 0, 0, 4]),
            (.noData, [0x6E, 0, 0, 0, 4]), (.portalSuspended, [0x73, 0, 0, 0, 4]), (.emptyQueryResponse, [0x49, 0, 0, 0, 4]),
            (.commandComplete("OK"), [0x43, 0, 0, 0, 7, 0x4F, 0x4B, 0]),
            (.parameterDescription([.int4]), [0x74, 0, 0, 0, 10, 0, 1, 0, 0, 0, 23]),
            (.negotiateProtocolVersion(minor: 0, unknown: ["x"]), [0x76, 0, 0, 0, 14, 0, 3, 0, 0, 0, 0, 0, 1, 0x78, 0]),
            (
                .rowDescription(RowDescription([PgColumn("a", .int4)], formats: [.binary])),
                [0x54, 0, 0, 0, 26, 0, 1, 0x61, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 23, 0, 4, 0xFF, 0xFF, 0xFF, 0xFF, 0, 1]
            ),
            (
                .errorResponse(ErrorResponse(.error, .syntaxError, "m", detail: "d", hint: "h", position: 3)),
                [0x45, 0, 0, 0, 39] + Array("SERROR\0VERROR\0C42601\0Mm\0Dd\0Hh\0P3\0\0".utf8)
            ),
            (
                .noticeResponse(ErrorResponse(.notice, .successfulCompletion, "m")),
                [0x4E, 0, 0, 0, 32] + Array("SNOTICE\0VNOTICE\0C00000\0Mm\0\0".utf8)
            ),
        ]
        for (message, expected) in cases {
            var counted = expected
            // The length word is what the manual defines it to be: everything after the type byte.
            counted.overwriteBigEndian(Int32(expected.count - 1), at: 1)
            #expect(bytes(message) == counted, "\(message)")
        }
    }

    @Test func zerosInsideAStringEndIt() {
        #expect(bytes(.commandComplete("a\0b")) == [0x43, 0, 0, 0, 6, 0x61, 0])
    }

    @Test(arguments: [(0, 1), (1, 2), (3, 3), (4, 4), (8, 5)])
    func positionsCountCharacters(offset: Int, position: Int) {
        #expect(ErrorResponse.characterPosition(ofByte: offset, in: "aéb🌊c") == position)
    }

    @Test func positionsOutsideTheTextAreDropped() {
        #expect(ErrorResponse.characterPosition(ofByte: -1, in: "a") == nil)
        #expect(ErrorResponse.characterPosition(ofByte: 2, in: "a") == nil)
        #expect(ErrorResponse.characterPosition(ofByte: 1, in: "a") == 2)
    }
}
