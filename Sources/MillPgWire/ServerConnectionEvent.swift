package import MillBase

/// What happens to a connection: a packet came in, or what an action asked for is done.
package enum ServerConnectionEvent: Sendable {
    // From the client.
    case startupPacket(StartupPacket)
    case message(FrontendMessage)
    /// The bytes received are not the protocol.
    case malformed(PgWireError)

    // From the backend, each the answer to an action.
    /// The session is open: what it reports beyond the defaults, and the key that cancels its statements.
    case sessionOpened(parameters: [StartupMessage.Setting], key: CancelKey)
    case sessionRefused(SQLError)
    /// A statement of a simple query is about to return rows.
    case rowsBegin([PgColumn])
    /// A statement ended: its command tag, or nil for an empty query.
    case completed(tag: String?)
    /// A portal reached Execute's row limit and has more.
    case suspended
    case prepared(parameterTypes: [PgOID], columns: [PgColumn]?)
    case bound
    /// What was asked for failed; the span counts bytes of `text`.
    case failed(SQLError, in: String?)
    /// The implicit transaction of a simple query or of the messages before a Sync is over.
    case settled(TransactionStatus)

    // At any time.
    case notice(ErrorResponse)
    case parameterChanged(name: String, value: String)
    /// The server stops, or a limit ends this connection.
    case terminate(SQLError)
}
