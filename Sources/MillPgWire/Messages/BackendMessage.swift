/// What the server sends, except DataRow, which the row encoder writes straight from columns.
package enum BackendMessage: Hashable, Sendable {
    case authenticationOK
    /// The newest minor version served and the protocol extensions that were not understood.
    case negotiateProtocolVersion(minor: Int32, unknown: [String])
    case backendKeyData(CancelKey)
    case parameterStatus(name: String, value: String)
    case readyForQuery(TransactionStatus)
    case parseComplete
    case bindComplete
    case closeComplete
    case noData
    case parameterDescription([PgOID])
    case rowDescription(RowDescription)
    case portalSuspended
    case emptyQueryResponse
    case commandComplete(String)
    case errorResponse(ErrorResponse)
    case noticeResponse(ErrorResponse)

    package func encode(into writer: inout MessageWriter) {
        switch self {
        case .authenticationOK:
            writer.begin(UInt8(ascii: "R"))
            writer.append(Int32(0))
            writer.end()
        case .negotiateProtocolVersion(let minor, let unknown):
            writer.begin(UInt8(ascii: "v"))
            writer.append(Int32(3) << 16 | minor)
            writer.append(Int32(truncatingIfNeeded: unknown.count))
            for name in unknown { writer.append(cString: name) }
            writer.end()
        case .backendKeyData(let key):
            writer.begin(UInt8(ascii: "K"))
            writer.append(key.processID)
            writer.append(key.secret)
            writer.end()
        case .parameterStatus(let name, let value):
            writer.begin(UInt8(ascii: "S"))
            writer.append(cString: name)
            writer.append(cString: value)
            writer.end()
        case .readyForQuery(let status):
            writer.begin(UInt8(ascii: "Z"))
            writer.append(status.rawValue)
            writer.end()
        case .parseComplete: empty("1", into: &writer)
        case .bindComplete: empty("2", into: &writer)
        case .closeComplete: empty("3", into: &writer)
        case .noData: empty("n", into: &writer)
        case .portalSuspended: empty("s", into: &writer)
        case .emptyQueryResponse: empty("I", into: &writer)
        case .parameterDescription(let types):
            writer.begin(UInt8(ascii: "t"))
            writer.append(Int16(truncatingIfNeeded: types.count))
            for type in types { writer.append(type.rawValue) }
            writer.end()
        case .rowDescription(let description): description.encode(into: &writer)
        case .commandComplete(let tag):
            writer.begin(UInt8(ascii: "C"))
            writer.append(cString: tag)
            writer.end()
        case .errorResponse(let error): error.encode(type: UInt8(ascii: "E"), into: &writer)
        case .noticeResponse(let notice): notice.encode(type: UInt8(ascii: "N"), into: &writer)
        }
    }

    private func empty(_ type: Unicode.Scalar, into writer: inout MessageWriter) {
        writer.begin(UInt8(ascii: type))
        writer.end()
    }
}
