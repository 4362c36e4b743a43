package import MillBase

/// Bytes that are not the protocol. The stream cannot be trusted after any of these, so the connection ends with FATAL.
package enum PgWireError: Error, Hashable, Sendable, SQLErrorConvertible {
    /// The length word of a message or of the startup packet is below its minimum or above the limit.
    case invalidLength(Int, limit: Int)
    /// The first byte names no message that a client may send.
    case unknownMessageType(UInt8)
    /// A message ended before its fields did.
    case truncatedMessage(UInt8)
    /// A message went on after its last field.
    case trailingBytes(UInt8, count: Int)
    /// A string without its terminating zero.
    case unterminatedString
    /// A field holds a value outside its domain: a count below zero, a format that is neither 0 nor 1.
    case invalidField(String)
    case unsupportedProtocol(major: UInt16, minor: UInt16)
    /// A message that the protocol does not allow at this point.
    case unexpectedMessage(String)

    package var sqlError: SQLError {
        switch self {
        case .invalidLength(let length, let limit):
            SQLError(.protocolViolation, "invalid message length \(length)", detail: "The limit is \(limit) bytes.")
        case .unknownMessageType(let type):
            SQLError(.protocolViolation, "invalid frontend message type \(type)")
        case .truncatedMessage(let type):
            SQLError(.protocolViolation, "insufficient data left in message of type \(type)")
        case .trailingBytes(let type, let count):
            SQLError(.protocolViolation, "invalid message format: \(count) bytes left in message of type \(type)")
        case .unterminatedString:
            SQLError(.protocolViolation, "invalid string in message")
        case .invalidField(let name):
            SQLError(.protocolViolation, "invalid \(name) in message")
        case .unsupportedProtocol(let major, let minor):
            SQLError(.featureNotSupported, "unsupported frontend protocol \(major).\(minor): server supports 3.0")
        case .unexpectedMessage(let name):
            SQLError(.protocolViolation, "unexpected \(name) message")
        }
    }
}
