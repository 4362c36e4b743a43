import MillBase
import MillDataflow
import MillIO
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Asks a view again and again which events it shows, from a thread of its own, and notes when each answer came.
///
/// Numbers of events run in order in one partition, so an answer that counts other than all events up to its highest number would
/// be wrong; it ends the run.
final class ViewWatch: @unchecked Sendable {
    // Sendable because the session is used by the thread alone, and the rest is behind `state`.
    struct Answer {
        /// When it was asked for.
        var askedNanos: UInt64
        /// When it had arrived.
        var nanos: UInt64
        /// The events it shows: all from the first on.
        var visible: Int
    }

    private struct State {
        /// Those that show more than the one before.
        var answers: [Answer] = []
        var cpuNanos: UInt64 = 0
        var failure: BenchFailure?
        var isStopping = false
    }

    private static let question = "SELECT sum(bids), max(newest) FROM latest"
    private static let pauseMicros: UInt32 = 1000
    private static let patienceSeconds = 60.0

    private let session: PgReader
    private let clock: any Clock
    private let state = Mutex(State())
    private var thread: PinnedThread?

    init(_ session: PgReader, clock: any Clock) throws(ThreadFailure) {
        self.session = session
        self.clock = clock
        thread = try PinnedThread { [self] in run() }
    }

    private func run() {
        var visible = 0
        while !state.withLock({ $0.isStopping }) {
            do {
                let asked = clock.monotonicNanos
                let row = try session.query(Self.question)
                let now = clock.monotonicNanos
                let shown = Int(row[0])
                guard shown == 0 || row[1] == NumberedBids.firstNumber + Int64(shown) - 1 else {
                    throw BenchFailure("an answer counts \(shown) events and has seen number \(row[1] - NumberedBids.firstNumber)")
                }
                state.withLock { state in
                    state.cpuNanos = Self.threadCPUNanos
                    if shown > visible { state.answers.append(Answer(askedNanos: asked, nanos: now, visible: shown)) }
                }
                visible = shown
            } catch {
                state.withLock { $0.failure = error as? BenchFailure ?? BenchFailure("\(error)") }
                return
            }
            usleep(Self.pauseMicros)
        }
    }

    private static var threadCPUNanos: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    /// Processor time that asking has used.
    var cpuSeconds: Double { Double(state.withLock { $0.cpuNanos }) / 1e9 }

    var answers: [Answer] { state.withLock { $0.answers } }

    /// What has ended the asking.
    var failure: BenchFailure? { state.withLock { $0.failure } }

    /// The first answer that shows so many events.
    @discardableResult
    func wait(for visible: Int) throws -> Answer {
        let deadline = clock.monotonicNanos + UInt64(Self.patienceSeconds * 1e9)
        while true {
            let (last, failure) = state.withLock { ($0.answers.last, $0.failure) }
            if let failure { throw failure }
            if let last, last.visible >= visible { return answers.first { $0.visible >= visible } ?? last }
            guard clock.monotonicNanos < deadline else {
                throw BenchFailure("only \(last?.visible ?? 0) of \(visible) events became visible within \(Int(Self.patienceSeconds)) s")
            }
            usleep(1000)
        }
    }

    func stop() {
        state.withLock { $0.isStopping = true }
        thread?.join()
        thread = nil
    }
}
