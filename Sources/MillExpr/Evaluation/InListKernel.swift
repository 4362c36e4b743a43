import MillColumnar

/// `value IN (literals)`: few integers are compared one by one, many looked up; strings are found by their first word
/// (length and prefix) before any byte is compared.
enum InListKernel {
    typealias Test = (Column) -> Column

    static func make(_ type: SQLType, _ list: [Scalar], negated: Bool) -> Test {
        let hasNull = list.contains(.null)
        let present = list.filter { !$0.isNull }
        let hit: UInt8 = negated ? 0 : 1
        let find = finder(type, present)
        return { column in
            let result = Column(.boolean, uninitialized: column.count)
            let out = result.values(UInt8.self)
            Loops.inheritNulls(result, column)
            find(column, out, hit)
            for row in 0..<column.count where column.isNull(row) { result.setNull(row) }
            // Not found among values of which one is unknown is unknown.
            if hasNull { for row in 0..<column.count where !result.isNull(row) && out[row] != hit { result.setNull(row) } }
            return result
        }
    }

    private typealias Finder = (Column, UnsafeMutablePointer<UInt8>, UInt8) -> Void

    private static func finder(_ type: SQLType, _ list: [Scalar]) -> Finder {
        switch type.physical {
        case .int16: return integers(list, Int16.self)
        case .int32: return integers(list, Int32.self)
        case .int64: return integers(list, Int64.self)
        case .string: return strings(type, list)
        default:
            let values = list.map { Column.constant($0, type, count: 1) }
            return { column, out, hit in
                for row in 0..<column.count { out[row] = values.contains { $0.equals(0, column, row) } ? hit : hit ^ 1 }
            }
        }
    }

    private static func integers<T: FixedWidthInteger>(_ list: [Scalar], _: T.Type) -> Finder {
        let values = list.compactMap { scalar -> T? in if case .int(let value) = scalar { T(exactly: value) } else { nil } }
        if values.count > 8 {
            let set = Set(values)
            return { column, out, hit in
                let input = UnsafePointer(column.values(T.self))
                for row in 0..<column.count { out[row] = set.contains(input[row]) ? hit : hit ^ 1 }
            }
        }
        return { column, out, hit in
            let input = UnsafePointer(column.values(T.self))
            let count = column.count
            out.update(repeating: 0, count: count)
            for value in values { for row in 0..<count { out[row] |= unsafeBitCast(input[row] == value, to: UInt8.self) } }
            if hit == 0 { for row in 0..<count { out[row] ^= 1 } }
        }
    }

    private static func strings(_ type: SQLType, _ list: [Scalar]) -> Finder {
        let values = Column(type, capacity: list.count)
        for scalar in list { values.append(scalar) }
        var byPrefix: [UInt64: [StringView]] = [:]
        for row in 0..<values.count { byPrefix[values.values(StringView.self)[row].low, default: []].append(values.values(StringView.self)[row]) }
        let table = byPrefix
        if list.count <= 4 {
            return { column, out, hit in
                let input = UnsafePointer(column.values(StringView.self))
                let wanted = UnsafePointer(values.values(StringView.self))
                for row in 0..<column.count {
                    var found = false
                    for index in 0..<values.count where wanted[index] == input[row] { found = true }
                    out[row] = found ? hit : hit ^ 1
                }
            }
        }
        return { column, out, hit in
            // The views in the table point into this column's heap.
            withExtendedLifetime(values) {
                let input = UnsafePointer(column.values(StringView.self))
                for row in 0..<column.count {
                    let found = table[input[row].low].map { $0.contains { $0 == input[row] } } ?? false
                    out[row] = found ? hit : hit ^ 1
                }
            }
        }
    }
}
