package import MillBase
import MillSQL
import Synchronization

/// SET, RESET and DISCARD.
extension Session {
    func setParameter(_ statement: Statement) throws(SQLError) -> Outcome {
        switch statement {
        case .set(let statement):
            let value: String? =
                switch statement.value {
                case .standard: nil
                case .list(let items): items.map(Self.text).joined(separator: ", ")
                }
            try change(statement.name.name, to: value, isLocal: statement.scope == .local, at: statement.name.span.source)
            return .done(tag: "SET")
        case .reset(let name):
            if let name { try change(name.name, to: nil, at: name.span.source) } else { resetAll() }
            return .done(tag: "RESET")
        case .discard(let what):
            if what == .all {
                guard transaction == .none else {
                    throw SQLError(.activeSQLTransaction, "DISCARD ALL cannot run inside a transaction block")
                }
                resetAll()
                state.withLock { $0.prepared = [:] }
            }
            return .done(tag: "DISCARD \(what.rawValue)")
        default: preconditionFailure("only settings come here")
        }
    }

    /// Sets a parameter, for good or with `isLocal` until the block ends.
    func change(_ name: String, to value: String?, isLocal: Bool = false, at span: SourceSpan? = nil) throws(SQLError) {
        if isLocal, transaction == .none {
            notice(SQLError(.noActiveSQLTransaction, "SET LOCAL can only be used in transaction blocks"))
            return
        }
        let result: Result<SQLError?, SQLError> = state.withLock { state in
            do throws(SQLError) {
                if let reported = try state.settings.set(name, to: value, at: span) {
                    state.messages.append(.setting(name: reported.name, value: reported.value))
                }
                if !isLocal { _ = try state.blockSettings?.ifCommitted.set(name, to: value, at: span) }
                return .success(state.settings.warning(about: name))
            } catch {
                return .failure(error)
            }
        }
        if let warning = try result.get() { notice(warning) }
    }

    /// Sets a parameter that a connection begins with: RESET goes back to it.
    package func start(with name: String, _ value: String) throws(SQLError) {
        try change(name, to: value)
        state.withLock { $0.settings.makeInitial() }
    }

    /// A setting that is a time; nil for no limit.
    package func duration(_ name: String) -> Duration? { state.withLock { $0.settings.duration(name) } }

    private func resetAll() {
        state.withLock { state in
            let before = state.settings
            state.settings.resetAll()
            state.blockSettings?.ifCommitted.resetAll()
            state.messages += state.settings.reported(differingFrom: before).map { .setting(name: $0.name, value: $0.value) }
        }
    }

    static func text(_ value: WithOption.Value) -> String {
        switch value {
        case .string(let text), .number(let text), .word(let text): text
        case .boolean(let flag): flag ? "true" : "false"
        case .secret(let name, _): name.description
        }
    }
}
