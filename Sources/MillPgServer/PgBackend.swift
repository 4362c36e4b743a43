package import MillBase
package import MillPgWire

/// What the server serves: opens a session for each connection.
///
/// The engine's adapter implements it; tests implement it with fixed answers.
package protocol PgBackend: Sendable {
    /// - Throws: why the connection is refused, such as 28000; the client sees it as FATAL.
    func openSession(_ startup: StartupMessage) async throws(SQLError) -> any PgSession
}
