import MillPlan
import MillState

/// What a partition knows of one of its first rows.
struct FirstRow {
    /// The first bytes of its order key, as numbers.
    var head: (UInt64, UInt64)
    var row: RowNumber
    /// As they were given out.
    var shown = FirstRowNumbers()
}

/// A row's numbers in its partition; all 0 when none were given out.
struct FirstRowNumbers: Equatable {
    // So that an entry takes 24 bytes: the operator keeps no more rows than a byte counts.
    var row: UInt8 = 0
    var rank: UInt8 = 0
    var denseRank: UInt8 = 0

    /// Those of the next row, or of the first one.
    func following(isPeer: Bool) -> FirstRowNumbers {
        FirstRowNumbers(row: row + 1, rank: isPeer ? rank : row + 1, denseRank: isPeer ? denseRank : denseRank + 1)
    }

    subscript(function: RankFunction) -> UInt8 {
        switch function {
        case .rowNumber: row
        case .rank: rank
        case .denseRank: denseRank
        }
    }
}

/// Short lists of rows that grow by one row at a time and stay: each lies in one piece, in the table of lists of its capacity.
///
/// A list is known by its number and its count. Its capacity is the next power of two, or the highest count, so both together say
/// where it lies.
struct FirstRowsLists {
    /// By the logarithm of the capacity.
    private let tables: [StateTable]

    init(countMax: Int) {
        tables = (0..<(countMax == 0 ? 0 : Self.size(countMax) + 1)).map { size in
            StateTable(columns: [], payloadBytes: MemoryLayout<FirstRow>.stride * min(1 << size, countMax), indexed: false)
        }
    }

    private static func size(_ count: Int) -> Int { Int.bitWidth - (count - 1).leadingZeroBitCount }

    /// Always in the same order.
    var durableTables: [any DurableTable] { tables }

    /// Must be called before a list's rows change. `count`: at least 1.
    @inline(__always) func prepareToWrite(_ list: RowNumber, count: Int) { tables[Self.size(count)].prepareToWrite(list) }

    /// For reading, or for changing once prepared. `count`: at least 1.
    @inline(__always) func rows(_ list: RowNumber, count: Int) -> UnsafeMutablePointer<FirstRow> {
        tables[Self.size(count)].preparedPayload(list).assumingMemoryBound(to: FirstRow.self)
    }

    /// Makes room for one more row than `count`, which may be 0; gives the list's new number.
    func grown(_ list: RowNumber, count: Int) -> RowNumber {
        // Only a full list moves.
        guard count & (count - 1) == 0 else {
            prepareToWrite(list, count: count)
            return list
        }
        let larger = tables[Self.size(count + 1)].append(hash: 1)
        if count > 0 {
            rows(larger, count: count + 1).update(from: rows(list, count: count), count: count)
            tables[Self.size(count)].remove(list)
        }
        return larger
    }

    /// `count`: at least 1.
    func remove(_ list: RowNumber, count: Int) { tables[Self.size(count)].remove(list) }

    /// Puts a row in its place, and those behind it one further. `count`: of the rows with this one; what was behind them is overwritten.
    @inline(__always) static func insert(_ row: FirstRow, into rows: UnsafeMutablePointer<FirstRow>, at place: Int, count: Int) {
        (rows + place + 1).update(from: rows + place, count: count - place - 1)
        rows[place] = row
    }

    func checkInvariants() -> [String] { tables.flatMap { $0.checkInvariants() } }

    var byteCount: Int { tables.reduce(0) { $0 + $1.byteCount } }
}
