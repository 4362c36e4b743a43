/// The index of a column chunk's pages: what bounds their values have, and where they lie.

struct ColumnIndex {
    /// Pages that hold nothing but NULL, and so have no bounds.
    var nullPages: [Bool]  // 1
    var mins: [[UInt8]]  // 2
    var maxes: [[UInt8]]  // 3
    var order: BoundaryOrder  // 4
    var nullCounts: [Int64]?  // 5
}

struct OffsetIndex {
    var pages: [PageLocation]  // 1
}

struct PageLocation: Hashable {
    var offset: Int64  // 1, of the page's header
    var byteCount: Int32  // 2, header and all
    var firstRow: Int64  // 3, in the row group
}

extension ColumnIndex {
    init(_ bytes: UnsafeRawBufferPointer) throws(Malformed) {
        var reader = CompactReader(bytes)
        self.init(nullPages: [], mins: [], maxes: [], order: .unordered)
        var last: Int16 = 0
        while let field = try reader.field(after: &last) {
            switch field.id {
            case 1: nullPages = try reader.booleans(field)
            case 2: mins = try reader.list(field, of: .binary) { (r) throws(Malformed) in try r.binary() }
            case 3: maxes = try reader.list(field, of: .binary) { (r) throws(Malformed) in try r.binary() }
            case 4: order = BoundaryOrder(rawValue: try reader.integer(field, Int32.self)) ?? .unordered
            case 5: nullCounts = try reader.list(field, of: .int64) { (r) throws(Malformed) in try r.int64() }
            default: try reader.skip(field)
            }
        }
        guard mins.count == nullPages.count, maxes.count == nullPages.count, nullCounts.map({ $0.count == nullPages.count }) ?? true else {
            throw .badSchema("the lists of a column index differ in length")
        }
    }

    func write(to out: OutputBytes) {
        var writer = CompactWriter(out)
        writer.element {
            $0.field(1, list: nullPages, of: .booleanTrue) { $0.out.append($1 ? 1 : 2) }
            $0.field(2, list: mins, of: .binary) { $0.append($1) }
            $0.field(3, list: maxes, of: .binary) { $0.append($1) }
            $0.field(4, order.rawValue)
            if let nullCounts { $0.field(5, list: nullCounts, of: .int64) { $0.out.appendZigzag($1) } }
        }
    }
}

extension OffsetIndex {
    /// - Throws: when there are no pages, or they do not follow each other in the file and in the rows.
    init(_ bytes: UnsafeRawBufferPointer) throws(Malformed) {
        var reader = CompactReader(bytes)
        self.init(pages: [])
        var last: Int16 = 0
        while let field = try reader.field(after: &last) {
            switch field.id {
            case 1: pages = try reader.list(field, of: .structure) { (r) throws(Malformed) in try PageLocation(&r) }
            default: try reader.skip(field)
            }
        }
        guard !pages.isEmpty else { throw .badSchema("an offset index has no pages") }
        for (index, page) in pages.enumerated() {
            let before = index == 0 ? nil : pages[index - 1]
            guard page.byteCount > 0, page.offset >= (before.map { $0.offset &+ Int64($0.byteCount) } ?? 4),
                page.firstRow >= before?.firstRow ?? 0, index > 0 || page.firstRow == 0
            else { throw .badSchema("the pages of an offset index do not follow each other") }
        }
    }

    func write(to out: OutputBytes) {
        var writer = CompactWriter(out)
        writer.element {
            $0.field(1, list: pages, of: .structure) { writer, page in
                writer.element {
                    $0.field(1, page.offset)
                    $0.field(2, page.byteCount)
                    $0.field(3, page.firstRow)
                }
            }
        }
    }
}

extension PageLocation {
    fileprivate init(_ reader: inout CompactReader) throws(Malformed) {
        self.init(offset: -1, byteCount: -1, firstRow: -1)
        var last: Int16 = 0
        while let field = try reader.field(after: &last) {
            switch field.id {
            case 1: offset = try reader.integer(field, Int64.self)
            case 2: byteCount = try reader.integer(field, Int32.self)
            case 3: firstRow = try reader.integer(field, Int64.self)
            default: try reader.skip(field)
            }
        }
    }
}
