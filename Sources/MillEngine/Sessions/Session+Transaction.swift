package import MillBase
import MillSQL
import Synchronization

/// Transaction blocks: their writes and settings, and what they refuse.
///
/// A block's writes wait in the session until COMMIT, so a savepoint is how many there were, and the settings as they were. Definitions
/// take effect at once and are never undone.
extension Session {
    struct Savepoint: Sendable {
        var name: String
        /// A place in the transaction's writes.
        var mark: Int
        var settings: SessionSettings
        var blockSettings: BlockSettings?
    }

    /// What the settings are once a block has ended.
    struct BlockSettings: Sendable {
        var ifCommitted: SessionSettings
        var ifRolledBack: SessionSettings
    }

    /// Ends an implicit transaction: its writes become visible. Does nothing in a block.
    package func settle() async throws(SQLError) {
        let open: OpenTransaction? = state.withLock { state in
            state.endStatement()
            guard state.transaction == .none else { return nil }
            defer { state.open = nil }
            return state.open
        }
        if let open { try await engine.commit(open) }
    }

    /// A statement failed: an implicit transaction is rolled back, a block can only be rolled back.
    package func statementFailed() {
        let isImplicit = state.withLock { state in
            state.endStatement()
            if state.transaction != .none { state.transaction = .failed }
            return state.transaction == .none
        }
        if isImplicit { discardOpen() }
    }

    func refuseInFailedBlock(_ statement: Statement) throws(SQLError) {
        guard transaction == .failed else { return }
        switch statement {
        case .transaction(.commit), .transaction(.rollback), .transaction(.rollbackTo): return
        default: throw SQLError(.inFailedSQLTransaction, "current transaction is aborted, commands ignored until end of transaction block")
        }
    }

    func refuseInReadOnlyTransaction(_ statement: Statement) throws(SQLError) {
        switch statement {
        case .query, .show, .describe, .set, .reset, .explain, .transaction, .cursor, .prepared, .discard, .flush, .wait: return
        case .createRelation, .createView, .createSink, .createNamespace, .createIndex, .drop, .alter, .comment, .insert, .update, .delete,
            .truncate, .copy, .cancelJobs, .jobControl, .replayRejects:
            let isReadOnly = state.withLock { $0.settings.isReadOnly(inBlock: $0.transaction != .none) }
            guard isReadOnly else { return }
            throw SQLError(.readOnlySQLTransaction, "cannot execute \(statement.command) in a read-only transaction")
        }
    }

    func transact(_ statement: Transaction) async throws(SQLError) -> Outcome {
        switch statement {
        case .begin(let modes):
            let wasOpen = state.withLock { $0.transaction == .open }
            if wasOpen { notice(SQLError(.activeSQLTransaction, "there is already a transaction in progress")) } else { begin() }
            try setModes(modes)
        case .commit(let andChain):
            let before = transaction
            if before == .none { notice(SQLError(.noActiveSQLTransaction, "there is no transaction in progress")) }
            let open = end(committing: before == .open, andChain: andChain)
            if before == .failed {
                if let open { engine.abandon(open) }
                return .done(tag: "ROLLBACK")
            }
            if let open { try await engine.commit(open) }
        case .rollback(let andChain):
            if transaction == .none { notice(SQLError(.noActiveSQLTransaction, "there is no transaction in progress")) }
            if let open = end(committing: false, andChain: andChain) { engine.abandon(open) }
        case .savepoint(let name):
            try requireBlock("SAVEPOINT")
            state.withLock { state in
                state.savepoints.append(
                    Savepoint(name: name.name, mark: state.open?.mark ?? 0, settings: state.settings, blockSettings: state.blockSettings))
            }
        case .rollbackTo(let name):
            try requireBlock("ROLLBACK TO SAVEPOINT")
            let place = try place(of: name)
            state.withLock { state in
                let savepoint = state.savepoints[place]
                state.savepoints.removeSubrange((place + 1)...)
                state.transaction = .open
                state.open?.rollBack(to: savepoint.mark)
                state.blockSettings = savepoint.blockSettings
                state.replaceSettings(by: savepoint.settings)
            }
        case .release(let name):
            try requireBlock("RELEASE SAVEPOINT")
            let place = try place(of: name)
            state.withLock { $0.savepoints.removeSubrange(place...) }
        case .set(let modes, let isSession):
            if isSession {
                for (name, value) in modes.flatMap(\.settings) { try change("default_" + name, to: value) }
            } else if transaction == .none {
                notice(SQLError(.noActiveSQLTransaction, "SET TRANSACTION can only be used in transaction blocks"))
            } else {
                try setModes(modes)
            }
        }
        return .done(tag: Statement.transaction(statement).command)
    }

    private func begin() {
        state.withLock { $0.beginBlock() }
    }

    /// Ends the block, if one is open.
    /// - Returns: what it saw and wrote, to be committed or abandoned.
    private func end(committing: Bool, andChain: Bool) -> OpenTransaction? {
        state.withLock { state in
            defer {
                state.transaction = .none
                state.open = nil
                state.savepoints = []
                if let after = state.blockSettings {
                    state.replaceSettings(by: committing ? after.ifCommitted : after.ifRolledBack)
                    state.blockSettings = nil
                }
                if andChain { state.beginBlock() }
            }
            return state.open
        }
    }

    private func setModes(_ modes: [TransactionMode]) throws(SQLError) {
        for (name, value) in modes.flatMap(\.settings) { try change(name, to: value, isLocal: true) }
    }

    private func requireBlock(_ command: String) throws(SQLError) {
        guard transaction == .none else { return }
        throw SQLError(.noActiveSQLTransaction, "\(command) can only be used in transaction blocks")
    }

    private func place(of name: Identifier) throws(SQLError) -> Int {
        guard let place = state.withLock({ $0.savepoints.lastIndex { $0.name == name.name } }) else {
            throw SQLError(.invalidSavepointSpecification, "savepoint \"\(name.name)\" does not exist", at: name.span.source)
        }
        return place
    }
}

extension Session.State {
    fileprivate mutating func endStatement() {
        timer?.cancel()
        timer = nil
    }

    fileprivate mutating func beginBlock() {
        transaction = .open
        blockSettings = Session.BlockSettings(ifCommitted: settings, ifRolledBack: settings)
        settings.beginTransaction()
    }

    /// Tells the client of those that it is told of.
    fileprivate mutating func replaceSettings(by others: SessionSettings) {
        messages += others.reported(differingFrom: settings).map { .setting(name: $0.name, value: $0.value) }
        settings = others
    }
}

extension TransactionMode {
    /// The run-time parameters that say the same; DEFERRABLE says nothing where no transaction waits for another.
    fileprivate var settings: [(name: String, value: String)] {
        switch self {
        case .isolation(let level): [("transaction_isolation", level.lowercased())]
        case .readOnly: [("transaction_read_only", "on")]
        case .readWrite: [("transaction_read_only", "off")]
        case .deferrable: []
        }
    }
}
