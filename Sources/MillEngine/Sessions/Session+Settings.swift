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
            try change(statement.name, to: value)
            return .done(tag: "SET")
        case .reset(let name):
            if let name { try change(name, to: nil) } else { state.withLock { $0.settings.resetAll() } }
            return .done(tag: "RESET")
        case .discard(let what):
            if what == .all {
                state.withLock { state in
                    state.settings.resetAll()
                    state.prepared = [:]
                }
            }
            return .done(tag: "DISCARD \(what.rawValue)")
        default: preconditionFailure("only settings come here")
        }
    }

    private func change(_ name: SettingName, to value: String?) throws(SQLError) {
        try change(name.name, to: value, at: name.span.source)
    }

    /// Sets a parameter, also one from a connection's start.
    package func change(_ name: String, to value: String?, at span: SourceSpan? = nil) throws(SQLError) {
        let result: Result<(name: String, value: String)?, SQLError> = state.withLock { state in
            do throws(SQLError) { return .success(try state.settings.set(name, to: value, at: span)) } catch { return .failure(error) }
        }
        if let reported = try result.get() {
            state.withLock { $0.messages.append(.setting(name: reported.name, value: reported.value)) }
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
