/// How much one worker may read in one epoch.
package struct EpochBudget: Sendable {
    package private(set) var records: Int
    package private(set) var bytes: Int

    package init(records: Int, bytes: Int) {
        self.records = records
        self.bytes = bytes
    }

    package var hasRoom: Bool { records > 0 && bytes > 0 }

    package mutating func spend(records: Int, bytes: Int) {
        self.records -= records
        self.bytes -= bytes
    }

    /// Takes off what was used of a share. What was used beyond it, such as one large record, is not at the cost of who reads next.
    package mutating func spend(_ share: EpochBudget, left: EpochBudget) {
        records = max(records - (share.records - max(left.records, 0)), 0)
        bytes = max(bytes - (share.bytes - max(left.bytes, 0)), 0)
    }

    /// One of `count` equal parts, and never nothing.
    package func part(of count: Int) -> EpochBudget { EpochBudget(records: max(records / count, 1), bytes: max(bytes / count, 1)) }
}
