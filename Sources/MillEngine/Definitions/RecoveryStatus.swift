package import MillBase
package import MillStore

/// How far a start is: what health, SHOW JOBS and the log say of it.
package struct RecoveryStatus: Sendable, Hashable {
    package enum Phase: String, Sendable, Hashable, CaseIterable {
        /// The blocks of the checkpoint are being looked for.
        case finding = "looking for state"
        case reading = "reading state"
        /// The log of DML, behind the checkpoint.
        case replaying = "replaying transactions"
        /// Statements run. Some views read their sources again up to where they were published, and are waited for.
        case following = "following sources"
        case done
        /// Nothing that needs state will be answered: the process is about to end.
        case failed
    }

    package var phase: Phase
    /// The state that is stored, and what of it has been read.
    package var state: RecoveryProgress
    /// Views that cannot be read yet.
    package var waitingViews: Int
    /// Views and tables whose state another number of workers made.
    package var movedJobs: Int
    package var failure: SQLError?

    /// Everything that was there before can be read.
    package var isDone: Bool { phase == .done }

    /// One line: `reading state: 35 % of 480 MiB, 3,500,000 of 10,000,000 rows`.
    package var text: String { Self.text(phase, state.total) }

    static func text(_ phase: Phase, _ part: RecoveryProgress.Part) -> String {
        guard phase == .reading, part.bytes > 0 else { return phase.rawValue }
        return "\(phase.rawValue): \(part.bytesRead * 100 / part.bytes) % of \(part.bytes >> 20) MiB, \(part.rowsRead) of \(part.rows) rows"
    }
}

extension Engine {
    /// How far the start is; to be asked at any time.
    package var recoveryStatus: RecoveryStatus {
        let gate = restoration.gate
        let waiting = restoration.recovering.count
        let recovered = keeper?.recovered
        let moved = recovered?.jobs.count(where: { plans[$0] != nil && recovered?.workers(of: $0) != options.workerCount }) ?? 0
        let phase = gate.phase ?? (gate.failure != nil ? .failed : waiting > 0 ? .following : .done)
        return RecoveryStatus(
            phase: phase, state: recovered?.progress ?? RecoveryProgress(), waitingViews: waiting, movedJobs: moved, failure: gate.failure)
    }

    /// Waits until the state of an earlier process is there.
    /// - Throws: 57014 when it is cancelled before, and why it cannot be there.
    func untilRestored(_ cancellation: CancellationHook) async throws(SQLError) { try await restoration.gate.pass(unless: cancellation) }
}
