/// The pages of one column of a row group, compressed and behind their headers, and all that the footer says of them.
struct FinishedChunk {
    /// Data pages.
    let pages = OutputBytes(capacity: 64 << 10)
    /// The dictionary page, which the file has before the others.
    let dictionaryPage = OutputBytes(capacity: 64)
    /// Set when a page uses it.
    var dictionary: DictionaryBuilder?
    /// Offsets count from the first data page.
    var locations: [PageLocation] = []
    var bounds: ValueBounds?
    private(set) var rowCount = 0
    private var entryCount = 0
    private var nullCount = 0
    private var uncompressedByteCount = 0
    private var pageCounts: [PageEncodingCount] = []
    /// A line of the column index for each page; nil from the first page on that has values and no bounds.
    private var pageBounds: [ValueBounds]? = []
    private var pageNulls: [(nullCount: Int, isNull: Bool)] = []

    /// Appends a data page and returns where it begins.
    mutating func append(page kind: PageHeader.Kind, _ uncompressed: Int, _ bytes: OutputBytes, checksum: Bool) -> Int {
        let start = pages.count
        uncompressedByteCount += Self.append(kind, uncompressed, bytes, checksum, to: pages)
        return start
    }

    mutating func addDictionary(valueCount: Int, encoding: Int32, _ uncompressed: Int, _ bytes: OutputBytes, checksum: Bool) {
        let kind = PageHeader.Kind.dictionary(valueCount: valueCount, encoding: encoding)
        uncompressedByteCount += Self.append(kind, uncompressed, bytes, checksum, to: dictionaryPage)
        pageCounts.append(PageEncodingCount(page: PageType.dictionary.rawValue, encoding: encoding, count: 1))
    }

    /// Returns the bytes of the header and of the page before compression.
    private static func append(_ kind: PageHeader.Kind, _ uncompressed: Int, _ bytes: OutputBytes, _ checksum: Bool, to out: OutputBytes)
        -> Int
    {
        let start = out.count
        let header = PageHeader(
            kind: kind, uncompressedByteCount: uncompressed, byteCount: bytes.count,
            checksum: checksum ? PageCompressor.checksum(bytes.bytes) : nil)
        header.write(to: out)
        let headerByteCount = out.count - start
        out.append(bytes.bytes)
        return headerByteCount + uncompressed
    }

    /// Counts a page that was appended.
    mutating func add(
        rowCount: Int, entryCount: Int, nullCount: Int, bounds: ValueBounds, encoding: Int32, _ options: ParquetWriterOptions
    ) {
        self.rowCount += rowCount
        self.entryCount += entryCount
        self.nullCount += nullCount
        self.bounds?.add(bounds)
        let type = (options.usesDataPagesV2 ? PageType.dataV2 : .data).rawValue
        if let known = pageCounts.firstIndex(where: { $0.encoding == encoding }) {
            pageCounts[known].count += 1
        } else {
            pageCounts.append(PageEncodingCount(page: type, encoding: encoding, count: 1))
        }
        pageNulls.append((nullCount, nullCount == entryCount))
        if nullCount < entryCount, bounds.written(bytesMax: options.boundBytesMax) == nil {
            pageBounds = nil
        } else {
            pageBounds?.append(bounds)
        }
    }

    /// What the footer says, for a chunk that begins at `offset`.
    func metadata(of column: ColumnChunkWriter, at offset: Int64, _ codec: CompressionCodec, boundBytesMax: Int) -> ColumnChunkMetadata {
        var statistics = ColumnStatistics(nullCount: Int64(nullCount))
        if let written = bounds?.written(bytesMax: boundBytesMax) {
            (statistics.min, statistics.max) = (written.min, written.max)
            (statistics.isMinExact, statistics.isMaxExact) = (written.isMinExact, written.isMaxExact)
        }
        var encodings = Set(pageCounts.map(\.encoding))
        if column.place.definitionMax > 0 { encodings.insert(Encoding.rle.rawValue) }
        return ColumnChunkMetadata(
            type: column.storage.type, encodings: encodings.sorted(), path: column.place.path, codec: codec.rawValue,
            valueCount: Int64(entryCount),
            uncompressedByteCount: Int64(uncompressedByteCount), compressedByteCount: Int64(dictionaryPage.count + pages.count),
            dataPageOffset: offset + Int64(dictionaryPage.count), dictionaryPageOffset: dictionaryPage.count > 0 ? offset : nil,
            statistics: statistics,
            pageCounts: pageCounts)
    }

    func offsetIndex(firstPageAt offset: Int64) -> OffsetIndex {
        OffsetIndex(pages: locations.map { PageLocation(offset: $0.offset + offset, byteCount: $0.byteCount, firstRow: $0.firstRow) })
    }

    /// Nil when some page has values and no bounds.
    func columnIndex(boundBytesMax: Int) -> ColumnIndex? {
        guard let pageBounds, !pageBounds.isEmpty else { return nil }
        let written = pageBounds.map { $0.written(bytesMax: boundBytesMax) }
        let ordered = pageBounds.filter { !$0.isEmpty }.map { $0.cut(to: boundBytesMax) }
        let pairs = zip(ordered, ordered.dropFirst())
        let order: BoundaryOrder =
            pairs.allSatisfy { $0.isAtOrBelow($1) } ? .ascending : pairs.allSatisfy { $1.isAtOrBelow($0) } ? .descending : .unordered
        return ColumnIndex(
            nullPages: pageNulls.map(\.isNull), mins: written.map { $0?.min ?? [] }, maxes: written.map { $0?.max ?? [] }, order: order,
            nullCounts: pageNulls.map { Int64($0.nullCount) })
    }
}
