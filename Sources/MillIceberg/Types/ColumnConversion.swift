import MillBase
package import MillColumnar
package import MillParquet

/// How a column of a query's result becomes a column of a table's file.
///
/// Only what loses nothing: wider integers and floats, integers as decimals, jsonb and intervals as texts. A numeric is taken by any
/// decimal, and the file's writer refuses the values that do not fit. Nested columns take jsonb, UUIDs texts.
package struct ColumnConversion: Sendable {
    private enum Step: Sendable {
        case none
        case int16To32
        case int16To64
        case int32To64
        case floatToDouble
        case integerToDecimal
        case intervalToText
    }

    /// The type of the file's column.
    package let stored: SQLType
    package let form: ParquetValueForm
    private let step: Step

    /// Nil when the values may not fit, or cannot be written.
    package init?(from type: SQLType, to target: IcebergType) {
        let (stored, step): (SQLType, Step)
        switch target {
        case .uuid: form = .uuid
        case .fixed(let length): form = .fixed(length)
        default: form = .plain
        }
        switch (type, target) {
        case (.int16, .int): (stored, step) = (.int32, .int16To32)
        case (.int16, .long): (stored, step) = (.int64, .int16To64)
        case (.int32, .long): (stored, step) = (.int64, .int32To64)
        case (.float32, .double): (stored, step) = (.float64, .floatToDouble)
        case (.numeric, .decimal(let precision, let scale)): (stored, step) = (.numeric(precision: precision, scale: scale), .none)
        case (.int16, .decimal(let precision, let scale)), (.int32, .decimal(let precision, let scale)),
            (.int64, .decimal(let precision, let scale)):
            (stored, step) = (.numeric(precision: precision, scale: scale), .integerToDecimal)
        case (.jsonb, .structure), (.jsonb, .list), (.jsonb, .map): (stored, step) = (.jsonb, .none)
        case (.varchar, .uuid): (stored, step) = (.varchar, .none)
        case (.bytea, .fixed(let length)) where length > 0: (stored, step) = (.bytea, .none)
        case (.jsonb, .string): (stored, step) = (.varchar, .none)
        case (.interval, .string): (stored, step) = (.varchar, .intervalToText)
        case (.boolean, .boolean), (.int32, .int), (.int64, .long), (.float32, .float), (.float64, .double), (.varchar, .string),
            (.bytea, .binary), (.date, .date), (.time, .time), (.timestamp, .timestamp), (.timestamptz, .timestamptz):
            (stored, step) = (type, .none)
        default: return nil
        }
        (self.stored, self.step) = (stored, step)
    }

    /// The first `count` values as the file has them; the column itself where nothing changes.
    package func converted(_ source: Column, count: Int) -> Column {
        switch step {
        case .none: source
        case .int16To32: each(source, count) { (value: Int16) in Int32(value) }
        case .int16To64: each(source, count) { (value: Int16) in Int64(value) }
        case .int32To64: each(source, count) { (value: Int32) in Int64(value) }
        case .floatToDouble: each(source, count) { (value: Float) in Double(value) }
        case .integerToDecimal:
            switch source.type.physical {
            case .int16: each(source, count) { (value: Int16) in Decimal(unscaled: Int128(value), scale: 0) }
            case .int32: each(source, count) { (value: Int32) in Decimal(unscaled: Int128(value), scale: 0) }
            default: each(source, count) { (value: Int64) in Decimal(unscaled: Int128(value), scale: 0) }
            }
        case .intervalToText: texts(source, count)
        }
    }

    /// Intervals as SQL prints them: what partitions, sort orders and keys are made of, as well as files.
    private func texts(_ source: Column, _ count: Int) -> Column {
        let result = Column(stored, capacity: count)
        let from = UnsafePointer(source.values(Interval.self))
        var text: [UInt8] = []
        for row in 0..<count {
            guard !source.isNull(row) else {
                result.appendNull()
                continue
            }
            text.removeAll(keepingCapacity: true)
            TextOutput.append(from[row], to: &text)
            text.withUnsafeBufferPointer { result.append(bytes: $0) }
        }
        return result
    }

    @inline(__always)
    private func each<From: BitwiseCopyable, To: BitwiseCopyable>(_ source: Column, _ count: Int, _ convert: (From) -> To) -> Column {
        let result = Column(stored, uninitialized: count)
        let from = UnsafePointer(source.values(From.self))
        let to = result.values(To.self)
        for row in 0..<count { to[row] = convert(from[row]) }
        result.copyNulls(of: source, count: count)
        return result
    }
}

extension Column {
    /// Makes NULL what is NULL in the other column, bytes included.
    func copyNulls(of source: Column, count: Int) {
        guard !source.hasNoNulls else { return }
        for row in 0..<count where source.isNull(row) { setNull(row) }
    }
}
