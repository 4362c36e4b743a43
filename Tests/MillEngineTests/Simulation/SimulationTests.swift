import MillTestKit
import Testing

/// `MILLRACE_SEED` and `MILLRACE_RUNS` choose the seeds; a seed that fails is printed with what was done.
@Suite(.timeLimit(.minutes(60)), .serialized) struct SimulationTests {
    @Test func everyLifeGoesOnFromTheOneBefore() async throws {
        for seed in LawSettings(runs: 60).seeds {
            if let problem = try await Simulation(seed: seed).problem() {
                Issue.record("MILLRACE_SEED=\(seed): \(problem)")
                return
            }
        }
    }

    /// The simulation is no better than what it finds.
    @Test(arguments: PlantedBug.allCases) func findsAPlantedBug(bug: PlantedBug) async throws {
        let seeds = LawSettings(runs: 60).seeds
        var found: [UInt64] = []
        for seed in seeds where found.isEmpty || seeds.count > 60 {
            if try await Simulation(seed: seed, planted: bug).problem() != nil { found.append(seed) }
        }
        if seeds.count > 60 { print("\(bug.rawValue): found by \(found.count) of \(seeds.count) seeds, \(found.prefix(20))") }
        #expect(!found.isEmpty, "\(bug.rawValue) is found by no seed")
    }
}
