/// What a bench tells of many durations, in milliseconds; all 0 when there were none.
package struct Percentiles: Sendable {
    package let median: Double
    package let p99: Double
    package let p999: Double
    package let worst: Double

    init(micros: [UInt32]) {
        let sorted = micros.sorted()
        /// The smallest that so large a share does not exceed.
        func millis(_ share: Double) -> Double {
            sorted.isEmpty ? 0 : Double(sorted[min(Int((share * Double(sorted.count)).rounded(.up)), sorted.count) - 1]) / 1000
        }
        (median, p99, p999, worst) = (millis(0.5), millis(0.99), millis(0.999), millis(1))
    }

    var json: String { "{\"median\": \(median), \"p99\": \(p99), \"p99.9\": \(p999), \"worst\": \(worst)}" }
}
