/// The untyped packet that opens a connection.
package enum StartupPacket: Hashable, Sendable {
    case ssl
    case gssEncryption
    case cancel(CancelKey)
    case startup(StartupMessage)

    /// PostgreSQL's MAX_STARTUP_PACKET_LENGTH.
    package static let bytesMax = 10_000

    private static let cancelCode: UInt32 = 1234 << 16 | 5678
    private static let sslCode: UInt32 = 1234 << 16 | 5679
    private static let gssCode: UInt32 = 1234 << 16 | 5680

    /// - Parameter body: the packet without its length word.
    package init(decoding body: ArraySlice<UInt8>) throws(PgWireError) {
        var reader = MessageReader(body, type: 0)
        let code = try reader.uint32()
        switch code {
        case Self.cancelCode:
            self = .cancel(CancelKey(processID: try reader.int32(), secret: try reader.int32()))
            try reader.finish()
        case Self.sslCode:
            try reader.finish()
            self = .ssl
        case Self.gssCode:
            try reader.finish()
            self = .gssEncryption
        default:
            let major = UInt16(truncatingIfNeeded: code >> 16)
            let minor = UInt16(truncatingIfNeeded: code)
            guard major == 3 else { throw .unsupportedProtocol(major: major, minor: minor) }
            self = .startup(try StartupMessage(minorVersion: minor, decoding: &reader))
        }
    }
}
