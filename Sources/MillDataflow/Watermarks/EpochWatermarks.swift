package import MillBase
package import MillStore

/// What all workers know of event time in one epoch: the same, so that all close the same and call the same rows late.
package struct EpochWatermarks: Sendable {
    package var epoch: Epoch
    /// Wall time at the opening of the epoch, microseconds since 1970.
    package var openedAtMicros: Int64
    package var steps: [WatermarkKey: WatermarkStep]
    /// Jobs that do not have all rows of what they read yet: what is promised of later rows does not hold of those to be taken over.
    package var behind: Set<ObjectID>
    /// Up to where some sources are read in an epoch that is run again (`EpochRerun`).
    package var ends: SourceOffsets

    package init(
        epoch: Epoch = .zero, openedAtMicros: Int64 = 0, steps: [WatermarkKey: WatermarkStep] = [:], behind: Set<ObjectID> = [], ends: SourceOffsets = [:]
    ) {
        self.epoch = epoch
        self.openedAtMicros = openedAtMicros
        self.steps = steps
        self.behind = behind
        self.ends = ends
    }
}
