import MillBase
package import MillColumnar

/// The root of a job whose result nobody keeps: counts it and adds it up, so that two runs, or two engines, can be compared.
///
/// `checksum` is the sum of weight * hash over all rows, modulo 2^64: independent of order, and a retraction takes its row out.
package final class BlackholeOperator: Operator {
    package private(set) var rowCount: Int64 = 0
    package private(set) var checksum: UInt64 = 0
    private let hashes = UnsafeMutablePointer<UInt64>.allocate(capacity: Limits.batchRowsMax)

    package init() {}

    deinit { hashes.deallocate() }

    package func push(_ batch: DeltaBatch, input: Int, errors: OperatorErrors) {
        RowHash.hash(batch.columns, count: batch.count, into: hashes)
        for row in 0..<batch.count {
            let weight = batch.weights?.values[row] ?? 1
            rowCount &+= weight
            checksum &+= hashes[row] &* UInt64(bitPattern: weight)
        }
    }

    package func next(errors: OperatorErrors) -> DeltaBatch? { nil }
}
