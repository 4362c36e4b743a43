import MillBase
import MillColumnar

/// `-> ->> #> #>> ?` and the functions on jsonb.
enum JSONKernels {
    typealias Bytes = UnsafeBufferPointer<UInt8>

    static func make(_ name: String, _ types: [SQLType]) -> Kernel? {
        switch name {
        case "json_get": return access(types[1] == .int32 ? element : member, asText: false)
        case "json_get_text": return access(types[1] == .int32 ? element : member, asText: true)
        case "json_path": return access(path, asText: false)
        case "json_path_text": return access(path, asText: true)
        case "json_has_key":
            return { columns, _, _ in
                Loops.binary(columns[0], columns[1], .boolean) { (a: StringView, b: StringView) -> UInt8 in
                    a.withBytes { text in b.withBytes { JSONText.hasKey(text, $0) } } ? 1 : 0
                }
            }
        case "jsonb_typeof", "json_typeof":
            return { columns, count, frame in
                let input = UnsafePointer(columns[0].values(StringView.self))
                return Loops.text(columns, count, .varchar, frame) { row, out in
                    out += input[row].withBytes { JSONText.kind($0) }.rawValue.utf8
                    return true
                }
            }
        case "jsonb_array_length", "json_array_length":
            return { columns, count, frame in
                Loops.tryUnary(columns, count, .int32, frame) { (a: StringView) throws(SQLError) -> Int32? in
                    try a.withBytes { (text) throws(SQLError) -> Int32 in
                        guard JSONText.kind(text) == .array else {
                            throw SQLError(.invalidParameterValue, "cannot get array length of \(JSONText.kind(text) == .object ? "a non-array" : "a scalar")")
                        }
                        return Int32(truncatingIfNeeded: JSONText.count(text))
                    }
                }
            }
        case "to_jsonb": return toJSON(types[0])
        case "json_build_object", "jsonb_build_object": return buildObject(types)
        default: return nil
        }
    }

    private typealias Accessor = @Sendable (Bytes, Column, Int) throws(SQLError) -> Bytes?

    private static func access(_ find: @escaping Accessor, asText: Bool) -> Kernel {
        { columns, count, frame in
            let input = UnsafePointer(columns[0].values(StringView.self))
            return Loops.text(columns, count, asText ? .varchar : .jsonb, frame) { row, out throws(SQLError) in
                // Short texts lie in a copy of the view: what is found is used up before the copy goes.
                try input[row].withBytes { (text) throws(SQLError) -> Bool in
                    guard let found = try find(text, columns[1], row) else { return false }
                    if asText { return JSONText.appendText(found, to: &out) }
                    out.append(contentsOf: found)
                    return true
                }
            }
        }
    }

    private static let member: Accessor = { (text, keys, row) throws(SQLError) in keys.values(StringView.self)[row].withBytes { JSONText.member(text, $0) } }

    private static let element: Accessor = { (text, indices, row) throws(SQLError) in JSONText.element(text, Int(indices.values(Int32.self)[row])) }

    private static let path: Accessor = { (text, paths, row) throws(SQLError) in
        try paths.values(StringView.self)[row].withBytes { (bytes) throws(SQLError) -> Bytes? in
            guard let path = JSONText.path(bytes) else {
                throw SQLError(.invalidTextRepresentation, "malformed array literal: \"\(String(decoding: bytes, as: UTF8.self))\"")
            }
            return JSONText.follow(text, path: path)
        }
    }

    private static func toJSON(_ type: SQLType) -> Kernel {
        { columns, count, frame in
            Loops.text(columns, count, .jsonb, frame) { row, out in
                append(columns[0], row, type, to: &out)
                return true
            }
        }
    }

    /// `key, value, key, value ...` as an object.
    private static func buildObject(_ types: [SQLType]) -> Kernel {
        { columns, count, frame in
            Loops.text(columns, count, .jsonb, frame, strict: false) { row, out throws(SQLError) in
                guard columns.count.isMultiple(of: 2) else {
                    throw SQLError(.invalidParameterValue, "argument list must have even number of elements", hint: "Give a value for each key.")
                }
                var text = Array("{".utf8)
                for place in stride(from: 0, to: columns.count, by: 2) {
                    guard !columns[place].isNull(row) else {
                        throw SQLError(.invalidParameterValue, "argument \(place + 1) cannot be null", hint: "Object keys should be text.")
                    }
                    if place > 0 { text.append(UInt8(ascii: ",")) }
                    var key: [UInt8] = []
                    columns[place].appendText(row: row, to: &key)
                    key.withUnsafeBufferPointer { JSONCanonicalizer.appendString($0, to: &text) }
                    text.append(UInt8(ascii: ":"))
                    if columns[place + 1].isNull(row) { text += "null".utf8 } else { append(columns[place + 1], row, types[place + 1], to: &text) }
                }
                text.append(UInt8(ascii: "}"))
                try text.withUnsafeBufferPointer { (bytes) throws(SQLError) in try JSONCanonicalizer.canonicalize(bytes, to: &out) }
                return true
            }
        }
    }

    private static func append(_ column: Column, _ row: Int, _ type: SQLType, to out: inout [UInt8]) {
        switch type {
        case .boolean: TextOutput.append(column.values(UInt8.self)[row] != 0 ? "true" : "false", to: &out)
        case .jsonb: column.appendText(row: row, to: &out)
        default:
            var text: [UInt8] = []
            column.appendText(row: row, to: &text)
            // Only what JSON can write as a number is one: not NaN, not an exponent's form.
            let isNumber = type.isNumber && text.allSatisfy { ($0 >= 48 && $0 <= 57) || $0 == 45 || $0 == 46 }
            if isNumber { out += text } else { text.withUnsafeBufferPointer { JSONCanonicalizer.appendString($0, to: &out) } }
        }
    }
}
