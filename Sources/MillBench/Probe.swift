import MillDataflow
import MillIO
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Measures one thing on the machine again and again while a bench runs, by a thread of its own.
///
/// While one turn takes longer than it should, the ones that were due meanwhile count too, each from its due time: so a disk, or a machine,
/// that stands still for a second weighs a second, as it does for events. A turn that is under way when the probe is stopped counts for nothing:
/// what is compared with it can only be judged harder.
final class Probe: Sendable {
    private let turnMicros: UInt32
    private let state: Mutex<State>
    private let clock: any Clock
    private let thread = Mutex<PinnedThread?>(nil)

    private struct State {
        var micros: [UInt32] = []
        var failure: IOFailure?
        var isStopping = false
        /// Since when turns count.
        var startNanos: UInt64
    }

    /// - Parameter once: takes one turn, and says how long what it measures took, in microseconds.
    private init(turnMicros: UInt32, _ clock: any Clock, _ once: @escaping @Sendable () throws(IOFailure) -> UInt32) throws {
        self.turnMicros = turnMicros
        self.clock = clock
        state = Mutex(State(startNanos: clock.monotonicNanos))
        try thread.withLock { thread in thread = try PinnedThread { [self] in run(once) } }
    }

    /// What fdatasync takes on a file system beside whatever else uses it: 4 KiB appended and made durable, a hundred times a second.
    static func sync(_ path: String, _ environment: Environment) throws -> Probe {
        let file = try environment.files.open(path, .create)
        let content = [UInt8](repeating: 1, count: 4096)
        let size = Mutex(0)
        return try Probe(turnMicros: 10_000, environment.clock) { () throws(IOFailure) in
            // Before what is measured: a turn ends with that.
            usleep(10_000)
            let offset = size.withLock { size in
                defer { size += content.count }
                return size
            }
            let written: Result<Void, IOFailure> = content.withUnsafeBytes { bytes in
                do throws(IOFailure) { return .success(try file.write(bytes, at: offset)) } catch { return .failure(error) }
            }
            try written.get()
            let start = environment.clock.monotonicNanos
            try file.sync()
            return UInt32(clamping: (environment.clock.monotonicNanos - start) / 1000)
        }
    }

    /// How late a thread runs that does nothing but ask for 4 ms of sleep, in which it takes nothing from the run: what no program can be faster
    /// than here. It counts other threads of the run that had the processor then, and the times in which the host of a virtual machine gave it to
    /// somebody else.
    static func wake(_ environment: Environment) throws -> Probe {
        let turnMicros: UInt32 = 4000
        return try Probe(turnMicros: turnMicros, environment.clock) {
            let start = environment.clock.monotonicNanos
            usleep(turnMicros)
            return UInt32(clamping: max((environment.clock.monotonicNanos - start) / 1000, UInt64(turnMicros)) - UInt64(turnMicros))
        }
    }

    private func run(_ once: () throws(IOFailure) -> UInt32) {
        while !state.withLock({ $0.isStopping }) {
            do throws(IOFailure) {
                let measured = try once()
                let now = clock.monotonicNanos
                state.withLock { state in
                    guard !state.isStopping else { return }
                    // Of a turn that began before a restart what came after it.
                    let micros = min(measured, UInt32(clamping: (now - min(state.startNanos, now)) / 1000))
                    for late in stride(from: 0, through: micros, by: Int(turnMicros)) { state.micros.append(micros - late) }
                }
            } catch {
                state.withLock { $0.failure = error }
                return
            }
        }
    }

    /// Forgets the turns so far, and of the one under way what has passed of it.
    func restart() {
        state.withLock { state in
            state.micros.removeAll(keepingCapacity: true)
            state.startNanos = clock.monotonicNanos
        }
    }

    /// Ends the thread; what each turn that has ended took since the last start.
    func stop() throws(IOFailure) -> Percentiles {
        state.withLock { $0.isStopping = true }
        let ended = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        ended?.join()
        let (micros, failure) = state.withLock { ($0.micros, $0.failure) }
        if let failure { throw failure }
        return Percentiles(micros: micros)
    }
}
