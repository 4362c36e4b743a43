package import MillColumnar

extension ParquetColumn {
    /// Rows whose values have no place in the column, as its writer would refuse them one at a time.
    package func unfit(_ values: Column, _ count: Int) -> [(row: Int, reason: UnfitValue)] {
        // Without compression a writer of it can always be made: its encoding is that of every column.
        guard let column = try? WrittenColumn(self, ParquetWriterOptions(), try PageCompressor(.none)) else { return [] }
        do throws(ParquetError) { try column.prepare(values, count) } catch { return column.unfit(values, count) }
        return []
    }
}
