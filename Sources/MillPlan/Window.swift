/// How a partition's rows are numbered in their order.
package enum RankFunction: String, Hashable, Sendable, Codable, CaseIterable {
    /// 1, 2, 3, ...; rows that the order leaves equal are told apart by their other columns, so that the numbers are the same every time.
    case rowNumber = "row_number"
    /// One more than the rows before the first of its equals.
    case rank
    /// One more than the different places before its own.
    case denseRank = "dense_rank"
}

/// A partition of rows and their order in it. No columns: one partition, no order.
package struct Window: Hashable, Sendable, Codable {
    package var partition: [Int]
    package var order: [SortKey]

    package init(partition: [Int], order: [SortKey]) {
        self.partition = partition
        self.order = order
    }

    /// The input columns that it reads.
    package var columnsUsed: Set<Int> { Set(partition).union(order.map(\.column)) }

    /// The same window over an input where old column `n` is `map(n)`.
    package func remapped(_ map: (Int) -> Int) -> Window {
        Window(
            partition: partition.map(map),
            order: order.map { SortKey(column: map($0.column), descending: $0.descending, nullsFirst: $0.nullsFirst) })
    }
}

/// Which rows of each partition are kept: those whose number is above `offset` and at most `offset + limit`.
///
/// `LIMIT limit OFFSET offset` is the cut by row number of a single partition.
package struct Cut: Hashable, Sendable, Codable {
    package var function: RankFunction
    /// nil: all after the offset.
    package var limit: Int?
    package var offset: Int

    package init(_ function: RankFunction = .rowNumber, limit: Int?, offset: Int = 0) {
        self.function = function
        self.limit = limit
        self.offset = offset
    }

    /// The highest number that is kept.
    package var last: Int64 {
        guard let limit else { return .max }
        let (sum, overflow) = Int64(limit).addingReportingOverflow(Int64(offset))
        return overflow ? .max : sum
    }
}
