import MillBase
package import MillColumnar

/// Functions of catalog queries that need no catalog: names of types, sizes, and arrays in their text form.
enum CatalogKernels {
    static func make(_ name: String, _ types: [SQLType]) -> Kernel? {
        switch name {
        case "format_type":
            return { columns, count, frame in
                let oids = UnsafePointer(columns[0].values(Int32.self))
                let modifiers = UnsafePointer(columns[1].values(Int32.self))
                return Loops.text(columns, count, .varchar, frame, strict: false) { row, out in
                    guard !columns[0].isNull(row) else { return false }
                    out += CatalogTypes.format(oids[row], modifier: columns[1].isNull(row) ? nil : modifiers[row]).utf8
                    return true
                }
            }
        case "pg_encoding_to_char":
            return { columns, count, frame in
                let encodings = UnsafePointer(columns[0].values(Int32.self))
                return Loops.text(columns, count, .varchar, frame) { row, out in
                    if encodings[row] == utf8Encoding { out += "UTF8".utf8 }
                    return true
                }
            }
        case "pg_size_pretty":
            return { columns, count, frame in
                let sizes = UnsafePointer(columns[0].values(Int64.self))
                return Loops.text(columns, count, .varchar, frame) { row, out in
                    out += prettySize(sizes[row]).utf8
                    return true
                }
            }
        default: return array(name, types)
        }
    }

    /// PostgreSQL's number of UTF-8.
    private static let utf8Encoding: Int32 = 6

    // MARK: Arrays as text

    private static func array(_ name: String, _ types: [SQLType]) -> Kernel? {
        switch name {
        case "array_to_string":
            return { columns, count, frame in
                Loops.text(columns, count, .varchar, frame, strict: false) { row, out throws(SQLError) in
                    guard !columns[0].isNull(row), !columns[1].isNull(row) else { return false }
                    let missing = columns.count > 2 && !columns[2].isNull(row) ? string(columns[2], row) : nil
                    let parts = try ArrayText.elements(string(columns[0], row)).compactMap { $0 ?? missing }
                    out += parts.joined(separator: string(columns[1], row)).utf8
                    return true
                }
            }
        case "array_of":
            return { columns, count, frame in
                Loops.text(columns, count, .varchar, frame, strict: false) { row, out in
                    out += ArrayText.text([columns[0].isNull(row) ? nil : string(columns[0], row)]).utf8
                    return true
                }
            }
        case "array_remove":
            return { columns, count, frame in
                Loops.text(columns, count, .varchar, frame, strict: false) { row, out throws(SQLError) in
                    guard !columns[0].isNull(row) else { return false }
                    let unwanted = columns[1].isNull(row) ? nil : string(columns[1], row)
                    out += ArrayText.text(try ArrayText.elements(string(columns[0], row)).filter { $0 != unwanted }).utf8
                    return true
                }
            }
        case "array_contains":
            return { columns, count, frame in
                Loops.rows(columns, count, .boolean, frame) { row throws(SQLError) -> UInt8? in
                    let elements = try ArrayText.elements(string(columns[0], row))
                    let wanted = string(columns[1], row)
                    if elements.contains(wanted) { return 1 }
                    return elements.contains(nil) ? nil : 0
                }
            }
        case "array_length", "array_upper", "cardinality":
            let isCardinality = name == "cardinality"
            return { columns, count, frame in
                Loops.rows(columns, count, .int32, frame) { row throws(SQLError) -> Int32? in
                    let length = Int32(clamping: try ArrayText.elements(string(columns[0], row)).count)
                    if isCardinality { return length }
                    return length == 0 || columns[1].values(Int32.self)[row] != 1 ? nil : length
                }
            }
        default: return nil
        }
    }

    private static func string(_ column: Column, _ row: Int) -> String { String(column.values(StringView.self)[row]) }

    // MARK: Sizes

    /// Whole numbers of the largest unit in which there are less than 10240, halves away from zero.
    private static func prettySize(_ bytes: Int64) -> String {
        var magnitude = bytes.magnitude
        let sign = bytes < 0 ? "-" : ""
        if magnitude < 10_240 { return "\(sign)\(magnitude) bytes" }
        // Twice the value in the unit, so that the last bit decides the rounding.
        magnitude >>= 9
        for unit in ["kB", "MB", "GB", "TB"] {
            if magnitude < 20_479 { return "\(sign)\((magnitude + 1) / 2) \(unit)" }
            magnitude >>= 10
        }
        return "\(sign)\((magnitude + 1) / 2) PB"
    }
}

extension FunctionRegistry {
    static let catalogSignatures = """
        format_type(int4, int4) -> text
        pg_encoding_to_char(int4) -> text
        pg_size_pretty(int8) -> text
        array_to_string(text, text) -> text
        array_to_string(text, text, text) -> text
        array_of(text) -> text
        array_remove(text, text) -> text
        array_contains(text, text) -> bool
        array_length(text, int4) -> int4
        array_upper(text, int4) -> int4
        cardinality(text) -> int4
        """

    /// Every scalar overload in the order of its name: what `pg_proc` lists.
    package static var signatures: [(name: String, arguments: [SQLType?], isVariadic: Bool, result: SQLType)] {
        overloads.keys.sorted().flatMap { name in
            (overloads[name] ?? []).map { overload in
                let arguments = overload.parameters.map { parameter -> SQLType? in if case .type(let type) = parameter { type } else { nil }
                }
                return (name, arguments, overload.isVariadic, overload.result)
            }
        }
    }
}
