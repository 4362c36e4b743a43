import MillBase
import MillColumnar

/// `to_char` of timestamps and numbers.
enum FormatKernels {
    static func make(_ name: String, _ types: [SQLType]) -> Kernel? {
        guard name == "to_char" else { return nil }
        if types[0].isNumeric {
            return { columns, count, frame in
                let input = UnsafePointer(columns[0].values(Decimal.self))
                var last: StringView?
                var format: NumberFormat?
                return Loops.text(columns, count, .varchar, frame) { row, out throws(SQLError) in
                    let pattern = StringKernels.view(columns, 1, row)
                    let isKnown = last.map { $0 == pattern } ?? false
                    if !isKnown { format = try NumberFormat(String(pattern)) }
                    last = pattern
                    try format?.append(input[row], to: &out)
                    return true
                }
            }
        }
        let isZoned = types[0] == .timestamptz
        return { columns, count, frame in
            let input = UnsafePointer(columns[0].values(Int64.self))
            var last: StringView?
            var format: TimestampFormat?
            return Loops.text(columns, count, .varchar, frame) { row, out in
                guard DateTime.isFinite(input[row]) else { return false }
                let pattern = StringKernels.view(columns, 1, row)
                let isKnown = last.map { $0 == pattern } ?? false
                if !isKnown { format = TimestampFormat(String(pattern), isZoned: isZoned) }
                last = pattern
                format?.append(input[row], to: &out)
                return true
            }
        }
    }
}
