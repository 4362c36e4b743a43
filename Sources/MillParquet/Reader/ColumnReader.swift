import MillColumnar
import MillIO

/// Reads a column of a row group from front to back.
protocol RowReader: AnyObject {
    /// The next `count` rows as a column.
    func read(_ count: Int) throws(ParquetError) -> Column
    /// Passes over rows.
    func skip(_ count: Int) throws(ParquetError)
}

/// Reads one column of one row group from front to back: fills columns of batches, passes over rows that nobody wants.
///
/// Pages are opened when a row of theirs is wanted; with an offset index the ones before are not even read. Values are decoded in parts,
/// so that what a page announces reserves no memory.
///
/// Threading: one thread at a time.
final class ColumnReader: RowReader {
    let meaning: ColumnMeaning
    let leaf: SchemaLeaf
    private let chunk: ColumnChunkMetadata
    private let file: any File
    private let pages: PageReader
    private let offsets: OffsetIndex?
    private let rowCount: Int
    private var bytes: ChunkBytes

    /// Where the next page's header lies.
    private var position: Int
    /// Where the header of the page at hand lies: what goes wrong is said to be there.
    private var pageStart: Int
    /// The row after the last one of the page at hand.
    var pageEnd = 0
    /// The next row to be read.
    var row = 0
    var page: PageReader.Page?
    /// The first page may be the dictionary, whether the footer says so or not: before it, nothing is jumped over.
    private var hasReadFirstPage = false
    var dictionary: (values: PageDictionary, heaps: [StringHeap])?
    private let levels = UnsafeMutablePointer<UInt32>.allocate(capacity: ColumnReader.partRows)
    /// Stored values before their conversion.
    private let stored: UnsafeMutableRawPointer

    /// Rows taken in at once.
    static let partRows = 1024

    /// - Parameters:
    ///   - rowCount: of a leaf that repeats, the entries.
    ///   - end: where the file's pages end and its indexes or its footer begin.
    init(
        _ file: any File, _ leaf: SchemaLeaf, _ meaning: ColumnMeaning, _ chunk: ColumnChunkMetadata, _ offsets: OffsetIndex?,
        rowCount: Int, end: Int
    ) throws(ParquetError) {
        (self.file, self.leaf, self.meaning, self.chunk, self.offsets, self.rowCount) = (file, leaf, meaning, chunk, offsets, rowCount)
        stored = .allocate(byteCount: Self.partRows * leaf.type.stride, alignment: 16)
        let first = chunk.dictionaryPageOffset.map { $0 > 0 ? min($0, chunk.dataPageOffset) : chunk.dataPageOffset } ?? chunk.dataPageOffset
        (position, pageStart) = (Int(first), Int(first))
        bytes = ChunkBytes(file, end: 0)
        pages = PageReader(leaf, CompressionCodec(rawValue: chunk.codec) ?? .none)
        let (chunkEnd, overflow) = Int(first).addingReportingOverflow(Int(chunk.compressedByteCount))
        guard first >= 4, !overflow, chunkEnd <= end else { throw located(.badLength(Int(chunk.compressedByteCount))) }
        bytes = ChunkBytes(file, end: chunkEnd)
        guard let codec = CompressionCodec(rawValue: chunk.codec), codec != .lzo, codec != .brotli else {
            let name = CompressionCodec(rawValue: chunk.codec)?.name ?? "codec \(chunk.codec)"
            throw unsupported("it is compressed by \(name)")
        }
        guard chunk.type == leaf.type, chunk.valueCount == Int64(rowCount) else {
            throw located(.badSchema("a column chunk does not fit the schema"))
        }
    }

    deinit {
        levels.deallocate()
        stored.deallocate()
    }

    func located(_ reason: Malformed) -> ParquetError {
        if case .unreadable(let feature) = reason { return unsupported(feature) }
        return .malformed(file: file.path, offset: pageStart, column: leaf.name, reason)
    }

    func unsupported(_ feature: String) -> ParquetError { .unsupported(file: file.path, column: leaf.name, feature: feature) }

    /// Runs a part of the work; what goes wrong in it is said with its place.
    func locating<R>(_ body: () throws(ChunkFailure) -> R) throws(ParquetError) -> R {
        do throws(ChunkFailure) { return try body() } catch {
            switch error {
            case .malformed(let reason): throw located(reason)
            case .io(let failure): throw .io(failure)
            }
        }
    }

    func read(_ count: Int) throws(ParquetError) -> Column {
        let column = Column(meaning.type, uninitialized: count)
        try locating { () throws(ChunkFailure) in
            var done = 0
            while done < count {
                try openPage()
                guard let page else { throw .malformed(.cutShort) }
                let part = min(count - done, pageEnd - row, Self.partRows)
                do throws(Malformed) { try fill(column, at: done, part) } catch { throw .malformed(error) }
                if meaning.type.physical == .string { column.keep(page.isConverted ? dictionary?.heaps ?? [] : page.heaps) }
                row += part
                done += part
            }
        }
        return column
    }

    func skip(_ count: Int) throws(ParquetError) {
        try locating { () throws(ChunkFailure) in
            let target = row + count
            while row < target {
                if row == pageEnd { try nextPage(holding: target) }
                let part = min(target, pageEnd) - row
                // A page all of whose rows are passed over is never opened.
                if page != nil { try pass(part) }
                row += part
            }
        }
    }

    // MARK: Pages

    /// Makes sure that the page at hand is open and has the next row.
    func openPage() throws(ChunkFailure) {
        while row == pageEnd || page == nil { try nextPage(holding: row) }
    }

    /// Goes to the next page, or, where the index says so, to the one that holds `target`; opens it when it does.
    private func nextPage(holding target: Int) throws(ChunkFailure) {
        page = nil
        if let offsets, target > row, hasReadFirstPage {
            // The last page that begins at or before the target.
            var (low, high) = (0, offsets.pages.count)
            while high - low > 1 {
                let middle = (low + high) / 2
                if Int(offsets.pages[middle].firstRow) <= target { low = middle } else { high = middle }
            }
            if Int(offsets.pages[low].firstRow) > row {
                row = Int(offsets.pages[low].firstRow)
                position = Int(offsets.pages[low].offset)
                pageEnd = row
            }
        }
        pageStart = position
        guard position < bytes.end else { throw .malformed(.cutShort) }
        let (header, headerByteCount) = try bytes.header(at: position)
        let start = position + headerByteCount
        hasReadFirstPage = true
        switch header.kind {
        case .other: break
        case .dictionary(let valueCount, let encoding):
            let body = try bytes.bytes(at: start, header.byteCount)
            do throws(Malformed) { dictionary = try pages.dictionary(header, valueCount, encoding, body, meaning) } catch {
                throw .malformed(error)
            }
        case .data(let data):
            guard data.valueCount <= rowCount - pageEnd else { throw .malformed(.badLength(data.valueCount)) }
            if target < pageEnd + data.valueCount {
                let body = try bytes.bytes(at: start, header.byteCount)
                do throws(Malformed) { page = try pages.page(header, data, body, dictionary?.values) } catch { throw .malformed(error) }
            }
            pageEnd += data.valueCount
        }
        position = start + header.byteCount
    }

    // MARK: Values

    /// Takes the definition levels of `count` rows; returns how many have a value. All or none leaves `levels` alone.
    private func takeLevels(_ count: Int) throws(Malformed) -> Int {
        guard leaf.definitionMax > 0 else { return count }
        if let same = try page?.definitions?.takeRepeated(count) { return same == UInt32(leaf.definitionMax) ? count : 0 }
        try page?.definitions?.decode(count, into: levels)
        let present = UInt32(leaf.definitionMax)
        var sum = 0
        for index in 0..<count { sum &+= levels[index] == present ? 1 : 0 }
        return sum
    }

    private func fill(_ column: Column, at start: Int, _ count: Int) throws(Malformed) {
        guard let page, count > 0 else { return }
        let present = try takeLevels(count)
        let stride = meaning.type.physical.stride
        let target = column.data + start * stride
        if present > 0 { try decode(page, present, into: target) }
        guard present < count else { return }
        if present == 0 { levels.update(repeating: 0, count: count) }
        let validity = column.ensureValidity()
        switch stride {
        case 1: spread(UInt8.self, target, present, count, validity, start)
        case 2: spread(UInt16.self, target, present, count, validity, start)
        case 4: spread(UInt32.self, target, present, count, validity, start)
        case 8: spread(UInt64.self, target, present, count, validity, start)
        case 16: spread(StringView.self, target, present, count, validity, start)
        default: spread(Decimal.self, target, present, count, validity, start)
        }
    }

    /// The next `count` values of a page, at most `partRows`, as the column has them.
    func decode(_ page: PageReader.Page, _ count: Int, into target: UnsafeMutableRawPointer) throws(Malformed) {
        guard !page.isConverted, meaning.conversion != .none else { return try page.values.decode(count, into: target) }
        try page.values.decode(count, into: stored)
        try meaning.conversion.convert(stored, count, into: target, stride: meaning.type.physical.stride, page.heaps[1])
    }

    /// Moves values that lie side by side to their rows, from the last one on; missing ones become zero.
    private func spread<T: BitwiseCopyable>(
        _: T.Type, _ target: UnsafeMutableRawPointer, _ present: Int, _ count: Int, _ validity: UnsafeMutablePointer<UInt64>, _ start: Int
    ) {
        let values = target.assumingMemoryBound(to: T.self)
        let (levels, wanted) = (levels, UInt32(leaf.definitionMax))
        var next = present
        for index in stride(from: count - 1, through: 0, by: -1) {
            if levels[index] == wanted {
                next &-= 1
                values[index] = values[next]
            } else {
                (target + index * MemoryLayout<T>.stride).initializeMemory(as: UInt8.self, repeating: 0, count: MemoryLayout<T>.stride)
                validity[(start + index) / 64] &= ~(1 << UInt64((start + index) % 64))
            }
        }
    }

    /// Passes over rows of the page at hand.
    private func pass(_ count: Int) throws(ChunkFailure) {
        do throws(Malformed) {
            var left = count
            while left > 0 {
                let part = min(left, Self.partRows)
                try page?.values.skip(try takeLevels(part))
                left -= part
            }
        } catch { throw .malformed(error) }
    }
}
