package import MillColumnar

/// A multiset of rows, hashed by a key of theirs: row -> weight, which is the Int64 at the start of the payload.
extension StateTable {
    /// Adds the weights of a batch's rows. A row whose weight became 0 stays until it is removed; a new row of the same key takes its
    /// place. So an update, which takes a row back and brings another one of its key, writes where the old one was: no row is
    /// made or freed, and there is one slot a key.
    ///
    /// - Parameters:
    ///   - key: the columns that `hashes` are of.
    ///   - emptied: receives the rows whose weight became 0; some may be there several times, or have a weight again.
    package func add(
        _ columns: [Column], key: [Int], hashes: UnsafePointer<UInt64>, count: Int, weights: UnsafePointer<Int64>?, emptied: inout [RowNumber]
    ) {
        guard let weights else { return addPart(columns, key, hashes, count, nil, &emptied) }
        // What is taken back first: it makes the places.
        for isBack in [true, false] {
            var part = Selection(capacity: count)
            for row in 0..<count where (weights[row] < 0) == isBack {
                part.append(row)
            }
            if part.count == count { return addPart(columns, key, hashes, count, weights, &emptied) }
            guard part.count > 0 else { continue }
            let rows = part.rows
            withUnsafeTemporaryAllocation(of: UInt64.self, capacity: part.count) { partHashes in
                withUnsafeTemporaryAllocation(of: Int64.self, capacity: part.count) { partWeights in
                    for index in 0..<partHashes.count {
                        partHashes[index] = hashes[Int(rows[index])]
                        partWeights[index] = weights[Int(rows[index])]
                    }
                    addPart(
                        columns.map { $0.gather(rows, count: partHashes.count) }, key, partHashes.baseAddress.unsafelyUnwrapped, partHashes.count,
                        UnsafePointer(partWeights.baseAddress), &emptied)
                }
            }
        }
    }

    private func addPart(
        _ columns: [Column], _ key: [Int], _ hashes: UnsafePointer<UInt64>, _ count: Int, _ weights: UnsafePointer<Int64>?, _ emptied: inout [RowNumber]
    ) {
        withUnsafeTemporaryAllocation(of: RowNumber.self, capacity: count) { found in
            guard let rows = found.baseAddress else { return }
            var inserted = Selection(capacity: count)
            // Rows whose candidate is another one.
            var differing = findOrInsertSimilar(columns, hashes: hashes, count: count, rows: rows, inserted: &inserted)
            var next = 0
            for index in 0..<count {
                if next < differing.count, differing.rows[next] == UInt32(truncatingIfNeeded: index) {
                    next &+= 1
                } else {
                    addWeight(weights?[index] ?? 1, to: rows[index], &emptied)
                }
            }
            takePlaces(columns, key, hashes, rows, weights, &differing)
            for position in 0..<differing.count {
                let index = Int(differing.rows[position])
                resolveCollision(columns, hashes: hashes, batchRow: index, rows: rows, inserted: &inserted)
                addWeight(weights?[index] ?? 1, to: rows[index], &emptied)
            }
        }
    }

    @inline(__always) private func addWeight(_ weight: Int64, to row: RowNumber, _ emptied: inout [RowNumber]) {
        let place = writablePayload(row).assumingMemoryBound(to: Int64.self)
        place.pointee &+= weight
        if place.pointee == 0 { emptied.append(row) }
    }

    /// Writes rows over their candidates where these have the same key and weight 0, and leaves the others in `differing`.
    private func takePlaces(
        _ columns: [Column], _ key: [Int], _ hashes: UnsafePointer<UInt64>, _ rows: UnsafePointer<RowNumber>, _ weights: UnsafePointer<Int64>?,
        _ differing: inout Selection
    ) {
        var taking = Selection(capacity: differing.count)
        var left = 0
        for position in 0..<differing.count {
            let index = Int(differing.rows[position])
            let row = rows[index]
            let weight = weights?[index] ?? 1
            if weight > 0, payload(row).load(as: Int64.self) == 0, isOnly(row, hash: hashes[index]),
                key.allSatisfy({ equals(row, $0, columns[$0], index) })
            {
                // The next one of this key sees that the place is taken.
                clear(row)
                preparedPayload(row).storeBytes(of: weight, as: Int64.self)
                taking.append(index)
            } else {
                differing.rows[left] = UInt32(truncatingIfNeeded: index)
                left &+= 1
            }
        }
        differing.count = left
        guard taking.count > 0 else { return }
        for (index, column) in columns.enumerated() { write(column, to: index, batchRows: taking, rows: rows) }
    }
}
