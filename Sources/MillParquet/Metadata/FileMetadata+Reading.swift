extension FileMetadata {
    init(_ bytes: UnsafeRawBufferPointer) throws(Malformed) {
        var reader = CompactReader(bytes)
        var version: Int32 = 1
        var schema: [SchemaElement]?
        var rowCount: Int64?
        var rowGroups: [RowGroupMetadata] = []
        var keyValues: [KeyValue] = []
        var createdBy: String?
        var orders: [Bool] = []
        var last: Int16 = 0
        while let field = try reader.field(after: &last) {
            switch (field.id, field.type) {
            case (1, .int32): version = try reader.int32()
            case (2, .list): schema = try reader.list(field, of: .structure) { (r) throws(Malformed) in try SchemaElement(&r) }
            case (3, .int64): rowCount = try reader.int64()
            case (4, .list): rowGroups = try reader.list(field, of: .structure) { (r) throws(Malformed) in try RowGroupMetadata(&r) }
            case (5, .list): keyValues = try reader.list(field, of: .structure) { (r) throws(Malformed) in try KeyValue(&r) }
            case (6, .binary): createdBy = try reader.string()
            case (7, .list): orders = try reader.list(field, of: .structure) { (r) throws(Malformed) in try Self.isTypeOrder(&r) }
            default: try reader.skip(field)
            }
        }
        guard let schema else { throw .missing("schema") }
        guard let rowCount else { throw .missing("num_rows") }
        guard rowCount >= 0 else { throw .badLength(Int(rowCount)) }
        self.init(
            version: version, schema: schema, rowCount: rowCount, rowGroups: rowGroups, keyValues: keyValues, createdBy: createdBy,
            orders: orders)
    }

    private static func isTypeOrder(_ reader: inout CompactReader) throws(Malformed) -> Bool {
        var isTypeOrder = false
        var last: Int16 = 0
        while let field = try reader.field(after: &last) {
            if field.id == 1 { isTypeOrder = true }
            try reader.skip(field)
        }
        return isTypeOrder
    }
}

extension SchemaElement {
    fileprivate init(_ reader: inout CompactReader) throws(Malformed) {
        self.init(name: "")
        var isNamed = false
        var last: Int16 = 0
        while let field = try reader.field(after: &last) {
            switch field.id {
            case 1:
                type = StoredType(rawValue: try reader.integer(field, Int32.self))
                guard type != nil else { throw .badSchema("a column has an unknown stored type") }
            case 2: typeLength = try reader.integer(field, Int.self)
            case 3:
                repetition = Repetition(rawValue: try reader.integer(field, Int32.self))
                guard repetition != nil else { throw .badSchema("a column has an unknown repetition") }
            case 4 where field.type == .binary:
                name = try reader.string()
                isNamed = true
            case 5: childCount = try reader.integer(field, Int.self)
            case 6: converted = ConvertedType(rawValue: try reader.integer(field, Int32.self))
            case 7: scale = try reader.integer(field, Int.self)
            case 8: precision = try reader.integer(field, Int.self)
            case 9: fieldID = try reader.integer(field, Int32.self)
            case 10 where field.type == .structure: logical = try LogicalType(&reader)
            default: try reader.skip(field)
            }
        }
        guard isNamed else { throw .missing("name") }
    }
}

extension KeyValue {
    fileprivate init(_ reader: inout CompactReader) throws(Malformed) {
        var key: String?
        var value: String?
        var last: Int16 = 0
        while let field = try reader.field(after: &last) {
            switch (field.id, field.type) {
            case (1, .binary): key = try reader.string()
            case (2, .binary): value = try reader.string()
            default: try reader.skip(field)
            }
        }
        guard let key else { throw .missing("key") }
        self.init(key, value)
    }
}

extension RowGroupMetadata {
    fileprivate init(_ reader: inout CompactReader) throws(Malformed) {
        var columns: [ColumnChunkMetadata]?
        var byteCount: Int64 = 0
        var rowCount: Int64?
        var fileOffset: Int64?
        var compressedByteCount: Int64?
        var ordinal: Int16?
        var last: Int16 = 0
        while let field = try reader.field(after: &last) {
            switch field.id {
            case 1: columns = try reader.list(field, of: .structure) { (r) throws(Malformed) in try ColumnChunkMetadata(&r) }
            case 2: byteCount = try reader.integer(field, Int64.self)
            case 3: rowCount = try reader.integer(field, Int64.self)
            case 5: fileOffset = try reader.integer(field, Int64.self)
            case 6: compressedByteCount = try reader.integer(field, Int64.self)
            case 7: ordinal = try reader.integer(field, Int16.self)
            default: try reader.skip(field)
            }
        }
        guard let columns else { throw .missing("columns") }
        guard let rowCount else { throw .missing("num_rows") }
        guard rowCount >= 0 else { throw .badLength(Int(rowCount)) }
        self.init(
            columns: columns, byteCount: byteCount, rowCount: rowCount, fileOffset: fileOffset, compressedByteCount: compressedByteCount,
            ordinal: ordinal)
    }
}

extension ColumnChunkMetadata {
    fileprivate init(_ reader: inout CompactReader) throws(Malformed) {
        var chunk: ColumnChunkMetadata?
        var filePath: String?
        var (offsetIndex, columnIndex) = (FileRange(offset: 0, length: 0), FileRange(offset: 0, length: 0))
        var isEncrypted = false
        var last: Int16 = 0
        while let field = try reader.field(after: &last) {
            switch field.id {
            case 1 where field.type == .binary: filePath = try reader.string()
            case 3 where field.type == .structure: chunk = try ColumnChunkMetadata(values: &reader)
            case 4: offsetIndex.offset = try reader.integer(field, Int64.self)
            case 5: offsetIndex.length = try reader.integer(field, Int32.self)
            case 6: columnIndex.offset = try reader.integer(field, Int64.self)
            case 7: columnIndex.length = try reader.integer(field, Int32.self)
            case 8:
                isEncrypted = true
                try reader.skip(field)
            default: try reader.skip(field)
            }
        }
        guard var chunk else { throw .missing("meta_data") }
        chunk.filePath = filePath
        chunk.offsetIndex = offsetIndex.length > 0 ? offsetIndex : nil
        chunk.columnIndex = columnIndex.length > 0 ? columnIndex : nil
        chunk.isEncrypted = isEncrypted
        self = chunk
    }

    private init(values reader: inout CompactReader) throws(Malformed) {
        var type: StoredType?
        var dataPageOffset: Int64?
        var valueCount: Int64?
        var codec: Int32 = 0
        self.init(
            type: .boolean, encodings: [], path: [], codec: 0, valueCount: 0, uncompressedByteCount: 0, compressedByteCount: -1,
            dataPageOffset: 0)
        var last: Int16 = 0
        while let field = try reader.field(after: &last) {
            switch field.id {
            case 1: type = StoredType(rawValue: try reader.integer(field, Int32.self))
            case 2: encodings = try reader.list(field, of: .int32) { (r) throws(Malformed) in try r.int32() }
            case 3: path = try reader.list(field, of: .binary) { (r) throws(Malformed) in try r.string() }
            case 4: codec = try reader.integer(field, Int32.self)
            case 5: valueCount = try reader.integer(field, Int64.self)
            case 6: uncompressedByteCount = try reader.integer(field, Int64.self)
            case 7: compressedByteCount = try reader.integer(field, Int64.self)
            case 9: dataPageOffset = try reader.integer(field, Int64.self)
            case 11: dictionaryPageOffset = try reader.integer(field, Int64.self)
            case 12 where field.type == .structure: statistics = try ColumnStatistics(&reader)
            default: try reader.skip(field)
            }
        }
        guard let type else { throw .missing("type") }
        guard let valueCount, let dataPageOffset, compressedByteCount >= 0 else { throw .missing("num_values") }
        guard valueCount >= 0, dataPageOffset >= 0 else { throw .badLength(Int(min(valueCount, dataPageOffset))) }
        (self.type, self.valueCount, self.codec, self.dataPageOffset) = (type, valueCount, codec, dataPageOffset)
    }
}

extension ColumnStatistics {
    init(_ reader: inout CompactReader) throws(Malformed) {
        self.init()
        var last: Int16 = 0
        while let field = try reader.field(after: &last) {
            switch (field.id, field.type) {
            case (1, .binary): signedMax = try reader.binary()
            case (2, .binary): signedMin = try reader.binary()
            case (3, .int64): nullCount = try reader.int64()
            case (5, .binary): max = try reader.binary()
            case (6, .binary): min = try reader.binary()
            case (7, .booleanTrue), (7, .booleanFalse): isMaxExact = try reader.boolean(field)
            case (8, .booleanTrue), (8, .booleanFalse): isMinExact = try reader.boolean(field)
            default: try reader.skip(field)
            }
        }
    }
}
