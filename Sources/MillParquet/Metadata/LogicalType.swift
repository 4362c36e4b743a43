/// What the stored values of a column mean.
package enum LogicalType: Hashable, Sendable {
    case string
    case map
    case list
    case enumeration
    case decimal(precision: Int, scale: Int)
    case date
    case time(TimeUnit, utc: Bool)
    case timestamp(TimeUnit, utc: Bool)
    case integer(bits: Int, signed: Bool)
    /// Nothing but NULL is in the column.
    case unknown
    case json
    case bson
    case uuid
    case float16
    /// Months, days and milliseconds; only the older names have it.
    case interval
    /// One that is not listed here: the column's values mean what their stored type says to nobody.
    case other(Int16)

    package enum TimeUnit: Int16, Sendable {
        case millis = 1
        case micros = 2
        case nanos = 3
    }

    /// The meaning by the older name.
    init?(_ converted: ConvertedType, precision: Int?, scale: Int?) {
        switch converted {
        case .utf8: self = .string
        case .map, .mapKeyValue: self = .map
        case .list: self = .list
        case .enumeration: self = .enumeration
        case .decimal:
            guard let precision else { return nil }
            self = .decimal(precision: precision, scale: scale ?? 0)
        case .date: self = .date
        case .timeMillis: self = .time(.millis, utc: true)
        case .timeMicros: self = .time(.micros, utc: true)
        case .timestampMillis: self = .timestamp(.millis, utc: true)
        case .timestampMicros: self = .timestamp(.micros, utc: true)
        case .uint8: self = .integer(bits: 8, signed: false)
        case .uint16: self = .integer(bits: 16, signed: false)
        case .uint32: self = .integer(bits: 32, signed: false)
        case .uint64: self = .integer(bits: 64, signed: false)
        case .int8: self = .integer(bits: 8, signed: true)
        case .int16: self = .integer(bits: 16, signed: true)
        case .int32: self = .integer(bits: 32, signed: true)
        case .int64: self = .integer(bits: 64, signed: true)
        case .json: self = .json
        case .bson: self = .bson
        case .interval: self = .interval
        }
    }

    /// The older name, where there is one.
    var converted: ConvertedType? {
        switch self {
        case .string: .utf8
        case .map: .map
        case .list: .list
        case .enumeration: .enumeration
        case .decimal: .decimal
        case .date: .date
        case .time(.millis, _): .timeMillis
        case .time(.micros, _): .timeMicros
        case .timestamp(.millis, _): .timestampMillis
        case .timestamp(.micros, _): .timestampMicros
        case .integer(8, let signed): signed ? .int8 : .uint8
        case .integer(16, let signed): signed ? .int16 : .uint16
        case .integer(32, let signed): signed ? .int32 : .uint32
        case .integer(64, let signed): signed ? .int64 : .uint64
        case .json: .json
        case .bson: .bson
        case .interval: .interval
        case .time, .timestamp, .integer, .unknown, .uuid, .float16, .other: nil
        }
    }
}

extension LogicalType {
    /// Reads the union of parquet.thrift; nil for one without a member.
    init?(_ reader: inout CompactReader) throws(Malformed) {
        var result: LogicalType?
        var last: Int16 = 0
        while let field = try reader.field(after: &last) {
            guard field.type == .structure else { throw .badSchema("a logical type is not a structure") }
            switch field.id {
            case 1: result = .string
            case 2: result = .map
            case 3: result = .list
            case 4: result = .enumeration
            case 5:
                result = try Self.decimal(&reader)
                continue
            case 6: result = .date
            case 7, 8:
                let (unit, utc) = try Self.unit(&reader)
                result = field.id == 7 ? .time(unit, utc: utc) : .timestamp(unit, utc: utc)
                continue
            case 10:
                result = try Self.integer(&reader)
                continue
            case 11: result = .unknown
            case 12: result = .json
            case 13: result = .bson
            case 14: result = .uuid
            case 15: result = .float16
            default: result = .other(field.id)
            }
            try reader.skip(field)
        }
        guard let result else { return nil }
        self = result
    }

    private static func decimal(_ reader: inout CompactReader) throws(Malformed) -> LogicalType {
        var (precision, scale) = (0, 0)
        var last: Int16 = 0
        while let field = try reader.field(after: &last) {
            switch field.id {
            case 1: scale = try reader.integer(field, Int.self)
            case 2: precision = try reader.integer(field, Int.self)
            default: try reader.skip(field)
            }
        }
        return .decimal(precision: precision, scale: scale)
    }

    private static func unit(_ reader: inout CompactReader) throws(Malformed) -> (TimeUnit, utc: Bool) {
        var utc = false
        var unit: TimeUnit?
        var last: Int16 = 0
        while let field = try reader.field(after: &last) {
            switch (field.id, field.type) {
            case (1, _): utc = try reader.boolean(field)
            case (2, .structure):
                var inner: Int16 = 0
                while let member = try reader.field(after: &inner) {
                    unit = TimeUnit(rawValue: member.id)
                    try reader.skip(member)
                }
            default: try reader.skip(field)
            }
        }
        guard let unit else { throw .badSchema("a time has an unknown unit") }
        return (unit, utc)
    }

    private static func integer(_ reader: inout CompactReader) throws(Malformed) -> LogicalType {
        var bits = 0
        var signed = true
        var last: Int16 = 0
        while let field = try reader.field(after: &last) {
            switch field.id {
            case 1: bits = try reader.integer(field, Int.self)
            case 2: signed = try reader.boolean(field)
            default: try reader.skip(field)
            }
        }
        guard [8, 16, 32, 64].contains(bits) else { throw .badSchema("an integer has \(bits) bits") }
        return .integer(bits: bits, signed: signed)
    }

    func write(to writer: inout CompactWriter) {
        let empty: (inout CompactWriter) -> Void = { _ in }
        switch self {
        case .string: writer.field(1, empty)
        case .map: writer.field(2, empty)
        case .list: writer.field(3, empty)
        case .enumeration: writer.field(4, empty)
        case .decimal(let precision, let scale):
            writer.field(5) {
                $0.field(1, Int32(scale))
                $0.field(2, Int32(precision))
            }
        case .date: writer.field(6, empty)
        case .time(let unit, let utc): writer.field(7) { unit.write(to: &$0, utc: utc) }
        case .timestamp(let unit, let utc): writer.field(8) { unit.write(to: &$0, utc: utc) }
        case .integer(let bits, let signed):
            writer.field(10) {
                $0.field(1, byte: Int8(bits))
                $0.field(2, signed)
            }
        case .unknown: writer.field(11, empty)
        case .json: writer.field(12, empty)
        case .bson: writer.field(13, empty)
        case .uuid: writer.field(14, empty)
        case .float16: writer.field(15, empty)
        case .interval, .other: break
        }
    }
}

extension LogicalType.TimeUnit {
    fileprivate func write(to writer: inout CompactWriter, utc: Bool) {
        writer.field(1, utc)
        writer.field(2) { $0.field(rawValue) { _ in } }
    }
}
