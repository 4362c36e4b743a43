/// Everything a client may send after the startup packet.
package enum FrontendMessage: Hashable, Sendable {
    case query(QueryMessage)
    case parse(ParseMessage)
    case bind(BindMessage)
    case describe(PgObject)
    case execute(ExecuteMessage)
    case close(PgObject)
    case flush
    case sync
    case terminate
    /// A call through the long deprecated fast path; refused, so its fields are not kept.
    case functionCall
    /// CopyData, CopyDone or CopyFail.
    case copy
    /// PasswordMessage and the SASL responses: only meaningful while authenticating.
    case password([UInt8])

    /// - Parameters:
    ///   - type: the message's first byte.
    ///   - body: what follows the length word.
    package init(type: UInt8, decoding body: ArraySlice<UInt8>) throws(PgWireError) {
        var reader = MessageReader(body, type: type)
        switch type {
        case UInt8(ascii: "Q"): self = .query(try QueryMessage(decoding: &reader))
        case UInt8(ascii: "P"): self = .parse(try ParseMessage(decoding: &reader))
        case UInt8(ascii: "B"): self = .bind(try BindMessage(decoding: &reader))
        case UInt8(ascii: "D"): self = .describe(try PgObject(decoding: &reader))
        case UInt8(ascii: "E"): self = .execute(try ExecuteMessage(decoding: &reader))
        case UInt8(ascii: "C"): self = .close(try PgObject(decoding: &reader))
        case UInt8(ascii: "H"): self = .flush
        case UInt8(ascii: "S"): self = .sync
        case UInt8(ascii: "X"): self = .terminate
        case UInt8(ascii: "F"):
            self = .functionCall
            return
        case UInt8(ascii: "d"), UInt8(ascii: "c"), UInt8(ascii: "f"):
            self = .copy
            return
        case UInt8(ascii: "p"):
            self = .password(Array(body))
            return
        default: throw .unknownMessageType(type)
        }
        try reader.finish()
    }

    /// Whether `type` is one that `init` knows; asked before a body is waited for.
    package static func isKnown(_ type: UInt8) -> Bool {
        "QPBDECHSXFdcfp".utf8.contains(type)
    }

    /// The name that the protocol's documentation gives the message.
    package var name: String {
        switch self {
        case .query: "Query"
        case .parse: "Parse"
        case .bind: "Bind"
        case .describe: "Describe"
        case .execute: "Execute"
        case .close: "Close"
        case .flush: "Flush"
        case .sync: "Sync"
        case .terminate: "Terminate"
        case .functionCall: "FunctionCall"
        case .copy: "Copy"
        case .password: "Password"
        }
    }
}
