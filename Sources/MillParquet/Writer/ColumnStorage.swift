import MillColumnar

/// How the values of a SQL type lie in a file that we write.
///
/// | SQL | stored | meaning |
/// |---|---|---|
/// | boolean | BOOLEAN | |
/// | smallint, integer, bigint | INT32, INT32, INT64 | INTEGER(16) for the first |
/// | real, double precision | FLOAT, DOUBLE | |
/// | numeric(p,s) | INT32 to 9 digits, INT64 to 18, then the fewest bytes that hold p digits | DECIMAL |
/// | varchar, interval as text | BYTE_ARRAY | STRING |
/// | bytea | BYTE_ARRAY | |
/// | jsonb | BYTE_ARRAY | JSON |
/// | date, time | INT32, INT64 | DATE, TIME(MICROS, local) |
/// | timestamp, timestamptz | INT64 | TIMESTAMP(MICROS), local or UTC |
///
/// The format's own INTERVAL holds neither microseconds nor anything below zero: text loses nothing.
struct ColumnStorage {
    enum Form: Equatable {
        case boolean
        case int32
        case int64
        case float
        case double
        case bytes
        case fixed(Int)
    }

    /// What comparing stored values means; nil when readers do not agree on it.
    enum Order {
        case numbers
        /// Bytes, lowest first; texts among them, whose bounds have to stay texts.
        case bytes(isText: Bool)
        /// Two's complement, highest byte first.
        case decimalBytes
    }

    var form: Form
    var logical: LogicalType?
    var order: Order?
    var isInt96 = false
    /// Of a decimal.
    var digits: (precision: Int, scale: Int)?

    init(_ column: ParquetColumn, _ options: ParquetWriterOptions) {
        switch column.form {
        case .plain: self.init(column.type, options)
        case .uuid: self.init(.fixed(16), .uuid, .bytes(isText: false))
        case .fixed(let length): self.init(.fixed(length), nil, .bytes(isText: false))
        }
    }

    init(_ type: SQLType, _ options: ParquetWriterOptions) {
        switch type {
        case .boolean: self.init(.boolean, nil, .numbers)
        case .int16: self.init(.int32, .integer(bits: 16, signed: true), .numbers)
        case .int32: self.init(.int32, nil, .numbers)
        case .int64: self.init(.int64, nil, .numbers)
        case .float32: self.init(.float, nil, .numbers)
        case .float64: self.init(.double, nil, .numbers)
        case .numeric(let precision, let scale):
            let digits = precision.map { ($0, scale ?? 0) } ?? options.unconstrainedNumeric
            self.init(decimal: digits, asBytes: options.writesDecimalsAsBytes)
        case .varchar, .interval, .unknown: self.init(.bytes, .string, .bytes(isText: true))
        case .bytea: self.init(.bytes, nil, .bytes(isText: false))
        case .jsonb: self.init(.bytes, .json, .bytes(isText: true))
        case .date: self.init(.int32, .date, .numbers)
        case .time: self.init(.int64, .time(.micros, utc: false), .numbers)
        case .timestamp, .timestamptz:
            if options.writesTimestampsAsInt96 {
                self.init(.fixed(Int96.byteCount), nil, nil)
                isInt96 = true
            } else {
                self.init(.int64, .timestamp(.micros, utc: type == .timestamptz), .numbers)
            }
        }
    }

    private init(_ form: Form, _ logical: LogicalType?, _ order: Order?) {
        (self.form, self.logical, self.order) = (form, logical, order)
    }

    private init(decimal digits: (precision: Int, scale: Int), asBytes: Bool) {
        let logical = LogicalType.decimal(precision: digits.precision, scale: digits.scale)
        switch digits.precision {
        case ...9 where !asBytes: self.init(.int32, logical, .numbers)
        case ...18 where !asBytes: self.init(.int64, logical, .numbers)
        default: self.init(.fixed(Self.byteCount(digits: digits.precision)), logical, .decimalBytes)
        }
        self.digits = digits
    }

    /// The fewest bytes that hold any number of so many digits, and its sign.
    static func byteCount(digits: Int) -> Int {
        let largest = Decimal.powerOfTen(Int32(digits)) - 1
        return (128 - largest.leadingZeroBitCount + 1 + 7) / 8
    }

    var type: StoredType {
        switch form {
        case .boolean: .boolean
        case .int32: .int32
        case .int64: .int64
        case .float: .float
        case .double: .double
        case .bytes: .byteArray
        case .fixed: isInt96 ? .int96 : .fixedBytes
        }
    }

    /// Bytes of a value in memory here.
    var stride: Int {
        switch form {
        case .boolean: 1
        case .int32, .float: 4
        case .int64, .double: 8
        case .bytes, .fixed: MemoryLayout<StringView>.stride
        }
    }

    var isBytes: Bool {
        switch form {
        case .bytes, .fixed: true
        default: false
        }
    }

    func element(_ column: ParquetColumn) -> SchemaElement {
        var element = SchemaElement(type: type, repetition: column.isRequired ? .required : .optional, name: column.name)
        if case .fixed(let length) = form, !isInt96 { element.typeLength = length }
        element.converted = logical?.converted
        element.logical = logical
        if let digits { (element.precision, element.scale) = (digits.precision, digits.scale) }
        element.fieldID = column.fieldID
        return element
    }
}
