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
    /// The key's first bytes: keys whose heads differ are in the heads' order.
    var head: (UInt64, UInt64)
    var start: Int
    var end: Int
    /// Where the partition ends in the key.
    var partitionEnd: Int
}

/// A row to forget when the epoch is over, by its key.
struct RankLeaver {
    var row: RowNumber
    var start: Int
    var end: Int
}
