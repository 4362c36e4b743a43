import MillBase
import MillColumnar

/// Functions on text and bytea. Positions and lengths count characters, that is code points, as PostgreSQL's in UTF-8.
enum StringKernels {
    typealias Bytes = UnsafeBufferPointer<UInt8>

    static func make(_ name: String, _ types: [SQLType]) -> Kernel? {
        joining(name, types) ?? measuring(name, types) ?? casing(name) ?? trimming(name, types) ?? cutting(name) ?? replacing(name) ?? encoding(name, types)
    }

    // MARK: Reading arguments

    @inline(__always) static func view(_ columns: [Column], _ index: Int, _ row: Int) -> StringView { columns[index].values(StringView.self)[row] }
    @inline(__always) static func int(_ columns: [Column], _ index: Int, _ row: Int) -> Int { Int(columns[index].values(Int32.self)[row]) }

    /// A function of one text giving text.
    private static func map(_ body: @escaping (Bytes, inout [UInt8]) -> Void) -> Kernel {
        { columns, count, frame in
            let input = UnsafePointer(columns[0].values(StringView.self))
            return Loops.text(columns, count, .varchar, frame) { row, out in
                input[row].withBytes { body($0, &out) }
                return true
            }
        }
    }

    /// A function whose result is a range of the first argument's bytes.
    private static func slice(_ body: @escaping (Bytes, [Column], Int) throws(SQLError) -> Range<Int>) -> Kernel {
        { columns, count, frame in slices(columns, count, frame) { (text, row) throws(SQLError) in try body(text, columns, row) } }
    }

    /// A range of each row's text in the first column: long results point into its heap.
    @inline(__always)
    private static func slices(_ columns: [Column], _ count: Int, _ frame: EvaluationFrame, _ body: (Bytes, Int) throws(SQLError) -> Range<Int>) -> Column {
        let input = UnsafePointer(columns[0].values(StringView.self))
        let result = Loops.rows(columns, count, .varchar, frame) { row throws(SQLError) -> StringView? in
            try input[row].withBytes { (bytes) throws(SQLError) -> StringView in
                let range = try body(bytes, row)
                guard let base = bytes.baseAddress, !range.isEmpty else { return .empty }
                return StringView(base + range.lowerBound, count: range.count)
            }
        }
        result.keep(columns[0].heaps)
        return result
    }

    /// PostgreSQL's escape form: zeros and bytes from 128 on in octal, backslashes doubled.
    private static func appendEscaped(_ bytes: Bytes, to out: inout [UInt8]) {
        for byte in bytes {
            if byte == UInt8(ascii: "\\") {
                out += [byte, byte]
            } else if byte == 0 || byte >= 128 {
                out += [UInt8(ascii: "\\"), 48 + (byte >> 6), 48 + ((byte >> 3) & 7), 48 + (byte & 7)]
            } else {
                out.append(byte)
            }
        }
    }

    static func checkLength(_ count: Int) throws(SQLError) {
        // One row may not take the memory of the process: far below the largest value that can be stored.
        if count > 64 << 20 { throw SQLError(.programLimitExceeded, "requested length too large") }
    }

    // MARK: Joining

    private static func joining(_ name: String, _ types: [SQLType]) -> Kernel? {
        switch name {
        case "concatenate":
            let result: SQLType = types[0] == .bytea ? .bytea : .varchar
            return { columns, count, frame in
                Loops.text(columns, count, result, frame) { row, out in
                    for column in columns { append(column, row, &out) }
                    return true
                }
            }
        case "concat":
            return { columns, count, frame in
                Loops.text(columns, count, .varchar, frame, strict: false) { row, out in
                    for column in columns where !column.isNull(row) { column.appendText(row: row, to: &out) }
                    return true
                }
            }
        case "concat_ws":
            return { columns, count, frame in
                Loops.text(columns, count, .varchar, frame, strict: false) { row, out in
                    guard !columns[0].isNull(row) else { return false }
                    var isFirst = true
                    for column in columns.dropFirst() where !column.isNull(row) {
                        if !isFirst { columns[0].appendText(row: row, to: &out) }
                        isFirst = false
                        column.appendText(row: row, to: &out)
                    }
                    return true
                }
            }
        case "pg_typeof":
            let type = types[0]
            return { _, count, _ in Column.constant(.string(type.base.name), .varchar, count: count) }
        default: return nil
        }
    }

    /// `||` casts its other side to text, where booleans are words; bytea keeps its bytes.
    private static func append(_ column: Column, _ row: Int, _ out: inout [UInt8]) {
        switch column.type {
        case .bytea: view([column], 0, row).withBytes { out.append(contentsOf: $0) }
        case .boolean: TextOutput.append(column.values(UInt8.self)[row] != 0 ? "true" : "false", to: &out)
        default: column.appendText(row: row, to: &out)
        }
    }

    // MARK: Measuring

    private static func measuring(_ name: String, _ types: [SQLType]) -> Kernel? {
        switch name {
        case "octet_length": return { columns, _, _ in Loops.unary(columns[0], .int32) { (a: StringView) in Int32(truncatingIfNeeded: a.count) } }
        case "bit_length": return { columns, _, _ in Loops.unary(columns[0], .int32) { (a: StringView) in Int32(truncatingIfNeeded: a.count * 8) } }
        case "length" where types[0] == .bytea: return { columns, _, _ in Loops.unary(columns[0], .int32) { (a: StringView) in Int32(truncatingIfNeeded: a.count) } }
        case "length", "char_length", "character_length":
            return { columns, _, _ in Loops.unary(columns[0], .int32) { (a: StringView) in a.withBytes { Int32(truncatingIfNeeded: UTF8Text.count($0)) } } }
        case "position", "strpos":
            return { columns, _, _ in
                Loops.binary(columns[0], columns[1], .int32) { (a: StringView, b: StringView) in
                    a.withBytes { text -> Int32 in
                        b.withBytes { part -> Int32 in
                            guard let at = UTF8Text.find(part, in: text, from: 0) else { return 0 }
                            return Int32(truncatingIfNeeded: UTF8Text.count(Bytes(rebasing: text[0..<at])) + 1)
                        }
                    }
                }
            }
        case "starts_with":
            return { columns, _, _ in
                Loops.binary(columns[0], columns[1], .boolean) { (a: StringView, b: StringView) -> UInt8 in
                    a.withBytes { text in b.withBytes { part in text.starts(with: part) ? 1 : 0 } }
                }
            }
        case "ascii":
            return { columns, _, _ in
                Loops.unary(columns[0], .int32) { (a: StringView) in
                    a.withBytes { Int32(truncatingIfNeeded: String(decoding: $0.prefix(4), as: UTF8.self).unicodeScalars.first?.value ?? 0) }
                }
            }
        default: return nil
        }
    }

    // MARK: Case

    private static func casing(_ name: String) -> Kernel? {
        switch name {
        case "lower": return map { UTF8Text.appendLowered($0, to: &$1) }
        case "upper": return map { UTF8Text.appendUppered($0, to: &$1) }
        case "initcap": return map { UTF8Text.appendCapitalized($0, to: &$1) }
        case "reverse":
            return map { text, out in
                var end = text.count
                while end > 0 {
                    var start = end - 1
                    while start > 0, text[start] & 0xC0 == 0x80 { start -= 1 }
                    out.append(contentsOf: text[start..<end])
                    end = start
                }
            }
        default: return nil
        }
    }

    // MARK: Trimming

    private static func trimming(_ name: String, _ types: [SQLType]) -> Kernel? {
        let atStart: Bool
        let atEnd: Bool
        switch name {
        case "btrim", "trim": (atStart, atEnd) = (true, true)
        case "ltrim": (atStart, atEnd) = (true, false)
        case "rtrim": (atStart, atEnd) = (false, true)
        default: return nil
        }
        if types.count == 1 {
            return slice { text, _, _ in
                var range = 0..<text.count
                if atStart { while let first = range.first, text[first] == 32 { range = range.dropFirst() } }
                if atEnd { while let last = range.last, text[last] == 32 { range = range.dropLast() } }
                return range
            }
        }
        return slice { text, columns, row in
            let characters = view(columns, 1, row).withBytes { Set(UTF8Text.characters($0).map { Array($0) }) }
            var range = 0..<text.count
            if atStart {
                while !range.isEmpty {
                    let next = UTF8Text.next(text, range.lowerBound)
                    guard next <= range.upperBound, characters.contains(Array(text[range.lowerBound..<next])) else { break }
                    range = next..<range.upperBound
                }
            }
            if atEnd {
                while !range.isEmpty {
                    var start = range.upperBound - 1
                    while start > range.lowerBound, text[start] & 0xC0 == 0x80 { start -= 1 }
                    guard characters.contains(Array(text[start..<range.upperBound])) else { break }
                    range = range.lowerBound..<start
                }
            }
            return range
        }
    }

    // MARK: Cutting

    private static func cutting(_ name: String) -> Kernel? {
        switch name {
        case "substr", "substring":
            return slice { (text, columns, row) throws(SQLError) in
                let start = int(columns, 1, row)
                guard columns.count > 2 else { return UTF8Text.range(text, from: start - 1, to: .max) }
                let count = int(columns, 2, row)
                if count < 0 { throw SQLError(.substringError, "negative substring length not allowed") }
                return UTF8Text.range(text, from: start - 1, to: start - 1 + count)
            }
        case "left":
            return slice { text, columns, row in
                let count = int(columns, 1, row)
                return UTF8Text.range(text, from: 0, to: count >= 0 ? count : UTF8Text.count(text) + count)
            }
        case "right":
            return slice { text, columns, row in
                let count = int(columns, 1, row)
                return UTF8Text.range(text, from: count >= 0 ? UTF8Text.count(text) - count : -count, to: .max)
            }
        case "split_part":
            return { columns, count, frame in
                let separators = UnsafePointer(columns[1].values(StringView.self))
                let fields = UnsafePointer(columns[2].values(Int32.self))
                return slices(columns, count, frame) { (text, row) throws(SQLError) in
                    let field = Int(fields[row])
                    if field == 0 { throw SQLError(.invalidParameterValue, "field position must not be zero") }
                    return separators[row].withBytes { UTF8Text.field(field, of: text, by: $0) }
                }
            }
        case "lpad", "rpad":
            return { columns, count, frame in
                Loops.text(columns, count, .varchar, frame) { row, out throws(SQLError) in
                    let width = max(int(columns, 1, row), 0)
                    try checkLength(width)
                    view(columns, 0, row).withBytes { text in
                        func fill(_ pad: Bytes) { UTF8Text.appendPadded(text, to: width, with: pad, onLeft: name == "lpad", &out) }
                        if columns.count > 2 { view(columns, 2, row).withBytes { fill($0) } } else { StringView(low: 0x20_0000_0001, high: 0).withBytes { fill($0) } }
                    }
                    return true
                }
            }
        default: return nil
        }
    }

    // MARK: Replacing

    private static func replacing(_ name: String) -> Kernel? {
        switch name {
        case "replace":
            return { columns, count, frame in
                Loops.text(columns, count, .varchar, frame) { row, out throws(SQLError) in
                    view(columns, 0, row).withBytes { text in
                        view(columns, 1, row).withBytes { from in
                            view(columns, 2, row).withBytes { to in UTF8Text.appendReplacing(text, from, to, &out) }
                        }
                    }
                    try checkLength(out.count)
                    return true
                }
            }
        case "translate":
            return { columns, count, frame in
                Loops.text(columns, count, .varchar, frame) { row, out in
                    let from = view(columns, 1, row).withBytes { UTF8Text.characters($0).map { Array($0) } }
                    let to = view(columns, 2, row).withBytes { UTF8Text.characters($0).map { Array($0) } }
                    view(columns, 0, row).withBytes { text in
                        for character in UTF8Text.characters(text) {
                            guard let index = from.firstIndex(where: { $0.elementsEqual(character) }) else {
                                out.append(contentsOf: character)
                                continue
                            }
                            if index < to.count { out += to[index] }
                        }
                    }
                    return true
                }
            }
        case "overlay":
            return { columns, count, frame in
                Loops.text(columns, count, .varchar, frame) { row, out throws(SQLError) in
                    let start = int(columns, 2, row)
                    if start <= 0 { throw SQLError(.substringError, "negative substring length not allowed") }
                    view(columns, 0, row).withBytes { text in
                        view(columns, 1, row).withBytes { part in
                            let length = columns.count > 3 ? int(columns, 3, row) : UTF8Text.count(part)
                            out.append(contentsOf: text[UTF8Text.range(text, from: 0, to: start - 1)])
                            out.append(contentsOf: part)
                            out.append(contentsOf: text[UTF8Text.range(text, from: max(start - 1 + length, 0), to: .max)])
                        }
                    }
                    return true
                }
            }
        case "repeat":
            return { columns, count, frame in
                Loops.text(columns, count, .varchar, frame) { row, out throws(SQLError) in
                    let text = view(columns, 0, row)
                    let times = text.count == 0 ? 0 : max(int(columns, 1, row), 0)
                    try checkLength(text.count.multipliedReportingOverflow(by: times).overflow ? .max : text.count * times)
                    text.withBytes { bytes in for _ in 0..<times { out.append(contentsOf: bytes) } }
                    return true
                }
            }
        default: return nil
        }
    }

    // MARK: Encoding

    private static func encoding(_ name: String, _ types: [SQLType]) -> Kernel? {
        switch name {
        case "chr":
            return { columns, count, frame in
                Loops.text(columns, count, .varchar, frame) { row, out throws(SQLError) in
                    let code = int(columns, 0, row)
                    if code == 0 { throw SQLError(.programLimitExceeded, "null character not permitted") }
                    guard code > 0, let scalar = Unicode.Scalar(UInt32(code)) else {
                        throw SQLError(.programLimitExceeded, "requested character too large for encoding: \(code)")
                    }
                    out.append(contentsOf: UTF8.encode(scalar).unsafelyUnwrapped)
                    return true
                }
            }
        case "to_hex":
            let isShort = types[0] == .int32
            return { columns, count, frame in
                Loops.text(columns, count, .varchar, frame) { row, out in
                    let value = isShort ? UInt64(UInt32(bitPattern: columns[0].values(Int32.self)[row])) : UInt64(bitPattern: columns[0].values(Int64.self)[row])
                    out.append(contentsOf: String(value, radix: 16).utf8)
                    return true
                }
            }
        case "md5":
            return map { text, out in
                let digest = MD5.digest(text)
                digest.withUnsafeBufferPointer { TextOutput.appendHex($0, to: &out) }
            }
        case "encode", "decode": return encoding(isEncoding: name == "encode")
        case "convert_from": return convertFrom()
        case "quote_literal":
            return map { text, out in
                if text.contains(UInt8(ascii: "\\")) { TextOutput.append(" E", to: &out) }
                out.append(UInt8(ascii: "'"))
                for byte in text {
                    if byte == UInt8(ascii: "'") || byte == UInt8(ascii: "\\") { out.append(byte) }
                    out.append(byte)
                }
                out.append(UInt8(ascii: "'"))
            }
        case "quote_ident":
            return map { text, out in
                let plain = !text.isEmpty && !(48...57).contains(text[0]) && text.allSatisfy { ($0 >= 97 && $0 <= 122) || ($0 >= 48 && $0 <= 57) || $0 == 95 }
                if plain { return out.append(contentsOf: text) }
                out.append(UInt8(ascii: "\""))
                for byte in text {
                    if byte == UInt8(ascii: "\"") { out.append(byte) }
                    out.append(byte)
                }
                out.append(UInt8(ascii: "\""))
            }
        default: return nil
        }
    }

    /// Bytes as text of a format, or back.
    private static func encoding(isEncoding: Bool) -> Kernel {
        { columns, count, frame in
            Loops.text(columns, count, isEncoding ? .varchar : .bytea, frame) { row, out throws(SQLError) in
                let format = String(view(columns, 1, row)).lowercased()
                try view(columns, 0, row).withBytes { (bytes) throws(SQLError) in
                    switch (isEncoding, format) {
                    case (true, "hex"): TextOutput.appendHex(bytes, to: &out)
                    case (true, "base64"): Base64.append(bytes, to: &out)
                    case (true, "escape"): appendEscaped(bytes, to: &out)
                    case (false, "hex"): out += try TextInput.hex(bytes)
                    case (false, "base64"): try Base64.decode(bytes, to: &out)
                    case (false, "escape"): out += try TextInput.escapedBytes(bytes)
                    default: throw SQLError(.invalidParameterValue, "unrecognized encoding: \"\(format)\"")
                    }
                }
                return true
            }
        }
    }

    /// Bytes of a named encoding as text.
    private static func convertFrom() -> Kernel {
        { columns, count, frame in
            Loops.text(columns, count, .varchar, frame) { row, out throws(SQLError) in
                let encoding = String(view(columns, 1, row))
                try view(columns, 0, row).withBytes { (bytes) throws(SQLError) in
                    switch encoding.uppercased().filter({ $0.isLetter || $0.isNumber }) {
                    case "UTF8", "UNICODE", "SQLASCII":
                        guard !bytes.contains(0), String(validating: bytes, as: UTF8.self) != nil else {
                            throw SQLError(.characterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\"")
                        }
                        out += bytes
                    case "LATIN1", "ISO88591":
                        guard !bytes.contains(0) else {
                            throw SQLError(.characterNotInRepertoire, "invalid byte sequence for encoding \"LATIN1\": 0x00")
                        }
                        for byte in bytes { out += String(UnicodeScalar(byte)).utf8 }
                    default: throw SQLError(.invalidParameterValue, "invalid source encoding name \"\(encoding)\"")
                    }
                }
                return true
            }
        }
    }
}
