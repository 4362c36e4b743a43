import MillBase
import MillColumnar

/// Functions and operators on dates, times and intervals.
enum DateTimeKernels {
    static func make(_ name: String, _ types: [SQLType]) -> Kernel? {
        arithmetic(name, types) ?? fields(name, types) ?? windows(name, types) ?? clock(name) ?? making(name, types)
    }

    // MARK: Operators

    private static func arithmetic(_ name: String, _ types: [SQLType]) -> Kernel? {
        if types.count == 1, types[0] == .interval, name == "negate" {
            return { columns, count, frame in Loops.tryUnary(columns, count, .interval, frame) { (a: Interval) throws(SQLError) -> Interval? in try DateTime.negated(a) } }
        }
        if types == [.interval], name == "plus" { return { columns, _, _ in columns[0] } }
        guard types.count == 2 else { return nil }
        switch name {
        case "add": return add(types[0], types[1])
        case "subtract": return subtract(types[0], types[1])
        case "multiply" where types[0] == .interval || types[1] == .interval:
            let flipped = types[1] == .interval
            return { columns, count, frame in
                Loops.tryBinary(flipped ? [columns[1], columns[0]] : columns, count, .interval, frame) { (a: Interval, b: Double) throws(SQLError) -> Interval? in
                    try DateTime.scale(a, b, dividing: false)
                }
            }
        case "divide" where types[0] == .interval:
            return { columns, count, frame in
                Loops.tryBinary(columns, count, .interval, frame) { (a: Interval, b: Double) throws(SQLError) -> Interval? in try DateTime.scale(a, b, dividing: true) }
            }
        default: return nil
        }
    }

    private static func add(_ left: SQLType, _ right: SQLType) -> Kernel? {
        switch (left, right) {
        case (.int32, .date), (.interval, .timestamp), (.interval, .timestamptz), (.interval, .time), (.time, .date):
            guard let kernel = add(right, left) else { return nil }
            return { columns, count, frame in kernel([columns[1], columns[0]], count, frame) }
        case (.date, .int32):
            return { columns, count, frame in
                Loops.tryBinary(columns, count, .date, frame) { (a: Int32, b: Int32) throws(SQLError) -> Int32? in
                    a == .max || a == .min ? a : try DateTime.date(Int64(a) + Int64(b))
                }
            }
        case (.date, .time):
            return { columns, count, frame in
                Loops.tryBinary(columns, count, .timestamp, frame) { (a: Int32, b: Int64) throws(SQLError) -> Int64? in
                    try DateTime.add(DateTime.timestamp(a), Interval(micros: b))
                }
            }
        case (.timestamp, .interval), (.timestamptz, .interval):
            return { columns, count, frame in
                Loops.tryBinary(columns, count, left, frame) { (a: Int64, b: Interval) throws(SQLError) -> Int64? in try DateTime.add(a, b) }
            }
        case (.time, .interval):
            return { columns, _, _ in Loops.binary(columns[0], columns[1], .time) { (a: Int64, b: Interval) in DateTime.clock(a &+ b.micros % TimeUnits.microsPerDay) } }
        case (.interval, .interval):
            return { columns, count, frame in
                Loops.tryBinary(columns, count, .interval, frame) { (a: Interval, b: Interval) throws(SQLError) -> Interval? in try DateTime.add(a, b) }
            }
        default: return nil
        }
    }

    private static func subtract(_ left: SQLType, _ right: SQLType) -> Kernel? {
        switch (left, right) {
        case (.date, .int32):
            return { columns, count, frame in
                Loops.tryBinary(columns, count, .date, frame) { (a: Int32, b: Int32) throws(SQLError) -> Int32? in
                    a == .max || a == .min ? a : try DateTime.date(Int64(a) - Int64(b))
                }
            }
        case (.date, .date):
            return { columns, count, frame in
                Loops.tryBinary(columns, count, .int32, frame) { (a: Int32, b: Int32) throws(SQLError) -> Int32? in
                    guard a != .max, a != .min, b != .max, b != .min else { throw SQLError(.datetimeFieldOverflow, "cannot subtract infinite dates") }
                    return Int32(truncatingIfNeeded: Int64(a) - Int64(b))
                }
            }
        case (.timestamp, .interval), (.timestamptz, .interval):
            return { columns, count, frame in
                Loops.tryBinary(columns, count, left, frame) { (a: Int64, b: Interval) throws(SQLError) -> Int64? in try DateTime.add(a, DateTime.negated(b)) }
            }
        case (.timestamp, .timestamp), (.timestamptz, .timestamptz):
            return { columns, count, frame in
                Loops.tryBinary(columns, count, .interval, frame) { (a: Int64, b: Int64) throws(SQLError) -> Interval? in try DateTime.difference(a, b) }
            }
        case (.time, .interval):
            return { columns, _, _ in Loops.binary(columns[0], columns[1], .time) { (a: Int64, b: Interval) in DateTime.clock(a &- b.micros % TimeUnits.microsPerDay) } }
        case (.time, .time): return { columns, _, _ in Loops.binary(columns[0], columns[1], .interval) { (a: Int64, b: Int64) in Interval(micros: a - b) } }
        case (.interval, .interval):
            return { columns, count, frame in
                Loops.tryBinary(columns, count, .interval, frame) { (a: Interval, b: Interval) throws(SQLError) -> Interval? in try DateTime.add(a, DateTime.negated(b)) }
            }
        default: return nil
        }
    }

    // MARK: Fields

    /// Remembers the field of the last name, which nearly always is that of the next row too.
    private struct FieldReader {
        private var last = StringView.empty
        private var field: DateTimeField?

        mutating func field(_ name: StringView, _ type: SQLType) throws(SQLError) -> DateTimeField {
            if let field, last == name { return field }
            let found = try name.withBytes { (bytes) throws(SQLError) -> DateTimeField in
                guard let found = DateTimeField(bytes) else { throw DateTimeField.unknown(bytes, type) }
                return found
            }
            last = name
            field = found
            return found
        }
    }

    private static func fields(_ name: String, _ types: [SQLType]) -> Kernel? {
        guard types.count == 2, types[0] == .varchar else { return nil }
        let type = types[1]
        switch (name, type) {
        case ("extract", _): return extract(type)
        case ("date_part", _):
            let extract = extract(type)
            return { columns, count, frame in Loops.unary(extract(columns, count, frame), .float64) { (a: Decimal) in a.double } }
        case ("date_trunc", .interval):
            return { columns, count, frame in
                var reader = FieldReader()
                return Loops.tryBinary(columns, count, .interval, frame) { (name: StringView, a: Interval) throws(SQLError) -> Interval? in
                    try reader.field(name, type).truncate(a)
                }
            }
        case ("date_trunc", _):
            return { columns, count, frame in
                var reader = FieldReader()
                return Loops.tryBinary(columns, count, type, frame) { (name: StringView, a: Int64) throws(SQLError) -> Int64? in
                    try reader.field(name, type).truncate(timestamp: a, type)
                }
            }
        case ("timezone", .timestamp), ("timezone", .timestamptz): return zone(type, zoneFirst: true)
        default: return nil
        }
    }

    private static func extract(_ type: SQLType) -> Kernel {
        { columns, count, frame in
            var reader = FieldReader()
            switch type {
            case .date:
                return Loops.tryBinary(columns, count, .numeric, frame) { (name: StringView, a: Int32) throws(SQLError) in try reader.field(name, type).extract(fromDate: a) }
            case .time:
                return Loops.tryBinary(columns, count, .numeric, frame) { (name: StringView, a: Int64) throws(SQLError) in try reader.field(name, type).extract(fromTime: a) }
            case .interval:
                return Loops.tryBinary(columns, count, .numeric, frame) { (name: StringView, a: Interval) throws(SQLError) in try reader.field(name, type).extract(fromInterval: a) }
            default:
                return Loops.tryBinary(columns, count, .numeric, frame) { (name: StringView, a: Int64) throws(SQLError) in
                    try reader.field(name, type).extract(fromTimestamp: a, type)
                }
            }
        }
    }

    /// A local time becomes an instant by taking the offset off, an instant a local time by adding it.
    private static func zone(_ type: SQLType, zoneFirst: Bool) -> Kernel {
        let result: SQLType = type == .timestamp ? .timestamptz : .timestamp
        return { columns, count, frame in
            Loops.tryBinary(zoneFirst ? [columns[1], columns[0]] : columns, count, result, frame) { (a: Int64, zone: StringView) throws(SQLError) -> Int64? in
                let offset = try zone.withBytes { (bytes) throws(SQLError) in try DateTime.zoneOffset(bytes) }
                return try DateTime.add(a, Interval(micros: type == .timestamp ? -offset : offset))
            }
        }
    }

    // MARK: Windows

    private static func windows(_ name: String, _ types: [SQLType]) -> Kernel? {
        switch name {
        case "tumble_start":
            let type = types[0]
            return { columns, count, frame in
                let times = UnsafePointer(columns[0].values(Int64.self))
                let sizes = UnsafePointer(columns[1].values(Interval.self))
                let offsets = columns.count > 2 ? UnsafePointer(columns[2].values(Interval.self)) : nil
                return Loops.rows(columns, count, type, frame) { row throws(SQLError) -> Int64? in
                    let size = try DateTime.fixedMicros(sizes[row], positive: true)
                    let offset = try offsets.map { (offsets) throws(SQLError) in try DateTime.fixedMicros(offsets[row], positive: false) } ?? 0
                    return try DateTime.windowStart(times[row], size: size, offset: offset)
                }
            }
        case "date_bin":
            let type = types[1]
            return { columns, count, frame in
                let strides = UnsafePointer(columns[0].values(Interval.self))
                let times = UnsafePointer(columns[1].values(Int64.self))
                let origins = UnsafePointer(columns[2].values(Int64.self))
                return Loops.rows(columns, count, type, frame) { row throws(SQLError) -> Int64? in
                    guard DateTime.isFinite(origins[row]) else { throw SQLError(.datetimeFieldOverflow, "origin out of range") }
                    guard strides[row].months == 0 else {
                        throw SQLError(.featureNotSupported, "timestamps cannot be binned into intervals containing months or years")
                    }
                    return try DateTime.windowStart(times[row], size: DateTime.fixedMicros(strides[row], positive: true), offset: origins[row])
                }
            }
        case "at_time_zone": return zone(types[0], zoneFirst: false)
        default: return nil
        }
    }

    // MARK: The clock

    private static func clock(_ name: String) -> Kernel? {
        switch name {
        case "now", "current_timestamp", "transaction_timestamp", "statement_timestamp", "proctime":
            return { _, count, frame in Column.constant(.int(frame.context.nowMicros), .timestamptz, count: count) }
        case "localtimestamp": return { _, count, frame in Column.constant(.int(frame.context.nowMicros), .timestamp, count: count) }
        case "current_date":
            return { _, count, frame in Column.constant(.int(frame.context.nowMicros.flooredQuotient(TimeUnits.microsPerDay)), .date, count: count) }
        case "localtime": return { _, count, frame in Column.constant(.int(DateTime.clock(frame.context.nowMicros)), .time, count: count) }
        default: return nil
        }
    }

    // MARK: Making and adjusting

    private static func making(_ name: String, _ types: [SQLType]) -> Kernel? {
        switch name {
        case "to_timestamp": return { columns, count, frame in Loops.tryUnary(columns, count, .timestamptz, frame) { (a: Double) throws(SQLError) -> Int64? in try fromUnix(a) } }
        case "age":
            return { columns, count, frame in
                Loops.tryBinary(columns, count, .interval, frame) { (a: Int64, b: Int64) throws(SQLError) -> Interval? in try DateTime.age(a, b) }
            }
        case "justify_hours", "justify_days", "justify_interval":
            let hours = name != "justify_days"
            let days = name != "justify_hours"
            return { columns, count, frame in
                Loops.tryUnary(columns, count, .interval, frame) { (a: Interval) throws(SQLError) -> Interval? in try DateTime.justified(a, hours: hours, days: days) }
            }
        case "isfinite":
            switch types[0] {
            case .date: return { columns, _, _ in Loops.unary(columns[0], .boolean) { (a: Int32) -> UInt8 in a != .max && a != .min ? 1 : 0 } }
            case .interval: return { columns, _, _ in Loops.unary(columns[0], .boolean) { (_: Interval) -> UInt8 in 1 } }
            default: return { columns, _, _ in Loops.unary(columns[0], .boolean) { (a: Int64) -> UInt8 in DateTime.isFinite(a) ? 1 : 0 } }
            }
        case "make_date", "make_time", "make_timestamp": return fromParts(name)
        default: return nil
        }
    }

    private static func fromUnix(_ seconds: Double) throws(SQLError) -> Int64 {
        if seconds.isNaN { throw SQLError(.datetimeFieldOverflow, "timestamp cannot be NaN") }
        if seconds.isInfinite { return seconds < 0 ? .min : .max }
        let micros = (seconds * 1_000_000).rounded(.toNearestOrEven)
        guard micros.magnitude < 9.2e18, TimeUnits.isTimestamp(Int64(micros)) else {
            throw SQLError(.datetimeFieldOverflow, "timestamp out of range: \"\(seconds)\"")
        }
        return Int64(micros)
    }

    private static func fromParts(_ name: String) -> Kernel {
        { columns, count, frame in
            func part(_ index: Int, _ row: Int) -> Int { Int(columns[index].values(Int32.self)[row]) }
            func days(_ row: Int) throws(SQLError) -> Int32 {
                let year = part(0, row)
                let date = CivilDate(year: year < 0 ? year + 1 : year, month: part(1, row), day: part(2, row))
                guard year != 0, abs(year) < 5_900_000, date.isValid else {
                    throw SQLError(.datetimeFieldOverflow, "date field value out of range: \(year)-\(part(1, row))-\(part(2, row))")
                }
                return try DateTime.date(Int64(date.days))
            }
            func clock(_ first: Int, _ row: Int) throws(SQLError) -> Int64 {
                let hours = part(first, row)
                let minutes = part(first + 1, row)
                let seconds = columns[first + 2].values(Double.self)[row]
                guard (0...24).contains(hours), (0..<60).contains(minutes), seconds >= 0, seconds <= 60 else {
                    throw SQLError(.datetimeFieldOverflow, "time field value out of range: \(hours):\(minutes):\(seconds)")
                }
                let micros = Int64(hours * 60 + minutes) * TimeUnits.microsPerMinute + Int64((seconds * 1_000_000).rounded(.toNearestOrEven))
                guard micros <= TimeUnits.microsPerDay else { throw SQLError(.datetimeFieldOverflow, "time field value out of range: \(hours):\(minutes):\(seconds)") }
                return micros
            }
            switch name {
            case "make_date": return Loops.rows(columns, count, .date, frame) { row throws(SQLError) -> Int32? in try days(row) }
            case "make_time": return Loops.rows(columns, count, .time, frame) { row throws(SQLError) -> Int64? in try clock(0, row) }
            default:
                return Loops.rows(columns, count, .timestamp, frame) { row throws(SQLError) -> Int64? in
                    try DateTime.add(DateTime.timestamp(days(row)), Interval(micros: clock(3, row)))
                }
            }
        }
    }
}
