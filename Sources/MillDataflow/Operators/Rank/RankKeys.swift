import MillColumnar
import MillPlan

/// Makes the keys that order rows: the partition, the order key, every other column, then what tells representations of one value
/// apart, so that no two rows share a key.
struct RankKeys {
    private let partition: [Int]
    private let partitionEncoder: KeyEncoder
    private let order: [Int]
    private let orderEncoder: KeyEncoder
    private let rest: [Int]
    private let restEncoder: KeyEncoder
    /// Columns whose equal values may differ, those of the order first.
    private let varying: [Int]
    private let types: [SQLType]

    init(columns: [SQLType], window: Window) {
        partition = window.partition
        partitionEncoder = KeyEncoder(order: partition.map { KeyOrder(columns[$0]) })
        order = window.order.map(\.column)
        orderEncoder = KeyEncoder(
            order: window.order.map { KeyOrder(columns[$0.column], descending: $0.descending, nullsFirst: $0.nullsFirst) })
        rest = columns.indices.filter { !window.columnsUsed.contains($0) }
        restEncoder = KeyEncoder(order: rest.map { KeyOrder(columns[$0]) })
        types = columns
        let ordered = Set(order)
        varying = (order + columns.indices.filter { !ordered.contains($0) }).filter {
            columns[$0].isNumeric || columns[$0].isFloat || columns[$0] == .interval
        }
    }

    /// The keys of one batch's rows.
    struct Lanes {
        fileprivate let partition: KeyLanes
        fileprivate let order: KeyLanes
        fileprivate let rest: KeyLanes
        fileprivate let varying: [Column]

        /// Writes a row's key; gives where its partition and its order key end.
        @inline(__always) func encode(_ row: Int, into key: inout KeyBuffer) -> (partition: Int, order: Int) {
            let partitionEnd = encodeOrder(row, into: &key)
            let orderEnd = key.count
            rest.encode(row, into: &key)
            for column in varying { column.appendRepresentation(row: row, to: &key) }
            return (partitionEnd, orderEnd)
        }

        /// Writes the partition and the order key only; gives where the partition ends.
        @inline(__always) func encodeOrder(_ row: Int, into key: inout KeyBuffer) -> Int {
            key.removeAll()
            partition.encode(row, into: &key)
            let partitionEnd = key.count
            order.encode(row, into: &key)
            return partitionEnd
        }

        /// The first bytes of a row's order key: rows whose heads differ are in the heads' order.
        @inline(__always) func head(_ row: Int, using key: inout KeyBuffer) -> (UInt64, UInt64) {
            key.removeAll()
            order.encode(row, into: &key)
            return key.head(from: 0)
        }
    }

    func lanes(_ columns: [Column]) -> Lanes {
        Lanes(
            partition: partitionEncoder.lanes(partition.map { columns[$0] }), order: orderEncoder.lanes(order.map { columns[$0] }),
            rest: restEncoder.lanes(rest.map { columns[$0] }), varying: varying.map { columns[$0] })
    }

    /// Compares two rows of one partition as their keys do: negative, zero or positive. Most keys differ early, so column after column is
    /// encoded and compared.
    ///
    /// - Parameters: where a row's value of a column lies, nil for a missing one.
    func compare(_ left: (Int) -> UnsafeRawPointer?, _ right: (Int) -> UnsafeRawPointer?, using keys: inout KeyPair) -> Int {
        let byOrder = compareOrder(left, right, using: &keys)
        if byOrder != 0 { return byOrder }
        for (column, order) in zip(rest, restEncoder.order) {
            let result = keys.compare(left(column), right(column), order)
            if result != 0 { return result }
        }
        for column in varying {
            guard let left = left(column), let right = right(column) else { continue }
            let result = keys.compareRepresentation(left, right, types[column].physical)
            if result != 0 { return result }
        }
        return 0
    }

    /// The same for the order key alone: zero for peers.
    func compareOrder(_ left: (Int) -> UnsafeRawPointer?, _ right: (Int) -> UnsafeRawPointer?, using keys: inout KeyPair) -> Int {
        for (column, order) in zip(order, orderEncoder.order) {
            let result = keys.compare(left(column), right(column), order)
            if result != 0 { return result }
        }
        return 0
    }
}

/// The keys of two values that are compared.
struct KeyPair: ~Copyable {
    private var left = KeyBuffer()
    private var right = KeyBuffer()

    mutating func compare(_ left: UnsafeRawPointer?, _ right: UnsafeRawPointer?, _ order: KeyOrder) -> Int {
        self.left.removeAll()
        self.right.removeAll()
        order.encode(left, into: &self.left)
        order.encode(right, into: &self.right)
        return KeyHead.compare(self.left.bytes, self.right.bytes)
    }

    mutating func compareRepresentation(_ left: UnsafeRawPointer, _ right: UnsafeRawPointer, _ type: PhysicalType) -> Int {
        self.left.removeAll()
        self.right.removeAll()
        type.appendRepresentation(of: left, to: &self.left)
        type.appendRepresentation(of: right, to: &self.right)
        return KeyHead.compare(self.left.bytes, self.right.bytes)
    }
}

extension KeyBuffer {
    /// The 16 bytes from a place on, zeros where the key ends before, as two numbers: in the order of the bytes.
    func head(from start: Int) -> (UInt64, UInt64) {
        (KeyHead.load(slice(start, count)), KeyHead.load(slice(min(start + 8, count), count)))
    }
}
