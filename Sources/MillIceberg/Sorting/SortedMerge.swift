import MillColumnar

/// The rows of several sorted files as one sorted sequence: what compaction writes a sorted file from without having it in memory.
///
/// Of each file one batch is in memory, with its rows' keys, and files lie in a heap by the key of their next row; rows that are equal come
/// in the order of the files. A file that says it is sorted and is not is found by its keys: the rows end there, and `misplaced` has its
/// place.
///
/// Threading: one thread at a time.
final class SortedMerge {
    private final class Input {
        let reader: DataFileReader
        var batch = DeltaBatch(columns: [], count: 0)
        var keys = EncodedKeys(capacity: 0)
        var row = 0
        /// The batch's place among those that rows wait of.
        var place: UInt32 = 0

        init(_ reader: DataFileReader) { self.reader = reader }
    }

    private let inputs: [Input]
    private let order: RowOrder
    /// For each input the key of its next row, in its `keys`.
    private var heads: [UnsafeRawBufferPointer]
    /// Inputs that have rows, the lowest first: a heap.
    private var heap: [Int] = []
    private var hasBegun = false
    private var batches: [DeltaBatch] = []
    /// The place of the first file found that is not in order.
    private(set) var misplaced: Int?

    init(_ readers: [DataFileReader], _ order: RowOrder) {
        inputs = readers.map { Input($0) }
        self.order = order
        heads = Array(repeating: UnsafeRawBufferPointer(start: nil, count: 0), count: readers.count)
    }

    /// The next rows; nil after the last one, or when a file was found not to be in order.
    func next() throws(IcebergError) -> (columns: [Column], count: Int)? {
        if !hasBegun {
            hasBegun = true
            for input in inputs.indices where try load(input) { push(input) }
        }
        var rows: [RowReference] = []
        rows.reserveCapacity(BatchGathering.rowsMax)
        while let first = heap.first, rows.count < BatchGathering.rowsMax {
            let input = inputs[first]
            rows.append(RowReference(batch: input.place, row: UInt32(input.row)))
            guard try advance(first) else { return nil }
        }
        guard !rows.isEmpty else { return nil }
        let columns = BatchGathering(batches).gather(rows)
        renumber()
        return (columns, rows.count)
    }

    /// Batches that no row waits of any more are forgotten.
    private func renumber() {
        batches = []
        for index in heap {
            inputs[index].place = UInt32(batches.count)
            batches.append(inputs[index].batch)
        }
    }

    /// Moves the lowest input on to its next row.
    /// - Returns: false when that row is below the one before.
    private func advance(_ index: Int) throws(IcebergError) -> Bool {
        let input = inputs[index]
        input.row += 1
        if input.row < input.batch.count {
            let next = input.keys[input.row]
            guard KeyHead.compare(heads[index], next) <= 0 else { return found(index) }
            heads[index] = next
            sink(0)
            return true
        }
        let last = Array(heads[index])
        guard try load(index) else {
            heap.swapAt(0, heap.count - 1)
            heap.removeLast()
            sink(0)
            return true
        }
        guard last.withUnsafeBytes({ KeyHead.compare($0, heads[index]) }) <= 0 else { return found(index) }
        sink(0)
        return true
    }

    private func found(_ index: Int) -> Bool {
        misplaced = index
        heap = []
        return false
    }

    /// Reads a file's next batch that has rows.
    /// - Returns: false after the last one.
    private func load(_ index: Int) throws(IcebergError) -> Bool {
        let input = inputs[index]
        while let read = try input.reader.next() {
            guard read.count > 0 else { continue }
            input.batch = DeltaBatch(columns: read.columns, count: read.count)
            var keys = EncodedKeys(capacity: read.count)
            try order.appendKeys(read.columns, count: read.count, to: &keys)
            heads[index] = keys[0]
            input.keys = keys
            input.row = 0
            input.place = UInt32(batches.count)
            batches.append(input.batch)
            return true
        }
        return false
    }

    // MARK: The heap

    private func isBelow(_ a: Int, _ b: Int) -> Bool {
        let order = KeyHead.compare(heads[a], heads[b])
        return order != 0 ? order < 0 : a < b
    }

    private func push(_ input: Int) {
        heap.append(input)
        var child = heap.count - 1
        while child > 0, isBelow(heap[child], heap[(child - 1) / 2]) {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    private func sink(_ start: Int) {
        var parent = start
        while true {
            var lowest = parent
            let left = 2 * parent + 1
            if left < heap.count, isBelow(heap[left], heap[lowest]) { lowest = left }
            if left + 1 < heap.count, isBelow(heap[left + 1], heap[lowest]) { lowest = left + 1 }
            guard lowest != parent else { return }
            heap.swapAt(lowest, parent)
            parent = lowest
        }
    }
}
