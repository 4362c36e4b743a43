import MillColumnar

/// One column of the row group that is being written: fills pages, keeps them compressed until the group ends.
///
/// A column begins with a dictionary, unless told otherwise. At the end of the first page, the page is written with the dictionary or
/// without it, whichever is smaller; a dictionary that outgrows its bound ends the page and is given up for those that follow. A column
/// whose first page went better without begins without in the file's other row groups.
final class ColumnChunkWriter {
    let column: ParquetColumn
    let place: LeafPlace
    let storage: ColumnStorage
    private let options: ParquetWriterOptions
    private let compressor: PageCompressor
    private let fallback: Encoding
    private let dense: DenseValues

    /// The page that is being filled.
    private let values: PageValues
    private let numbers = OutputBytes()
    /// What their values take without the dictionary: a few long ones may stand for any number of bytes.
    private var numberedByteCount = 0
    private let validity = OutputBytes()
    /// Of a nested column's leaf, for each entry of the page.
    private var definitions: [UInt32] = []
    private var repetitions: [UInt32] = []
    private var rowCount = 0
    /// Values and NULLs of the page: of a nested column, elements of lists and maps each for itself.
    private var entryCount = 0
    private var nullCount = 0
    private var bounds: ValueBounds

    private var dictionary: DictionaryBuilder?
    /// A page of this chunk has used it.
    private var dictionaryIsProven = false
    private var startsWithDictionary: Bool

    /// The pages that are done.
    private var chunk = FinishedChunk()
    private let body = OutputBytes(capacity: 64 << 10)
    /// The page's bytes for the file; before that, room for what is needed to make them.
    private let compressed = OutputBytes(capacity: 64 << 10)

    /// After so many values, three of four of them distinct, a dictionary is given up at once.
    private static let judgedEarly = 4096

    /// - Parameter leaf: whose values are filled in before each `append`.
    init(_ leaf: ColumnParts.Leaf, _ options: ParquetWriterOptions, _ compressor: PageCompressor) throws(ParquetError) {
        (column, place, dense) = (leaf.column, leaf.place, leaf.values)
        self.options = options
        self.compressor = compressor
        storage = dense.storage
        fallback = try Self.encoding(column, storage, options)
        startsWithDictionary = column.encoding == .automatic && storage.form != .boolean
        values = PageValues(storage)
        bounds = ValueBounds(storage)
        begin()
    }

    /// What pages without a dictionary are written as.
    private static func encoding(_ column: ParquetColumn, _ storage: ColumnStorage, _ options: ParquetWriterOptions) throws(ParquetError)
        -> Encoding
    {
        let wanted: Encoding? =
            switch (column.encoding, storage.form) {
            case (.plain, _): .plain
            case (.automatic, _) where options.usesOldEncodingsOnly: .plain
            case (.automatic, .int32), (.automatic, .int64), (.delta, .int32), (.delta, .int64): .deltaBinaryPacked
            case (.automatic, .bytes), (.delta, .bytes): .deltaLengthByteArray
            case (.automatic, _): .plain
            case (.deltaBytes, .bytes): .deltaByteArray
            case (.deltaBytes, .fixed) where !storage.isInt96: .deltaByteArray
            case (.delta, _), (.deltaBytes, _): nil
            }
        guard let wanted else {
            throw .badRequest("column \"\(column.name)\" of type \(column.type.name) cannot be written with the encoding asked for")
        }
        return wanted
    }

    private func begin() {
        chunk = FinishedChunk()
        chunk.bounds = ValueBounds(storage)
        dictionaryIsProven = false
        dictionary = startsWithDictionary ? DictionaryBuilder(storage) : nil
    }

    /// Compressed bytes kept, and what the page at hand may come to.
    var byteCount: Int { chunk.pages.count + values.byteCount + numbers.count }

    /// Writes the values that were filled in, and ends the page when it is full.
    func append(_ source: Column, count: Int) {
        if values.byteCount + numberedByteCount + dense.pageByteCount > PageValues.byteCountMax { endPage() }
        if !column.isRequired { appendValidity(source, count) }
        appendDense(rows: count, entries: count)
    }

    /// The same for a leaf of a nested column: whole rows of it.
    func append(_ leaf: NestedShredder.Leaf, rows: Int) {
        if values.byteCount + numberedByteCount + dense.pageByteCount > PageValues.byteCountMax { endPage() }
        if place.definitionMax > 0 { definitions += leaf.definitions }
        if place.repetitionMax > 0 { repetitions += leaf.repetitions }
        appendDense(rows: rows, entries: leaf.definitions.count)
    }

    private func appendDense(rows: Int, entries: Int) {
        rowCount += rows
        entryCount += entries
        nullCount += entries - dense.count
        if let dictionary {
            append(to: dictionary)
        } else {
            bounds.add(dense.values, dense.count)
            values.append(dense.values, dense.count, byteCount: dense.byteCount)
        }
        // The first page is made without the dictionary, too.
        let byteCount = values.byteCount + (dictionaryIsProven ? 0 : numberedByteCount)
        if entryCount >= options.pageRowsMax || byteCount >= options.pageBytesMax { endPage() }
    }

    private func appendValidity(_ source: Column, _ count: Int) {
        let needed = ((rowCount + count) / 64 + 2) * 8
        if needed > validity.count {
            _ = validity.room(needed - validity.count)
            validity.advance(needed - validity.count)
        }
        Self.append(source.validity, count, to: validity.base.assumingMemoryBound(to: UInt64.self), at: rowCount)
    }

    /// Appends `count` bits, all set without a source, behind `start` others; what follows them is zero.
    private static func append(_ source: UnsafePointer<UInt64>?, _ count: Int, to target: UnsafeMutablePointer<UInt64>, at start: Int) {
        if start == 0 { target[0] = 0 }
        var done = 0
        while done < count {
            let bits = (source?[done / 64] ?? .max) & (.max >> UInt64(64 - min(64, count - done)))
            let (word, shift) = ((start + done) / 64, UInt64((start + done) % 64))
            target[word] |= bits << shift
            target[word + 1] = shift == 0 ? 0 : bits >> (64 - shift)
            done += 64
        }
    }

    private func append(to dictionary: DictionaryBuilder) {
        let target = numbers.room(dense.count * 4).assumingMemoryBound(to: UInt32.self)
        dictionary.number(dense.values, dense.count, into: target)
        numbers.advance(dense.count * 4)
        numberedByteCount += dense.pageByteCount
        let numbered = numbers.count / 4
        let isHopeless = !dictionaryIsProven && numbered >= Self.judgedEarly && dictionary.count * 4 > numbered * 3
        if isHopeless || dictionary.byteCount > options.dictionaryBytesMax { giveUp(dictionary) }
    }

    /// Pages that have used the dictionary keep it, and the page at hand is the last one of them; before there are any, it goes on without.
    private func giveUp(_ dictionary: DictionaryBuilder) {
        if dictionaryIsProven {
            endPage()
            chunk.dictionary = dictionary
        } else {
            addBounds(dictionary)
            values.append(UnsafePointer(numbers.base.assumingMemoryBound(to: UInt32.self)), numbers.count / 4, of: dictionary)
            removeNumbers()
            startsWithDictionary = false
        }
        self.dictionary = nil
    }

    private func removeNumbers() {
        numbers.truncate(to: 0)
        numberedByteCount = 0
    }

    /// Values of a dictionary are compared once a page, however often they come.
    private func addBounds(_ dictionary: DictionaryBuilder) {
        let count = dictionary.distinct(
            UnsafePointer(numbers.base.assumingMemoryBound(to: UInt32.self)), numbers.count / 4, into: compressed)
        bounds.add(compressed.base, count)
    }

    private func endPage() {
        guard rowCount > 0 else { return }
        body.truncate(to: 0)
        let levels = appendLevels()
        appendPage(encodeValues(), levels)
        values.removeAll()
        removeNumbers()
        validity.truncate(to: 0)
        definitions.removeAll(keepingCapacity: true)
        repetitions.removeAll(keepingCapacity: true)
        (rowCount, entryCount, nullCount) = (0, 0, 0)
        bounds = ValueBounds(storage)
    }

    private func encodeValues() -> Encoding {
        guard let dictionary, numbers.count > 0 else {
            values.encode(fallback, to: body)
            return fallback
        }
        addBounds(dictionary)
        let start = body.count
        appendNumbers(dictionary)
        if dictionaryIsProven { return .rleDictionary }
        compressed.truncate(to: 0)
        values.append(UnsafePointer(numbers.base.assumingMemoryBound(to: UInt32.self)), numbers.count / 4, of: dictionary)
        values.encode(fallback, to: compressed)
        dictionaryIsProven = body.count - start + dictionary.byteCount < compressed.count
        if dictionaryIsProven { return .rleDictionary }
        body.truncate(to: start)
        body.append(compressed.bytes)
        self.dictionary = nil
        startsWithDictionary = false
        return fallback
    }

    private func appendNumbers(_ dictionary: DictionaryBuilder) {
        let width = max(1, BitPacking.width(UInt64(dictionary.count - 1)))
        body.append(UInt8(width))
        HybridEncoder.encode(UnsafePointer(numbers.base.assumingMemoryBound(to: UInt32.self)), numbers.count / 4, width: width, to: body)
    }

    /// Which entries have a value, and in what lists; pages of version 1 say before each of both how many bytes it takes. Returns these bytes.
    private func appendLevels() -> (repetition: Int, definition: Int) {
        let repetition = place.repetitionMax == 0 ? 0 : appendLevels { Self.append(repetitions, max: place.repetitionMax, to: body) }
        guard place.definitionMax > 0 else { return (repetition, 0) }
        guard place.isNested else { return (0, appendLevels(appendFlatLevels)) }
        return (repetition, appendLevels { Self.append(definitions, max: place.definitionMax, to: body) })
    }

    private func appendLevels(_ append: () -> Void) -> Int {
        let start = body.count
        if !options.usesDataPagesV2 { body.appendLittleEndian(UInt32(0)) }
        let levels = body.count
        append()
        if !options.usesDataPagesV2 { (body.base + start).storeBytes(of: UInt32(body.count - levels).littleEndian, as: UInt32.self) }
        return body.count - start
    }

    private static func append(_ levels: [UInt32], max: Int, to out: OutputBytes) {
        levels.withUnsafeBufferPointer { levels in
            guard let base = levels.baseAddress else { return }
            HybridEncoder.encode(base, levels.count, width: BitPacking.width(UInt64(max)), to: out)
        }
    }

    private func appendFlatLevels() {
        if nullCount == 0 || nullCount == rowCount {
            HybridEncoder.appendRun(of: nullCount == 0 ? 1 : 0, rowCount, width: 1, to: body)
        } else {
            HybridEncoder.encode(bits: UnsafePointer(validity.base.assumingMemoryBound(to: UInt64.self)), rowCount, to: body)
        }
    }

    private func appendPage(_ encoding: Encoding, _ levelBytes: (repetition: Int, definition: Int)) {
        compressed.truncate(to: 0)
        let levelByteCount = levelBytes.repetition + levelBytes.definition
        var page = PageHeader.DataPage(valueCount: entryCount, encoding: name(encoding))
        if options.usesDataPagesV2 {
            let levels = UnsafeRawBufferPointer(rebasing: body.bytes[..<levelByteCount])
            let values = UnsafeRawBufferPointer(rebasing: body.bytes[levelByteCount...])
            compressed.append(levels)
            compressor.compress(values, to: compressed)
            // Values that do not get smaller stay as they are.
            let isCompressed = compressed.count < body.count && compressor.codec != .none
            if !isCompressed {
                compressed.truncate(to: levelByteCount)
                compressed.append(values)
            }
            page.levels = .init(
                nullCount: nullCount, rowCount: rowCount, definitionByteCount: levelBytes.definition, repetitionByteCount: levelBytes.repetition,
                isCompressed: isCompressed)
        } else if compressor.codec != .none {
            compressor.compress(body.bytes, to: compressed)
        }
        let isAsItWas = compressor.codec == .none && !options.usesDataPagesV2
        let start = chunk.append(page: .data(page), body.count, isAsItWas ? body : compressed, checksum: options.writesChecksums)
        chunk.locations.append(
            PageLocation(offset: Int64(start), byteCount: Int32(chunk.pages.count - start), firstRow: Int64(chunk.rowCount)))
        chunk.add(rowCount: rowCount, entryCount: entryCount, nullCount: nullCount, bounds: bounds, encoding: name(encoding), options)
    }

    /// Old readers know pages with a dictionary by another name.
    private func name(_ encoding: Encoding) -> Int32 {
        encoding == .rleDictionary && options.usesOldEncodingsOnly ? Encoding.plainDictionary.rawValue : encoding.rawValue
    }

    /// Ends the chunk and begins the next one.
    func finish() -> FinishedChunk {
        endPage()
        if dictionaryIsProven, let dictionary { chunk.dictionary = dictionary }
        if let dictionary = chunk.dictionary { writeDictionary(dictionary) }
        defer { begin() }
        return chunk
    }

    private func writeDictionary(_ dictionary: DictionaryBuilder) {
        let all = PageValues(storage)
        let bytes = dictionary.byteCount - (storage.form == .bytes ? 4 * dictionary.count : 0)
        all.append(dictionary.values.base, dictionary.count, byteCount: bytes)
        body.truncate(to: 0)
        all.encode(.plain, to: body)
        compressed.truncate(to: 0)
        compressor.compress(body.bytes, to: compressed)
        let encoding: Encoding = options.usesOldEncodingsOnly ? .plainDictionary : .plain
        chunk.addDictionary(
            valueCount: dictionary.count, encoding: encoding.rawValue, body.count, compressed, checksum: options.writesChecksums)
    }
}
