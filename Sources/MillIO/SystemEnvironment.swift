#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

extension Environment {
    /// The real machine.
    package static var system: Environment {
        Environment(files: LocalFileSystem(), clock: SystemClock(), random: SystemRandomSource())
    }

    /// The program that runs, without symbolic links; nil where the system does not say.
    package var executablePath: String? {
        guard let path = realpath("/proc/self/exe", nil) else { return nil }
        defer { free(path) }
        return String(cString: path)
    }

    /// A variable of the process.
    package func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
}

package struct SystemClock: Clock {
    package init() {}

    package var nowMicros: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }

    package var monotonicNanos: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    package func sleep(for duration: Duration) async throws { try await Task.sleep(for: duration) }
}

package struct SystemRandomSource: RandomSource {
    package init() {}
    package func next() -> UInt64 { UInt64.random(in: .min ... .max) }
}
