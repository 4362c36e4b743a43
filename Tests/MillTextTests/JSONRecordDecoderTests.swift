import MillBase
import MillColumnar
import MillConnectorKit
import Testing

@testable import MillText

@Suite struct JSONRecordDecoderTests {
    @Test func bidsOfALineFileBecomeColumns() {
        let decoder = JSONRecordDecoder(
            fields: [Field("auction", .int64), Field("price", .int32), Field("channel", .varchar), Field("at", .timestamp)],
            wanted: [.field(2), .field(0), .position, .field(3), .field(1)])
        let decoded = decoder.decode(
            .records([
                #"{"auction":12345678901,"price":7,"channel":"a channel with a long name","at":"2026-01-02T03:04:05.678"}"#,
                #"{"at": "2026-01-02 03:04:05.6789125Z" , "channel" : "short", "auction": -3, "price": 1e2}"#,
            ]))
        #expect(decoded.rejects == [])
        #expect(decoded.rows == [
            ["a channel with a long name", "12345678901", "0", "1767323045678000", "7"],
            ["short", "-3", "1", "1767323045678913", "100"],
        ])
    }
}
