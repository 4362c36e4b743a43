import Synchronization

/// Asks a reporter for one report at a time: who comes while it thinks gets the same. So a program that does not answer is not asked ever more.
///
/// Threading: any thread.
final class HealthDesk: Sendable {
    private let reporter: any HealthReporter
    private let asking = Mutex<Task<HealthReport, Never>?>(nil)

    init(_ reporter: any HealthReporter) { self.reporter = reporter }

    func healthReport() async -> HealthReport {
        let task = asking.withLock { asking in
            if let asking { return asking }
            let task = Task { [self] in
                let report = await reporter.healthReport()
                self.asking.withLock { $0 = nil }
                return report
            }
            asking = task
            return task
        }
        return await task.value
    }
}
