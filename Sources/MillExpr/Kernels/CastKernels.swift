import MillBase
import MillColumnar

/// Conversions between types, with PostgreSQL's rounding: floats to integers half to even, numeric to integers half away
/// from zero, dates to midnight, timestamps with and without zone as UTC.
enum CastKernels {
    static func make(from: SQLType, to: SQLType) throws(SQLError) -> Kernel {
        if from == to || (from.isNumeric && to == .numeric) || (from == .unknown && to == .varchar) { return relabeled(to) }
        if to == .varchar { return toText(from) }
        if from == .varchar || from == .unknown { return parse(to) }
        if from.isNumber || from == .boolean, let kernel = number(from, to) { return kernel }
        if let kernel = time(from, to) ?? json(from, to) { return kernel }
        throw SQLError(.cannotCoerce, "cannot cast type \(from.name) to \(to.name)")
    }

    /// The same bytes under another type.
    private static func relabeled(_ type: SQLType) -> Kernel {
        { columns, count, _ in
            let column = columns[0]
            if column.type == type { return column }
            let result = Column(type, uninitialized: count)
            result.data.copyMemory(from: column.data, byteCount: count * type.physical.stride)
            result.keep(column.heaps)
            Loops.inheritNulls(result, column)
            return result
        }
    }

    private static func toText(_ from: SQLType) -> Kernel {
        switch from {
        case .jsonb: return relabeled(.varchar)
        case .boolean:
            let yes = StringView(StaticBytes.true, count: 4)
            let no = StringView(StaticBytes.false, count: 5)
            return { columns, _, _ in Loops.unary(columns[0], .varchar) { (a: UInt8) in a != 0 ? yes : no } }
        default:
            return { columns, count, frame in
                let column = columns[0]
                return Loops.text(columns, count, .varchar, frame) { row, out in
                    column.appendText(row: row, to: &out)
                    return true
                }
            }
        }
    }

    private enum StaticBytes {
        static var `true`: UnsafePointer<UInt8> { ("true" as StaticString).utf8Start }
        static var `false`: UnsafePointer<UInt8> { ("false" as StaticString).utf8Start }
    }

    private static func parse(_ type: SQLType) -> Kernel {
        if type == .timestamp || type == .timestamptz { return parseTimestamps(type) }
        return { columns, count, frame in
            let result = Column(type, capacity: count)
            let input = UnsafePointer(columns[0].values(StringView.self))
            for row in 0..<count {
                if columns[0].isNull(row) {
                    result.appendNull()
                    continue
                }
                do throws(SQLError) {
                    try input[row].withBytes { (bytes) throws(SQLError) in try TextInput.parse(bytes, as: type, into: result) }
                } catch {
                    frame.errors.add(row, error)
                    result.appendNull()
                }
            }
            return result
        }
    }

    /// The column remembers its last day; see `TimestampParser`.
    private static func parseTimestamps(_ type: SQLType) -> Kernel {
        { columns, count, frame in
            var parser = TimestampParser()
            return Loops.tryUnary(columns, count, type, frame) { (view: StringView) throws(SQLError) -> Int64? in
                try view.withBytes { (bytes) throws(SQLError) -> Int64 in
                    if let micros = parser.parse(bytes) { return micros }
                    return type == .timestamp ? try TextInput.timestamp(bytes) : try TextInput.timestamptz(bytes)
                }
            }
        }
    }

    // MARK: Numbers

    private static func number(_ from: SQLType, _ to: SQLType) -> Kernel? {
        switch from.base {
        case .int16: return integer(Int16.self, to)
        case .int32: return integer(Int32.self, to)
        case .int64: return integer(Int64.self, to)
        case .float32: return float(Float.self, to, significantDigits: 6)
        case .float64: return float(Double.self, to, significantDigits: 15)
        case .boolean:
            return to == .int32 ? { columns, _, _ in Loops.unary(columns[0], .int32) { (a: UInt8) in Int32(a) } } : nil
        default: return decimal(to)
        }
    }

    @inline(__always)
    private static func integer<T: FixedWidthInteger & SignedInteger & BitwiseCopyable>(_: T.Type, _ to: SQLType) -> Kernel? {
        switch to {
        case .int16: return narrowed(T.self, Int16.self, to)
        case .int32: return narrowed(T.self, Int32.self, to)
        case .int64: return { columns, _, _ in Loops.unary(columns[0], to) { (a: T) in Int64(a) } }
        case .float32: return { columns, _, _ in Loops.unary(columns[0], to) { (a: T) in Float(a) } }
        case .float64: return { columns, _, _ in Loops.unary(columns[0], to) { (a: T) in Double(a) } }
        case .numeric(nil, _): return { columns, _, _ in Loops.unary(columns[0], to) { (a: T) in Decimal(Int64(a)) } }
        case .numeric(let precision?, let scale):
            return { columns, count, frame in
                Loops.tryUnary(columns, count, to, frame) { (a: T) throws(SQLError) in try Decimal(Int64(a)).constrained(precision: precision, scale: scale ?? 0) }
            }
        case .boolean: return { columns, _, _ in Loops.unary(columns[0], to) { (a: T) -> UInt8 in a != 0 ? 1 : 0 } }
        default: return nil
        }
    }

    @inline(__always)
    private static func narrowed<T: FixedWidthInteger, R: FixedWidthInteger>(_: T.Type, _: R.Type, _ to: SQLType) -> Kernel {
        { columns, _, frame in
            Loops.checkedUnary(columns[0], to, frame) { (a: T) in
                let value = R(truncatingIfNeeded: a)
                return (value, T(truncatingIfNeeded: value) != a)
            } _: { _ in ArithmeticKernels.outOfRange(to) }
        }
    }

    @inline(__always)
    private static func float<T: BinaryFloatingPoint & BitwiseCopyable>(_: T.Type, _ to: SQLType, significantDigits: Int) -> Kernel? {
        switch to {
        case .int16: return whole(T.self, Int16.self, to)
        case .int32: return whole(T.self, Int32.self, to)
        case .int64: return whole(T.self, Int64.self, to)
        case .float64: return { columns, _, _ in Loops.unary(columns[0], to) { (a: T) in Double(a) } }
        case .float32:
            return { columns, _, frame in
                Loops.checkedUnary(columns[0], to, frame) { (a: T) in
                    let value = Float(a)
                    return (value, (value.isInfinite && a.isFinite) || (value == 0 && a != 0))
                } _: { Float($0).isInfinite ? ArithmeticKernels.overflow : ArithmeticKernels.underflow }
            }
        case .numeric(let precision, let scale):
            return { columns, count, frame in
                Loops.tryUnary(columns, count, to, frame) { (a: T) throws(SQLError) -> Decimal? in
                    // A real's own shortest digits, not those of the double that it becomes.
                    let value = try T.self == Float.self ? Decimal(Double(Float(a).description) ?? .nan, significantDigits: significantDigits)
                        : Decimal(Double(a), significantDigits: significantDigits)
                    guard let precision else { return value }
                    return try value.constrained(precision: precision, scale: scale ?? 0)
                }
            }
        default: return nil
        }
    }

    @inline(__always)
    private static func whole<T: BinaryFloatingPoint & BitwiseCopyable, R: FixedWidthInteger & BitwiseCopyable>(_: T.Type, _: R.Type, _ to: SQLType) -> Kernel {
        { columns, _, frame in
            Loops.checkedUnary(columns[0], to, frame) { (a: T) in
                let rounded = a.rounded(.toNearestOrEven)
                // Both bounds are exact powers of two in binary floating point.
                let fits = rounded >= T(R.min) && rounded < -T(R.min)
                return (R(fits ? rounded : 0), !fits)
            } _: { _ in ArithmeticKernels.outOfRange(to) }
        }
    }

    private static func decimal(_ to: SQLType) -> Kernel? {
        switch to {
        case .int16: return wholeDecimal(Int16.self, to)
        case .int32: return wholeDecimal(Int32.self, to)
        case .int64: return wholeDecimal(Int64.self, to)
        case .float32: return { columns, _, _ in Loops.unary(columns[0], to) { (a: Decimal) in Float(a.double) } }
        case .float64: return { columns, _, _ in Loops.unary(columns[0], to) { (a: Decimal) in a.double } }
        case .numeric(let precision, let scale):
            guard let precision else { return relabeled(to) }
            return { columns, count, frame in
                Loops.tryUnary(columns, count, to, frame) { (a: Decimal) throws(SQLError) in try a.constrained(precision: precision, scale: scale ?? 0) }
            }
        default: return nil
        }
    }

    private static func wholeDecimal<R: FixedWidthInteger & BitwiseCopyable>(_: R.Type, _ to: SQLType) -> Kernel {
        { columns, count, frame in
            Loops.tryUnary(columns, count, to, frame) { (a: Decimal) throws(SQLError) -> R? in
                guard a.isFinite else {
                    throw SQLError(.featureNotSupported, "cannot convert \(a.isNaN ? "NaN" : "infinity") to \(to.name)")
                }
                guard let value = a.roundedInteger.flatMap({ R(exactly: $0) }) else { throw ArithmeticKernels.outOfRange(to) }
                return value
            }
        }
    }

    // MARK: Dates and times

    private static func time(_ from: SQLType, _ to: SQLType) -> Kernel? {
        switch (from, to) {
        case (.date, .timestamp), (.date, .timestamptz):
            return { columns, count, frame in
                Loops.tryUnary(columns, count, to, frame) { (days: Int32) throws(SQLError) -> Int64? in try DateTime.timestamp(days) }
            }
        case (.timestamp, .timestamptz), (.timestamptz, .timestamp): return relabeled(to)
        case (.timestamp, .date), (.timestamptz, .date):
            return { columns, _, _ in
                Loops.unary(columns[0], to) { (micros: Int64) in
                    micros == .max ? Int32.max : micros == .min ? Int32.min : Int32(truncatingIfNeeded: micros.flooredQuotient(TimeUnits.microsPerDay))
                }
            }
        case (.timestamp, .time), (.timestamptz, .time):
            return { columns, count, frame in
                Loops.tryUnary(columns, count, to, frame) { (micros: Int64) -> Int64? in DateTime.isFinite(micros) ? DateTime.clock(micros) : nil }
            }
        case (.time, .interval): return { columns, _, _ in Loops.unary(columns[0], to) { (micros: Int64) in Interval(micros: micros) } }
        case (.interval, .time): return { columns, _, _ in Loops.unary(columns[0], to) { (span: Interval) in DateTime.clock(span.micros) } }
        default: return nil
        }
    }

    // MARK: jsonb

    private static func json(_ from: SQLType, _ to: SQLType) -> Kernel? {
        guard from == .jsonb, to == .boolean || to.isNumber else { return nil }
        return { columns, count, frame in
            let result = Column(to, capacity: count)
            let input = UnsafePointer(columns[0].values(StringView.self))
            for row in 0..<count {
                if columns[0].isNull(row) {
                    result.appendNull()
                    continue
                }
                do throws(SQLError) {
                    try input[row].withBytes { (bytes) throws(SQLError) in try appendJSON(bytes, to, result) }
                } catch {
                    frame.errors.add(row, error)
                    result.appendNull()
                }
            }
            return result
        }
    }

    private static func appendJSON(_ bytes: UnsafeBufferPointer<UInt8>, _ to: SQLType, _ result: Column) throws(SQLError) {
        let kind = JSONText.kind(bytes)
        guard kind == (to == .boolean ? .boolean : .number) else {
            throw SQLError(.invalidParameterValue, "cannot cast jsonb \(kind.rawValue) to type \(to.name)")
        }
        guard to.isInteger else { return try TextInput.parse(bytes, as: to, into: result) }
        guard let value = try TextInput.decimal(bytes).roundedInteger else { throw ArithmeticKernels.outOfRange(to) }
        switch to {
        case .int16:
            guard let small = Int16(exactly: value) else { throw ArithmeticKernels.outOfRange(to) }
            result.append(small)
        case .int32:
            guard let small = Int32(exactly: value) else { throw ArithmeticKernels.outOfRange(to) }
            result.append(small)
        default: result.append(value)
        }
    }
}
