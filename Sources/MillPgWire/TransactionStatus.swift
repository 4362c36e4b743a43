/// The state that ReadyForQuery tells the client.
package enum TransactionStatus: UInt8, Hashable, Sendable {
    /// No transaction block is open.
    case idle = 0x49
    /// Inside a transaction block.
    case inBlock = 0x54
    /// Inside a block that failed: only ROLLBACK and COMMIT are accepted.
    case failed = 0x45
}
