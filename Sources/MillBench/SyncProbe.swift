import MillDataflow
import MillIO
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// What fdatasync takes on a file system, measured beside whatever else uses it: 4 KiB appended and made durable, a hundred times a
/// second, by a thread of its own.
///
/// While one call takes longer than its turn, the ones that were due meanwhile count too, each from its due time: so a disk that stands
/// still for a second weighs a second, as it does for events.
final class SyncProbe: Sendable {
    private static let bytes = 4096
    private static let turnMicros: UInt32 = 10_000

    private let state = Mutex(State())
    private let thread = Mutex<PinnedThread?>(nil)

    private struct State {
        var micros: [UInt32] = []
        var failure: IOFailure?
        var isStopping = false
    }

    init(_ path: String, _ environment: Environment) throws {
        let file = try environment.files.open(path, .create)
        try thread.withLock { thread in thread = try PinnedThread { [self] in run(file, environment.clock) } }
    }

    private func run(_ file: any File, _ clock: any Clock) {
        let content = [UInt8](repeating: 1, count: Self.bytes)
        var size = 0
        while !state.withLock({ $0.isStopping }) {
            do throws(IOFailure) {
                let written: Result<Void, IOFailure> = content.withUnsafeBytes { bytes in
                    do throws(IOFailure) { return .success(try file.write(bytes, at: size)) } catch { return .failure(error) }
                }
                try written.get()
                size += Self.bytes
                let start = clock.monotonicNanos
                try file.sync()
                let micros = UInt32(clamping: (clock.monotonicNanos - start) / 1000)
                state.withLock { state in
                    for late in stride(from: 0, through: micros, by: Int(Self.turnMicros)) { state.micros.append(micros - late) }
                }
            } catch {
                state.withLock { $0.failure = error }
                return
            }
            usleep(Self.turnMicros)
        }
    }

    /// Ends the thread; what each fdatasync took.
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
