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
/// that stands still for a second weighs a second, as it does for events.
final class Probe: Sendable {
    private let turnMicros: UInt32
    private let state = Mutex(State())
    private let thread = Mutex<PinnedThread?>(nil)

    private struct State {
        var micros: [UInt32] = []
        var failure: IOFailure?
        var isStopping = false
        /// How often it was restarted.
        var round = 0
    }

    /// - Parameter once: takes one turn, and says how long what it measures took, in microseconds.
    private init(turnMicros: UInt32, _ once: @escaping @Sendable () throws(IOFailure) -> UInt32) throws {
        self.turnMicros = turnMicros
        try thread.withLock { thread in thread = try PinnedThread { [self] in run(once) } }
    }

    /// What fdatasync takes on a file system beside whatever else uses it: 4 KiB appended and made durable, a hundred times a second.
    static func sync(_ path: String, _ environment: Environment) throws -> Probe {
        let file = try environment.files.open(path, .create)
        let content = [UInt8](repeating: 1, count: 4096)
        let size = Mutex(0)
        return try Probe(turnMicros: 10_000) { () throws(IOFailure) in
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
            let micros = UInt32(clamping: (environment.clock.monotonicNanos - start) / 1000)
            usleep(10_000)
            return micros
        }
    }

    /// How late a thread runs that does nothing but ask for 4 ms of sleep, in which it takes nothing from the run: what no program can be faster
    /// than here. It counts other threads of the run that had the processor then, and the times in which the host of a virtual machine gave it to
    /// somebody else.
    static func wake(_ environment: Environment) throws -> Probe {
        let turnMicros: UInt32 = 4000
        return try Probe(turnMicros: turnMicros) {
            let start = environment.clock.monotonicNanos
            usleep(turnMicros)
            return UInt32(clamping: max((environment.clock.monotonicNanos - start) / 1000, UInt64(turnMicros)) - UInt64(turnMicros))
        }
    }

    private func run(_ once: () throws(IOFailure) -> UInt32) {
        while true {
            let (round, isStopping) = state.withLock { ($0.round, $0.isStopping) }
            if isStopping { return }
            do throws(IOFailure) {
                let micros = try once()
                state.withLock { state in
                    // Of a turn that began before a restart nobody knows how much came after it.
                    guard state.round == round else { return }
                    for late in stride(from: 0, through: micros, by: Int(turnMicros)) { state.micros.append(micros - late) }
                }
            } catch {
                state.withLock { $0.failure = error }
                return
            }
        }
    }

    /// Forgets the turns so far, the one under way too.
    func restart() {
        state.withLock { state in
            state.micros.removeAll(keepingCapacity: true)
            state.round += 1
        }
    }

    /// Ends the thread; what each turn took since the last start.
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
