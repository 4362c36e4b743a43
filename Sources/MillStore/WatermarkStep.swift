package import MillBase

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
