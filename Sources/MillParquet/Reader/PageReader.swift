import MillColumnar

/// Turns pages into decoders of their values.
struct PageReader {
    let leaf: SchemaLeaf
    let codec: CompressionCodec
    private let decompressor = PageDecompressor()

    init(_ leaf: SchemaLeaf, _ codec: CompressionCodec) { (self.leaf, self.codec) = (leaf, codec) }

    /// One data page, opened.
    struct Page {
        var values: any ValueDecoder
        /// Values come as the column has them: out of a dictionary.
        var isConverted: Bool
        var definitions: HybridDecoder?
        var repetitions: HybridDecoder?
        /// NULLs among them.
        var valueCount: Int
        /// Keeps alive what values point into.
        var heaps: [StringHeap]
    }

    /// The bytes of a page before compression; `plainByteCount` of them, the first ones, never were compressed.
    private func expand(_ header: PageHeader, _ body: UnsafeRawBufferPointer, plainByteCount: Int, isCompressed: Bool) throws(Malformed)
        -> PageMemory
    {
        if let checksum = header.checksum, PageCompressor.checksum(body) != checksum { throw .badChecksum }
        let codec = isCompressed ? codec : .none
        guard plainByteCount <= min(body.count, header.uncompressedByteCount) else { throw .badLength(plainByteCount) }
        let memory = PageMemory(count: header.uncompressedByteCount)
        memory.base.copyMemory(from: body.baseAddress.unsafelyUnwrapped, byteCount: plainByteCount)
        try decompressor.decompress(
            UnsafeRawBufferPointer(rebasing: body[plainByteCount...]), codec,
            into: UnsafeMutableRawBufferPointer(start: memory.base + plainByteCount, count: memory.count - plainByteCount))
        return memory
    }

    func dictionary(
        _ header: PageHeader, _ valueCount: Int, _ encoding: Int32, _ body: UnsafeRawBufferPointer, _ meaning: ColumnMeaning
    ) throws(Malformed) -> (PageDictionary, [StringHeap]) {
        guard encoding == Encoding.plain.rawValue || encoding == Encoding.plainDictionary.rawValue else {
            throw .unreadable("it has a dictionary of encoding \(encoding)")
        }
        let memory = try expand(header, body, plainByteCount: 0, isCompressed: true)
        // Before there is memory for them: each value takes some bytes.
        let leastBytes = leaf.type == .byteArray ? 4 : leaf.type == .fixedBytes || leaf.type == .int96 ? leaf.length : leaf.type.stride
        guard leaf.type != .boolean, valueCount <= memory.count / leastBytes else { throw .badLength(valueCount) }
        let stored = PageDictionary(count: valueCount, stride: leaf.type.stride)
        try plain(memory.bytes).decode(valueCount, into: stored.values)
        let heap = StringHeap(keeping: memory)
        let own = StringHeap()
        guard meaning.conversion != .none else { return (stored, [heap]) }
        let converted = PageDictionary(count: valueCount, stride: meaning.type.physical.stride)
        try meaning.conversion.convert(stored.values, valueCount, into: converted.values, stride: converted.stride, own)
        return (converted, [heap, own])
    }

    func page(_ header: PageHeader, _ data: PageHeader.DataPage, _ body: UnsafeRawBufferPointer, _ dictionary: PageDictionary?)
        throws(Malformed) -> Page
    {
        let levels = data.levels
        let plainByteCount = levels.map { $0.definitionByteCount + $0.repetitionByteCount } ?? 0
        let memory = try expand(header, body, plainByteCount: plainByteCount, isCompressed: levels?.isCompressed ?? true)
        var input = InputBytes(memory.bytes)
        var repetitions: HybridDecoder?
        var definitions: HybridDecoder?
        if let levels {
            let repetition = try input.take(levels.repetitionByteCount)
            let definition = try input.take(levels.definitionByteCount)
            if leaf.repetitionMax > 0 { repetitions = try HybridDecoder(repetition, width: BitPacking.width(UInt64(leaf.repetitionMax))) }
            if leaf.definitionMax > 0 { definitions = try HybridDecoder(definition, width: BitPacking.width(UInt64(leaf.definitionMax))) }
        } else {
            repetitions = try Self.levels(&input, leaf.repetitionMax, data.repetitionEncoding)
            definitions = try Self.levels(&input, leaf.definitionMax, data.definitionEncoding)
        }
        let heap = StringHeap()
        var page = Page(
            values: try values(input.rest, data.encoding, dictionary, heap), isConverted: false, definitions: definitions,
            repetitions: repetitions,
            valueCount: data.valueCount, heaps: [StringHeap(keeping: memory), heap])
        page.isConverted = page.values is DictionaryDecoder
        return page
    }

    private static func levels(_ input: inout InputBytes, _ largest: Int, _ encoding: Int32) throws(Malformed) -> HybridDecoder? {
        guard largest > 0 else { return nil }
        guard encoding == Encoding.rle.rawValue else { throw .unreadable("it has levels of encoding \(encoding)") }
        let length = Int(try input.littleEndian(UInt32.self))
        return try HybridDecoder(try input.take(length), width: BitPacking.width(UInt64(largest)))
    }

    private func plain(_ bytes: UnsafeRawBufferPointer) -> any ValueDecoder {
        switch leaf.type {
        case .boolean: PlainBooleanDecoder(bytes)
        case .byteArray: PlainBytesDecoder(bytes)
        case .fixedBytes, .int96: PlainFixedBytesDecoder(bytes, length: leaf.length)
        case .int32, .int64, .float, .double: PlainNumberDecoder(bytes, stride: leaf.type.stride)
        }
    }

    private func values(_ bytes: UnsafeRawBufferPointer, _ raw: Int32, _ dictionary: PageDictionary?, _ heap: StringHeap) throws(Malformed)
        -> any ValueDecoder
    {
        // A page of nothing but NULL may have no bytes at all: there is nothing to take from it.
        if bytes.isEmpty { return PlainNumberDecoder(bytes, stride: 1) }
        switch (Encoding(rawValue: raw), leaf.type) {
        case (.plain, _): return plain(bytes)
        case (.plainDictionary, _), (.rleDictionary, _): return try DictionaryDecoder(bytes, dictionary)
        case (.rle, .boolean): return try RunBooleanDecoder(bytes)
        case (.deltaBinaryPacked, .int32): return try DeltaNumberDecoder(bytes, isNarrow: true)
        case (.deltaBinaryPacked, .int64): return try DeltaNumberDecoder(bytes, isNarrow: false)
        case (.deltaLengthByteArray, .byteArray): return try DeltaLengthDecoder(bytes)
        case (.deltaByteArray, .byteArray): return try DeltaBytesDecoder(bytes, heap)
        case (.deltaByteArray, .fixedBytes): return try DeltaBytesDecoder(bytes, heap, length: leaf.length)
        case (.byteStreamSplit, .fixedBytes): return try SplitStreamDecoder(bytes, stride: leaf.length, heap: heap)
        case (.byteStreamSplit, .int32), (.byteStreamSplit, .int64), (.byteStreamSplit, .float), (.byteStreamSplit, .double):
            return try SplitStreamDecoder(bytes, stride: leaf.type.stride, heap: nil)
        default: throw .unreadable("it has values of stored type \(leaf.type.rawValue) in encoding \(raw)")
        }
    }
}

extension StoredType {
    /// Bytes of a value as decoders give it.
    var stride: Int {
        switch self {
        case .boolean: 1
        case .int32, .float: 4
        case .int64, .double: 8
        case .int96, .byteArray, .fixedBytes: MemoryLayout<StringView>.stride
        }
    }
}
