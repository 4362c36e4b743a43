import MillColumnar
import MillPlan
import MillState

/// What a ranked row carries in its payload.
struct RankState {
    var weight: Int64
    /// As they were given out.
    var numbers: RankNumbers
    /// Whether the row came in the present epoch.
    var isNoted: Bool
}

/// A row's numbers in its partition. Weight 0: it has none.
struct RankNumbers: Equatable {
    /// How many rows it is, numbered from `row` on.
    var weight: Int64 = 0
    var row: Int64 = 0
    var rank: Int64 = 0
    var denseRank: Int64 = 0

    /// The row number after its last one.
    var end: Int64 {
        let (sum, overflow) = row.addingReportingOverflow(weight)
        return overflow ? .max : sum
    }

    /// Those of the next row, or of the first one.
    func following(weight: Int64, isPeer: Bool) -> RankNumbers {
        let next = self.weight == 0 ? 1 : end
        return RankNumbers(weight: weight, row: next, rank: isPeer ? rank : next, denseRank: isPeer ? denseRank : denseRank + 1)
    }

    subscript(function: RankFunction) -> Int64 {
        switch function {
        case .rowNumber: row
        case .rank: rank
        case .denseRank: denseRank
        }
    }
}

/// What the ordered table has for a key: the row, and where the order key ends in it.
struct RankPlace {
    var row: RowNumber
    var orderEnd: UInt32
}

/// A row that came, and where its key is among those noted.
struct RankNote {
    var row: RowNumber
    var start: Int
    var end: Int
    /// Bytes of the partition at the key's start.
    var partitionCount: Int
}

/// Makes the keys that order rows: the partition, the order key, every other column, then what tells representations of one value
/// apart, so that no two rows share a key.
struct RankKeys {
    private let partition: [Int]
    private let partitionEncoder: KeyEncoder
    private let order: [Int]
    private let orderEncoder: KeyEncoder
    private let rest: [Int]
    private let restEncoder: KeyEncoder
    /// All columns, those of the order first.
    private let all: [Int]

    init(columns: [SQLType], window: Window) {
        partition = window.partition
        partitionEncoder = KeyEncoder(order: partition.map { KeyOrder(columns[$0]) })
        order = window.order.map(\.column)
        orderEncoder = KeyEncoder(
            order: window.order.map { KeyOrder(columns[$0.column], descending: $0.descending, nullsFirst: $0.nullsFirst) })
        rest = columns.indices.filter { !window.columnsUsed.contains($0) }
        restEncoder = KeyEncoder(order: rest.map { KeyOrder(columns[$0]) })
        all = order + columns.indices.filter { !window.order.map(\.column).contains($0) }
    }

    /// Writes a row's key; gives where its partition and its order key end.
    func encode(_ columns: [Column], row: Int, into key: inout KeyBuffer) -> (partition: Int, order: Int) {
        let partitionEnd = encodeOrder(columns, row: row, into: &key)
        let orderEnd = key.count
        restEncoder.encode(rest.map { columns[$0] }, row: row, into: &key)
        for column in all { columns[column].appendRepresentation(row: row, to: &key) }
        return (partitionEnd, orderEnd)
    }

    /// Writes the partition and the order key only; gives where the partition ends.
    func encodeOrder(_ columns: [Column], row: Int, into key: inout KeyBuffer) -> Int {
        key.removeAll()
        partitionEncoder.encode(partition.map { columns[$0] }, row: row, into: &key)
        let partitionEnd = key.count
        orderEncoder.encode(order.map { columns[$0] }, row: row, into: &key)
        return partitionEnd
    }
}
