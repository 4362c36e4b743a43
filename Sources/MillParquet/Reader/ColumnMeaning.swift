import MillColumnar

/// What SQL type a column of a file is read as, and what has to be done to its stored values.
struct ColumnMeaning: Hashable {
    var type: SQLType
    var conversion: ValueConversion
    /// Whether the bounds that files keep follow the order of the SQL type.
    var hasOrderedBounds = true

    /// - Throws: what we cannot read, in words.
    init(_ leaf: SchemaLeaf) throws(UnreadableType) {
        switch (leaf.type, leaf.logical) {
        case (.boolean, nil): self.init(.boolean, .none)
        case (_, .unknown): self.init(.varchar, .onlyNull, ordered: false)
        case (.int32, nil), (.int32, .integer(32, true)): self.init(.int32, .none)
        case (.int32, .integer(let bits, let signed)): try self.init(integer: bits, signed)
        case (.int32, .date): self.init(.date, .date)
        case (.int32, .time(.millis, _)): self.init(.time, .timeMillis)
        case (.int64, nil), (.int64, .integer(_, true)): self.init(.int64, .none)
        case (.int64, .integer(_, false)): self.init(.numeric(precision: 20, scale: 0), .unsigned64, ordered: false)
        case (.int64, .time(.micros, _)): self.init(.time, .timeMicros)
        case (.int64, .time(.nanos, _)): self.init(.time, .timeNanos)
        case (.int64, .timestamp(let unit, let utc)): self.init(utc ? .timestamptz : .timestamp, Self.timestamp(unit))
        case (.int96, _): self.init(.timestamp, .int96, ordered: false)
        case (.float, nil): self.init(.float32, .none)
        case (.double, nil): self.init(.float64, .none)
        case (.byteArray, .string), (.byteArray, .enumeration): self.init(.varchar, .text)
        case (.byteArray, .json): self.init(.jsonb, .json, ordered: false)
        case (.byteArray, nil), (.byteArray, .bson), (.fixedBytes, nil): self.init(.bytea, .none)
        case (.fixedBytes, .uuid) where leaf.length == 16: self.init(.varchar, .uuid)
        case (.fixedBytes, .float16) where leaf.length == 2: self.init(.float32, .float16, ordered: false)
        case (.fixedBytes, .interval) where leaf.length == 12: self.init(.interval, .interval, ordered: false)
        case (let stored, .decimal(let precision, let scale)): try self.init(decimal: precision, scale, stored)
        default: throw UnreadableType("its type has no counterpart in SQL")
        }
    }

    private init(_ type: SQLType, _ conversion: ValueConversion, ordered: Bool = true) {
        (self.type, self.conversion, hasOrderedBounds) = (type, conversion, ordered)
    }

    private init(integer bits: Int, _ signed: Bool) throws(UnreadableType) {
        switch (bits, signed) {
        case (8, _), (16, true): self.init(.int16, .int32To16)
        case (16, false): self.init(.int32, .none)
        case (32, false): self.init(.int64, .unsigned32, ordered: false)
        default: throw UnreadableType("it has integers of \(bits) bits in 32")
        }
    }

    private init(decimal precision: Int, _ scale: Int, _ stored: StoredType) throws(UnreadableType) {
        guard precision > 0, (0...precision).contains(scale) else { throw UnreadableType("decimal(\(precision),\(scale)) is not a type") }
        guard precision <= 38 else { throw UnreadableType("a decimal of \(precision) digits has more than 38") }
        let type = SQLType.numeric(precision: precision, scale: scale)
        switch stored {
        case .int32: self.init(type, .decimal32(scale: Int32(scale)))
        case .int64: self.init(type, .decimal64(scale: Int32(scale)))
        // Bounds of other lengths than the values' are left alone.
        case .byteArray: self.init(type, .decimalBytes(scale: Int32(scale)), ordered: false)
        case .fixedBytes: self.init(type, .decimalBytes(scale: Int32(scale)))
        default: throw UnreadableType("its type has no counterpart in SQL")
        }
    }

    private static func timestamp(_ unit: LogicalType.TimeUnit) -> ValueConversion {
        switch unit {
        case .millis: .timestampMillis
        case .micros: .timestampMicros
        case .nanos: .timestampNanos
        }
    }

    /// The same column read as a wider type.
    /// - Throws: when the values could not be kept.
    func widened(to wanted: SQLType) throws(UnreadableType) -> ColumnMeaning {
        if wanted == type { return self }
        switch (type, wanted, conversion) {
        case (.int16, .int32, .int32To16): return ColumnMeaning(.int32, .none)
        case (.int16, .int64, .int32To16), (.int32, .int64, .none): return ColumnMeaning(.int64, .int32To64)
        case (.float32, .float64, .none): return ColumnMeaning(.float64, .floatToDouble)
        case (.timestamp, .timestamptz, .int96): return ColumnMeaning(.timestamptz, .int96, ordered: false)
        // Texts from before texts were marked as such.
        case (.bytea, .varchar, .none): return ColumnMeaning(.varchar, .text)
        case (.varchar, .jsonb, .text), (.bytea, .jsonb, .none): return ColumnMeaning(.jsonb, .json, ordered: false)
        case (.numeric(let precision?, let scale?), .numeric(let wider, let wantedScale), _)
        where wider.map { $0 >= precision && wantedScale ?? 0 == scale } ?? true:
            var copy = self
            copy.type = wanted
            return copy
        default: throw UnreadableType("it is \(type.name), which cannot be read as \(wanted.name)")
        }
    }
}

/// Why a column cannot be read.
struct UnreadableType: Error {
    let reason: String
    init(_ reason: String) { self.reason = reason }
}
