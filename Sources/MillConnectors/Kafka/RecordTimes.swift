import MillConnectorKit

/// The times of a chunk's records, as every reader of Kafka's records gives them.
///
/// Kafka counts milliseconds since 1970 and writes -1 for none. No other negative time is one, nor is one beyond what microseconds
/// can count.
struct RecordTimes {
    private var micros: [Int64] = []
    private var isAnyKnown = false

    /// nil when no record has a time.
    var values: [Int64]? { isAnyKnown ? micros : nil }

    mutating func reserveCapacity(_ count: Int) { micros.reserveCapacity(count) }

    mutating func append(millis: Int64) {
        let (product, overflow) = millis.multipliedReportingOverflow(by: 1000)
        let isKnown = millis >= 0 && !overflow
        if isKnown { isAnyKnown = true }
        micros.append(isKnown ? product : RawChunk.unknownTime)
    }
}
