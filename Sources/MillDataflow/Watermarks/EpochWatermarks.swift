package import MillBase
import MillPlan

/// A job that reads a source or, of its own rows, a table. Each has a watermark of its own: a job that catches up is behind the others.
package struct WatermarkKey: Hashable, Sendable {
    package var job: ObjectID
    package var source: ObjectID

    package init(job: ObjectID, source: ObjectID) {
        self.job = job
        self.source = source
    }
}

/// A watermark in one epoch, in microseconds since 1970; nil: nothing is promised.
package struct WatermarkStep: Hashable, Sendable {
    /// What the epoch before closed by: a row of a time before this is late.
    package var passed: Int64?
    /// What this epoch closes by at its end; never below `passed`.
    package var now: Int64?

    package init(passed: Int64? = nil, now: Int64? = nil) {
        self.passed = passed
        self.now = now
    }
}

/// What all workers know of event time in one epoch: the same, so that all close the same and call the same rows late.
package struct EpochWatermarks: Sendable {
    /// Wall time at the opening of the epoch, microseconds since 1970.
    package var openedAtMicros: Int64
    package var steps: [WatermarkKey: WatermarkStep]
    /// Jobs that do not have all rows of what they read yet: what is promised of later rows does not hold of those to be taken over.
    package var behind: Set<ObjectID>

    package init(openedAtMicros: Int64 = 0, steps: [WatermarkKey: WatermarkStep] = [:], behind: Set<ObjectID> = []) {
        self.openedAtMicros = openedAtMicros
        self.steps = steps
        self.behind = behind
    }
}
