#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// How often and from which seed the random laws run: `MILLRACE_RUNS` and `MILLRACE_SEED` of the environment override the
/// defaults. With a seed given, only the run of that seed is made unless the number of runs is given too.
package struct LawSettings: Sendable {
    package var runs: Int
    package var seed: UInt64

    package init(runs: Int = 1000, seed: UInt64 = 1) {
        let givenSeed = Self.variable("MILLRACE_SEED").flatMap { UInt64($0) }
        let givenRuns = Self.variable("MILLRACE_RUNS").flatMap { Int($0) }
        self.runs = givenRuns ?? (givenSeed == nil ? runs : 1)
        self.seed = givenSeed ?? seed
    }

    private static func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    /// The seeds of the runs, in order.
    package var seeds: [UInt64] { (0..<UInt64(max(runs, 0))).map { seed &+ $0 } }
}
