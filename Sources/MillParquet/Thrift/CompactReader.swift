/// Reads Thrift's compact protocol from bytes of unknown origin: nothing is reserved for a length before its bytes are seen to be there,
/// unknown fields are skipped to a bounded depth.
///
/// A structure is read by a loop over `field(after:)`, whose caller takes the value or has it skipped.
struct CompactReader {
    struct Field {
        var id: Int16
        var type: CompactType
    }

    private(set) var input: InputBytes

    /// Nesting of what is skipped.
    private static let depthMax = 32
    /// What the protocol's lengths may be. More than there is of bytes means that these are cut short: of a page's header, whose length
    /// nobody says, there may be more in the file.
    private static let lengthMax = Int(Int32.max)

    init(_ bytes: UnsafeRawBufferPointer) { input = InputBytes(bytes) }

    var position: Int { input.position }

    /// The next field of a structure whose last field was `id`, which becomes the new one's; nil at its end.
    mutating func field(after id: inout Int16) throws(Malformed) -> Field? {
        let byte = try input.byte()
        if byte == 0 { return nil }
        let type = try type(byte & 0x0F)
        if byte >> 4 == 0 {
            guard let number = Int16(exactly: try input.zigzag()) else { throw .valueOutOfRange }
            id = number
        } else {
            let (number, overflow) = id.addingReportingOverflow(Int16(byte >> 4))
            guard !overflow else { throw .valueOutOfRange }
            id = number
        }
        return Field(id: id, type: type)
    }

    private func type(_ raw: UInt8) throws(Malformed) -> CompactType {
        guard let type = CompactType(rawValue: raw) else { throw .badSchema("its metadata holds an unknown kind of value") }
        return type
    }

    mutating func int32() throws(Malformed) -> Int32 {
        guard let value = Int32(exactly: try input.zigzag()) else { throw .valueOutOfRange }
        return value
    }

    mutating func int64() throws(Malformed) -> Int64 { try input.zigzag() }

    /// An integer field of any width, as long as the value fits `T`.
    mutating func integer<T: FixedWidthInteger>(_ field: Field, _: T.Type) throws(Malformed) -> T {
        let value: Int64 =
            switch field.type {
            case .int8: Int64(Int8(bitPattern: try input.byte()))
            case .int16, .int32, .int64: try input.zigzag()
            default: throw .badSchema("its metadata has another kind of value where a number belongs")
            }
        guard let value = T(exactly: value) else { throw .valueOutOfRange }
        return value
    }

    func boolean(_ field: Field) throws(Malformed) -> Bool {
        switch field.type {
        case .booleanTrue: true
        case .booleanFalse: false
        default: throw .badSchema("its metadata has another kind of value where a boolean belongs")
        }
    }

    mutating func binary() throws(Malformed) -> [UInt8] { Array(try bytes()) }

    private mutating func bytes() throws(Malformed) -> UnsafeRawBufferPointer {
        let length = try input.length(atMost: Self.lengthMax)
        return try input.take(length)
    }

    mutating func string() throws(Malformed) -> String { String(decoding: try bytes(), as: UTF8.self) }

    /// The number of a list's elements, each of which takes at least a byte, and their type.
    mutating func list() throws(Malformed) -> (count: Int, type: CompactType) {
        let byte = try input.byte()
        if byte >> 4 == 0 { return (0, .structure) }
        let type = try type(byte & 0x0F)
        let count = byte >> 4 < 15 ? Int(byte >> 4) : try input.length(atMost: Self.lengthMax)
        guard count <= input.remaining else { throw .cutShort }
        return (count, type)
    }

    /// The elements of a list of `expected`.
    mutating func list<T>(
        _ field: Field, of expected: CompactType, _ read: (inout CompactReader) throws(Malformed) -> T
    ) throws(Malformed) -> [T] {
        guard field.type == .list else { throw .badSchema("its metadata has another kind of value where a list belongs") }
        let (count, type) = try list()
        guard type == expected || count == 0 else { throw .badSchema("its metadata has a list of the wrong kind") }
        var result: [T] = []
        for _ in 0..<count { result.append(try read(&self)) }
        return result
    }

    /// The booleans of a list, a byte each: 1 is true, 2 or 0 false.
    mutating func booleans(_ field: Field) throws(Malformed) -> [Bool] {
        guard field.type == .list else { throw .badSchema("its metadata has another kind of value where a list belongs") }
        let (count, type) = try list()
        guard type == .booleanTrue || type == .booleanFalse || count == 0 else {
            throw .badSchema("its metadata has a list of the wrong kind")
        }
        return try input.take(count).map { $0 == 1 }
    }

    mutating func skip(_ field: Field) throws(Malformed) { try skip(field.type, depth: 0, inContainer: false) }

    private mutating func skip(_ type: CompactType, depth: Int, inContainer: Bool) throws(Malformed) {
        guard depth < Self.depthMax else { throw .nestedTooDeep }
        switch type {
        case .booleanTrue, .booleanFalse: if inContainer { _ = try input.byte() }
        case .int8: _ = try input.byte()
        case .int16, .int32, .int64: _ = try input.varint()
        case .double: _ = try input.take(8)
        case .uuid: _ = try input.take(16)
        case .binary: _ = try bytes()
        case .list, .set:
            let (count, type) = try list()
            for _ in 0..<count { try skip(type, depth: depth + 1, inContainer: true) }
        case .map:
            let count = try input.length(atMost: Self.lengthMax)
            guard count > 0 else { return }
            let types = try input.byte()
            let (key, value) = (try self.type(types >> 4), try self.type(types & 0x0F))
            for _ in 0..<count {
                try skip(key, depth: depth + 1, inContainer: true)
                try skip(value, depth: depth + 1, inContainer: true)
            }
        case .structure:
            var id: Int16 = 0
            while let field = try field(after: &id) { try skip(field.type, depth: depth + 1, inContainer: false) }
        }
    }
}
