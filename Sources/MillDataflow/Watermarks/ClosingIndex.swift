import MillState

/// Rows of a state table by a time of theirs, so that closing costs what is closed and not what is there.
///
/// Buckets of 65 milliseconds in order of time; rows mostly come into the last few. A bucket is taken whole when the watermark is
/// behind it; the one that the watermark lies in is looked through only if some row of it is before the watermark, so the many rows
/// of one open window are not looked at. In memory alone: made anew from the table at a start. A row that was removed meanwhile
/// stays until its time is closed, so whoever takes rows checks them.
struct ClosingIndex {
    private struct Entry {
        var time: Int64
        var row: RowNumber
    }

    private struct Bucket {
        var number: Int64
        var least: Int64
        var entries: [Entry]
    }

    /// Ascending.
    private var buckets: [Bucket] = []
    private(set) var count = 0

    private static let bucketShift: Int64 = 16

    var byteCount: Int { buckets.reduce(0) { $0 + $1.entries.capacity * MemoryLayout<Entry>.stride + MemoryLayout<Bucket>.stride } }

    mutating func add(_ row: RowNumber, at time: Int64) {
        let number = time >> Self.bucketShift
        count += 1
        var place = buckets.count - 1
        if place < 0 || buckets[place].number != number { place = self.place(of: number) }
        guard place < buckets.count, buckets[place].number == number else {
            return buckets.insert(Bucket(number: number, least: time, entries: [Entry(time: time, row: row)]), at: place)
        }
        buckets[place].least = min(buckets[place].least, time)
        buckets[place].entries.append(Entry(time: time, row: row))
    }

    /// Of the first bucket at or after a number.
    private func place(of number: Int64) -> Int {
        var (low, high) = (0, buckets.count)
        while low < high {
            let middle = (low + high) / 2
            if buckets[middle].number < number { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Takes out the rows of times before a watermark, ascending by number, each once.
    mutating func take(before watermark: Int64) -> [RowNumber] {
        guard let first = buckets.first, first.least < watermark else { return [] }
        let whole = place(of: watermark >> Self.bucketShift)
        var taken: [RowNumber] = []
        for bucket in buckets[..<whole] { for entry in bucket.entries { taken.append(entry.row) } }
        buckets.removeFirst(whole)
        if let last = buckets.first, last.least < watermark {
            for entry in last.entries where entry.time < watermark { taken.append(entry.row) }
            let left = last.entries.filter { $0.time >= watermark }
            if left.isEmpty {
                buckets.removeFirst()
            } else {
                buckets[0] = Bucket(number: last.number, least: left.reduce(.max) { min($0, $1.time) }, entries: left)
            }
        }
        count -= taken.count
        taken.sort()
        var unique = 0
        for index in taken.indices where index == 0 || taken[index] != taken[unique - 1] {
            taken[unique] = taken[index]
            unique += 1
        }
        taken.removeLast(taken.count - unique)
        return taken
    }

    mutating func removeAll() {
        buckets.removeAll()
        count = 0
    }
}
