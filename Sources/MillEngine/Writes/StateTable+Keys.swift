import MillBase
import MillColumnar
import MillDataflow
import MillState

extension StateTable {
    /// The rows of a table whose key is among those of a batch, with their weights; the table is hashed by that key and keeps weights as `MaterializeOperator`
    /// does. One probe a key.
    func rows(underKeys keys: DeltaBatch, in columns: [Int]) -> [DeltaBatch] {
        var hashes = [UInt64](repeating: 0, count: keys.count)
        hashes.withUnsafeMutableBufferPointer { buffer in
            if let base = buffer.baseAddress { RowHash.hash(keys.columns, count: keys.count, into: base) }
        }
        var found: [RowNumber] = []
        for row in 0..<keys.count {
            forEach(hash: hashes[row]) { number in
                if zip(columns, keys.columns).allSatisfy({ equals(number, $0, $1, row) }) { found.append(number) }
                return true
            }
        }
        let weights = found.map { payload($0).load(fromByteOffset: MaterializeOperator.weightOffset, as: Int64.self) }
        var builder = BatchBuilder(layout.columns)
        var start = 0
        while start < found.count {
            let part = Array(found[start..<min(start + Limits.batchRowsMax, found.count)])
            let partWeights = Array(weights[start..<start + part.count])
            builder.append(DeltaBatch(columns: gather(rows: part, count: part.count), count: part.count, weights: Weights(partWeights)))
            start += part.count
        }
        return builder.take()
    }
}
