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
}
