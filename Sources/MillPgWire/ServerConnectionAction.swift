/// What a connection must do next.
///
/// Actions whose comment names an answer leave the machine busy until that event comes; after the others it takes the next
/// message.
package enum ServerConnectionAction: Hashable, Sendable {
    /// Send these (possibly none) and read on.
    case send([BackendMessage])
    /// Send these at once, with everything buffered before them, and read on.
    case sendAndFlush([BackendMessage])
    /// Answer an SSL or GSS request with the single byte `N` and read on.
    case refuseEncryption
    /// Send what is buffered.
    case flush
    /// Send these, flush, close.
    case close([BackendMessage])
    /// Cancel what the connection with this key runs, then close without an answer.
    case cancel(CancelKey)

    /// Open a session, after sending `preamble`; answer with `sessionOpened` or `sessionRefused`.
    case openSession(StartupMessage, preamble: [BackendMessage])
    /// Run every statement of the text: for each `rowsBegin` when it has rows, then `completed`; `failed` ends the run.
    /// Then settle; the answer is `settled`.
    case runQuery(String)
    /// Prepare one statement and keep it under `id`, if not `isKept` until the next; portals may keep it longer. Answer with `prepared` or `failed`.
    case prepare(StatementID, text: String, parameterTypes: [PgOID], isKept: Bool)
    /// Make a portal under `id`; answer with `bound` or `failed`.
    case bind(PortalID, StatementID, parameters: [BoundParameter], resultFormats: [PgFormat])
    /// Send up to `rowLimit` rows of a portal; answer with `completed`, `suspended` or `failed`.
    case execute(PortalID, rowLimit: Int?)
    /// Send these and tell the session that its transaction failed.
    case reject([BackendMessage])
    /// The same, then settle.
    case rejectAndSettle([BackendMessage])
    /// End the implicit transaction; `failed` may come first, then `settled`.
    case settle
}

/// A prepared statement of one connection.
package struct StatementID: Hashable, Sendable {
    package let number: Int
    package init(_ number: Int) { self.number = number }
}

/// A portal of one connection.
package struct PortalID: Hashable, Sendable {
    package let number: Int
    package init(_ number: Int) { self.number = number }
}

/// One parameter as Bind brought it, with the type that the statement gave it.
package struct BoundParameter: Hashable, Sendable {
    package var type: PgOID
    package var format: PgFormat
    /// Nil is NULL.
    package var bytes: [UInt8]?

    package init(_ type: PgOID, _ format: PgFormat, _ bytes: [UInt8]?) {
        self.type = type
        self.format = format
        self.bytes = bytes
    }
}
