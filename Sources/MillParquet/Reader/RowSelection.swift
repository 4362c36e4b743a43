package import MillColumnar
import MillIO

/// What rows a reader wants, as far as bounds can tell: rows that do not match may come all the same, rows that match never stay out.
package struct ParquetCondition: Sendable {
    /// Of the file's columns.
    package var column: Int
    package var kind: Kind

    package enum Kind: Sendable {
        /// At least the first and at most the second, in the order of the column's type as it is read; nil is no bound.
        case between(Scalar?, Scalar?)
        case isNull
        case isNotNull
    }

    package init(column: Int, _ kind: Kind) { (self.column, self.kind) = (column, kind) }
}

/// Says by the bounds in a file which rows cannot match.
///
/// Bounds of floats leave out NaN, which SQL places above every number: rows are never passed over for being too small. Bounds whose order
/// is not that of the SQL type, those that older files keep by signed comparison for texts, and those of bytes in files that do not say by
/// which order, are not used.
struct RowSelection {
    private let file: ParquetFile
    private let tests: [Test]

    private struct Test {
        let leaf: SchemaLeaf
        let meaning: ColumnMeaning
        let kind: ParquetCondition.Kind
        let lower: Column?
        let upper: Column?
    }

    init(_ file: ParquetFile, _ conditions: [ParquetCondition]) throws(ParquetError) {
        self.file = file
        var tests: [Test] = []
        for condition in conditions {
            // Of nested columns there are only the bounds of their leaves.
            guard case .flat(let leaf, let meaning) = try file.source(of: condition.column, as: nil) else { continue }
            var (lower, upper): (Column?, Column?)
            if case .between(let from, let to) = condition.kind {
                lower = from.map { Column.constant($0, meaning.type, count: 1) }
                upper = to.map { Column.constant($0, meaning.type, count: 1) }
            }
            tests.append(Test(leaf: leaf, meaning: meaning, kind: condition.kind, lower: lower, upper: upper))
        }
        self.tests = tests
    }

    /// The rows of a row group that may match, in order.
    func ranges(ofGroup index: Int) throws(ParquetError) -> [Range<Int>] {
        let group = file.metadata.rowGroups[index]
        guard let rowCount = Int(exactly: group.rowCount), rowCount > 0 else { return [] }
        var ranges = [0..<rowCount]
        for test in tests {
            let chunk = group.columns[test.leaf.index]
            if let statistics = chunk.statistics {
                let (min, max) = bounds(of: statistics, test.leaf)
                if !mayMatch(test, min: min, max: max, nullCount: statistics.nullCount, rowCount: Int64(rowCount)) { return [] }
            }
            if let byPage = try pages(of: test, chunk, rowCount) { ranges = Self.intersection(ranges, byPage) }
        }
        return ranges
    }

    /// The rows of those pages that may match; nil without an index.
    private func pages(of test: Test, _ chunk: ColumnChunkMetadata, _ rowCount: Int) throws(ParquetError) -> [Range<Int>]? {
        guard let columnRange = chunk.columnIndex, let offsets = try file.offsetIndex(of: chunk, test.leaf) else { return nil }
        let memory = try file.indexBytes(columnRange, test.leaf)
        let index: ColumnIndex
        do throws(Malformed) { index = try ColumnIndex(memory.bytes) } catch { throw file.malformed(columnRange, test.leaf, error) }
        guard index.nullPages.count == offsets.pages.count else {
            throw file.malformed(columnRange, test.leaf, .badSchema("the indexes of a column differ in length"))
        }
        var result: [Range<Int>] = []
        for page in offsets.pages.indices {
            let start = Int(offsets.pages[page].firstRow)
            let end = page + 1 < offsets.pages.count ? Int(offsets.pages[page + 1].firstRow) : rowCount
            guard start <= end, end <= rowCount else {
                throw file.malformed(columnRange, test.leaf, .badSchema("a page begins after the last row"))
            }
            let isNull = index.nullPages[page]
            let nullCount = isNull ? Int64(end - start) : index.nullCounts?[page]
            let hasBounds = !isNull && isOrdered(test.leaf)
            if mayMatch(
                test, min: hasBounds ? index.mins[page] : nil, max: hasBounds ? index.maxes[page] : nil, nullCount: nullCount,
                rowCount: Int64(end - start))
            {
                if let last = result.last, last.upperBound == start {
                    result[result.count - 1] = last.lowerBound..<end
                } else {
                    result.append(start..<end)
                }
            }
        }
        return result
    }

    private func isOrdered(_ leaf: SchemaLeaf) -> Bool {
        let orders = file.metadata.orders
        return orders.indices.contains(leaf.index) ? orders[leaf.index] : orders.isEmpty && Self.hasOneOrder(leaf)
    }

    /// Whether writers of all times compared the values alike.
    private static func hasOneOrder(_ leaf: SchemaLeaf) -> Bool {
        switch leaf.type {
        case .int32, .int64, .float, .double, .boolean: true
        case .int96, .byteArray, .fixedBytes: false
        }
    }

    private func bounds(of statistics: ColumnStatistics, _ leaf: SchemaLeaf) -> (min: [UInt8]?, max: [UInt8]?) {
        if statistics.min != nil || statistics.max != nil { return isOrdered(leaf) ? (statistics.min, statistics.max) : (nil, nil) }
        return Self.hasOneOrder(leaf) ? (statistics.signedMin, statistics.signedMax) : (nil, nil)
    }

    private func mayMatch(_ test: Test, min: [UInt8]?, max: [UInt8]?, nullCount: Int64?, rowCount: Int64) -> Bool {
        switch test.kind {
        case .isNull: return nullCount != 0
        case .isNotNull: return nullCount.map { $0 < rowCount } ?? true
        case .between:
            if let nullCount, nullCount >= rowCount { return false }
            if let upper = test.upper, let least = value(min, test), least.compare(0, to: upper, 0) > 0 { return false }
            if test.meaning.type.isFloat { return true }
            if let lower = test.lower, let greatest = value(max, test), greatest.compare(0, to: lower, 0) < 0 { return false }
            return true
        }
    }

    /// A bound as a column of one value; nil when it says nothing.
    private func value(_ bytes: [UInt8]?, _ test: Test) -> Column? {
        guard let bytes, test.meaning.hasOrderedBounds else { return nil }
        let width: Int? =
            switch test.leaf.type {
            case .boolean: 1
            case .int32, .float: 4
            case .int64, .double: 8
            case .fixedBytes: test.leaf.length
            case .byteArray: nil
            case .int96: 0
            }
        guard width == nil || width == bytes.count else { return nil }
        let column = Column(test.meaning.type, uninitialized: 1)
        let memory = PageMemory(count: bytes.count)
        bytes.withUnsafeBytes { memory.base.copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(memory.base), byteCount: bytes.count) }
        column.keep(StringHeap(keeping: memory))
        var view = StringView(padded: memory.base, count: bytes.count)
        let isBytes = test.leaf.type == .byteArray || test.leaf.type == .fixedBytes
        let converted = withUnsafePointer(to: &view) { view in
            do {
                try test.meaning.conversion.convert(
                    isBytes ? UnsafeRawPointer(view) : UnsafeRawPointer(memory.base), 1, into: column.data,
                    stride: test.meaning.type.physical.stride,
                    column.ownHeap())
                return true
            } catch { return false }
        }
        guard converted else { return nil }
        if case .float(let number) = column.scalar(0), number.isNaN { return nil }
        return column
    }

    static func intersection(_ a: [Range<Int>], _ b: [Range<Int>]) -> [Range<Int>] {
        var result: [Range<Int>] = []
        var (i, j) = (0, 0)
        while i < a.count && j < b.count {
            let common = a[i].clamped(to: b[j])
            if !common.isEmpty { result.append(common) }
            if a[i].upperBound < b[j].upperBound { i += 1 } else { j += 1 }
        }
        return result
    }
}

extension ParquetFile {
    func malformed(_ range: FileRange, _ leaf: SchemaLeaf, _ reason: Malformed) -> ParquetError {
        .malformed(file: file.path, offset: Int(range.offset), column: leaf.name, reason)
    }

    func indexBytes(_ range: FileRange, _ leaf: SchemaLeaf) throws(ParquetError) -> PageMemory {
        guard range.offset >= 4, range.length > 0, range.offset <= Int64(footerStart - Int(range.length)) else {
            throw malformed(range, leaf, .badLength(Int(range.length)))
        }
        return try Self.read(file, at: Int(range.offset), Int(range.length))
    }

    /// Where the pages of a chunk lie; nil when the file does not say.
    func offsetIndex(of chunk: ColumnChunkMetadata, _ leaf: SchemaLeaf) throws(ParquetError) -> OffsetIndex? {
        guard let range = chunk.offsetIndex else { return nil }
        let memory = try indexBytes(range, leaf)
        do throws(Malformed) { return try OffsetIndex(memory.bytes) } catch { throw malformed(range, leaf, error) }
    }
}
