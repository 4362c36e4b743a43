/// What stands before each page of a column chunk.
struct PageHeader {
    var kind: Kind
    var uncompressedByteCount: Int  // 2
    /// Bytes in the file after the header.
    var byteCount: Int  // 3
    /// CRC-32 of these bytes.
    var checksum: UInt32?  // 4

    enum Kind {
        case data(DataPage)
        case dictionary(valueCount: Int, encoding: Int32)
        /// One that readers pass over.
        case other
    }

    struct DataPage {
        /// NULLs are among them.
        var valueCount: Int
        var encoding: Int32
        /// How the levels before the values are written, in pages of version 1.
        var definitionEncoding: Int32 = Encoding.rle.rawValue
        var repetitionEncoding: Int32 = Encoding.rle.rawValue
        /// Set in pages of version 2.
        var levels: LevelsV2?
    }

    /// What only pages of version 2 have: levels lie uncompressed before the values.
    struct LevelsV2 {
        var nullCount: Int
        var rowCount: Int
        var definitionByteCount: Int
        var repetitionByteCount: Int
        var isCompressed: Bool
    }

    /// Of one page, before compression and after.
    static let byteCountMax = 1 << 30
}

extension PageHeader {
    init(_ reader: inout CompactReader) throws(Malformed) {
        var type: Int32?
        var uncompressed: Int?
        var byteCount: Int?
        var kind: Kind?
        checksum = nil
        var last: Int16 = 0
        while let field = try reader.field(after: &last) {
            switch field.id {
            case 1: type = try reader.integer(field, Int32.self)
            case 2: uncompressed = try reader.integer(field, Int.self)
            case 3: byteCount = try reader.integer(field, Int.self)
            case 4: checksum = UInt32(bitPattern: try reader.integer(field, Int32.self))
            case 5 where field.type == .structure: kind = .data(try Self.dataPage(&reader))
            case 7 where field.type == .structure: kind = try Self.dictionary(&reader)
            case 8 where field.type == .structure: kind = .data(try Self.dataPageV2(&reader))
            default: try reader.skip(field)
            }
        }
        guard let type, let uncompressed, let byteCount else { throw .missing("page size") }
        for length in [uncompressed, byteCount] where length < 0 || length > Self.byteCountMax { throw .badLength(length) }
        switch PageType(rawValue: type) {
        case .data, .dataV2, .dictionary:
            guard let kind else { throw .missing("page header") }
            self.kind = kind
        case .index, nil: self.kind = .other
        }
        (uncompressedByteCount, self.byteCount) = (uncompressed, byteCount)
    }

    /// A number that counts something.
    private static func count(_ reader: inout CompactReader, _ field: CompactReader.Field) throws(Malformed) -> Int {
        let count = try reader.integer(field, Int32.self)
        guard count >= 0 else { throw .badLength(Int(count)) }
        return Int(count)
    }

    private static func dataPage(_ reader: inout CompactReader) throws(Malformed) -> DataPage {
        var page = DataPage(valueCount: -1, encoding: 0)
        var last: Int16 = 0
        while let field = try reader.field(after: &last) {
            switch field.id {
            case 1: page.valueCount = try count(&reader, field)
            case 2: page.encoding = try reader.integer(field, Int32.self)
            case 3: page.definitionEncoding = try reader.integer(field, Int32.self)
            case 4: page.repetitionEncoding = try reader.integer(field, Int32.self)
            default: try reader.skip(field)
            }
        }
        guard page.valueCount >= 0 else { throw .missing("num_values") }
        return page
    }

    private static func dictionary(_ reader: inout CompactReader) throws(Malformed) -> Kind {
        var valueCount = -1
        var encoding: Int32 = 0
        var last: Int16 = 0
        while let field = try reader.field(after: &last) {
            switch field.id {
            case 1: valueCount = try count(&reader, field)
            case 2: encoding = try reader.integer(field, Int32.self)
            default: try reader.skip(field)
            }
        }
        guard valueCount >= 0 else { throw .missing("num_values") }
        return .dictionary(valueCount: valueCount, encoding: encoding)
    }

    private static func dataPageV2(_ reader: inout CompactReader) throws(Malformed) -> DataPage {
        var page = DataPage(valueCount: -1, encoding: 0)
        var levels = LevelsV2(nullCount: 0, rowCount: 0, definitionByteCount: 0, repetitionByteCount: 0, isCompressed: true)
        var last: Int16 = 0
        while let field = try reader.field(after: &last) {
            switch field.id {
            case 1: page.valueCount = try count(&reader, field)
            case 2: levels.nullCount = try count(&reader, field)
            case 3: levels.rowCount = try count(&reader, field)
            case 4: page.encoding = try reader.integer(field, Int32.self)
            case 5: levels.definitionByteCount = try count(&reader, field)
            case 6: levels.repetitionByteCount = try count(&reader, field)
            case 7: levels.isCompressed = try reader.boolean(field)
            default: try reader.skip(field)
            }
        }
        guard page.valueCount >= 0 else { throw .missing("num_values") }
        page.levels = levels
        return page
    }

    func write(to out: OutputBytes) {
        var writer = CompactWriter(out)
        writer.element {
            $0.field(1, type.rawValue)
            $0.field(2, Int32(uncompressedByteCount))
            $0.field(3, Int32(byteCount))
            if let checksum { $0.field(4, Int32(bitPattern: checksum)) }
            switch kind {
            case .data(let page): page.write(to: &$0)
            case .dictionary(let valueCount, let encoding):
                $0.field(7) {
                    $0.field(1, Int32(valueCount))
                    $0.field(2, encoding)
                    $0.field(3, false)
                }
            case .other: break
            }
        }
    }

    private var type: PageType {
        switch kind {
        case .data(let page): page.levels == nil ? .data : .dataV2
        case .dictionary: .dictionary
        case .other: .index
        }
    }
}

extension PageHeader.DataPage {
    fileprivate func write(to writer: inout CompactWriter) {
        guard let levels else {
            writer.field(5) {
                $0.field(1, Int32(valueCount))
                $0.field(2, encoding)
                $0.field(3, definitionEncoding)
                $0.field(4, repetitionEncoding)
            }
            return
        }
        writer.field(8) {
            $0.field(1, Int32(valueCount))
            $0.field(2, Int32(levels.nullCount))
            $0.field(3, Int32(levels.rowCount))
            $0.field(4, encoding)
            $0.field(5, Int32(levels.definitionByteCount))
            $0.field(6, Int32(levels.repetitionByteCount))
            $0.field(7, levels.isCompressed)
        }
    }
}
