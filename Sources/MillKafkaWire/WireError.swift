package import MillBase

/// Why bytes are not the message they claim to be. Offsets count from the start of what was being read.
package enum WireError: Error, Hashable, Sendable, SQLErrorConvertible {
    /// More bytes were needed than there are.
    case truncated(offset: Int, needed: Int, available: Int)
    /// A length or count below -1, or -1 where null is not allowed, or more than the rest can hold.
    case invalidLength(offset: Int, length: Int64)
    /// A variable-length integer that does not end within its width.
    case invalidVarint(offset: Int)
    /// Text that is not UTF-8.
    case invalidText(offset: Int)
    /// More array elements than a message may hold.
    case tooManyElements(offset: Int)
    /// Bytes were left over after the message's last field.
    case trailingBytes(count: Int)
    /// A request that is not served, or not in this version.
    case unsupportedVersion(api: Int16, version: Int16)

    package var sqlError: SQLError {
        let text =
            switch self {
            case .truncated(let offset, let needed, let available): "kafka message ends early: \(needed) bytes needed at \(offset), \(available) left"
            case .invalidLength(let offset, let length): "kafka message has the impossible length \(length) at \(offset)"
            case .invalidVarint(let offset): "kafka message has an endless integer at \(offset)"
            case .invalidText(let offset): "kafka message has text that is not utf-8 at \(offset)"
            case .tooManyElements(let offset): "kafka message has too many elements at \(offset)"
            case .trailingBytes(let count): "kafka message has \(count) bytes too many"
            case .unsupportedVersion(let api, let version): "kafka request \(api) is not served in version \(version)"
            }
        return SQLError(.protocolViolation, text)
    }
}
