package import MillColumnar
package import MillIO

/// Rows as text, for scripts that compare what two programs read: a line of JSON with the columns' names and types, then one for each row.
///
/// Times are numbers, floats their 64 bits, decimals and bytes (in hexadecimal) texts.
package enum ExchangeFile {
    package static func write(_ columns: [(String, SQLType)], _ rows: [[Scalar]], _ path: String, _ files: any FileSystem) throws {
        var out: [UInt8] = []
        list(columns, &out) { column, out in list([column.0, column.1.name], &out, string) }
        for row in rows {
            out.append(UInt8(ascii: "\n"))
            list(row, &out, json)
        }
        try write(String(decoding: out, as: UTF8.self), path, files)
    }

    package static func write(_ text: String, _ path: String, _ files: any FileSystem) throws {
        let file = try files.open(path, .create)
        try Array(text.utf8).withUnsafeBytes { try file.write($0, at: 0) }
    }

    private static func list<T>(_ values: [T], _ out: inout [UInt8], _ one: (T, inout [UInt8]) -> Void) {
        out.append(UInt8(ascii: "["))
        for (index, value) in values.enumerated() {
            if index > 0 { out.append(UInt8(ascii: ",")) }
            one(value, &out)
        }
        out.append(UInt8(ascii: "]"))
    }

    private static func string(_ text: String, _ out: inout [UInt8]) {
        Array(text.utf8).withUnsafeBufferPointer { JSONCanonicalizer.appendString($0, to: &out) }
    }

    private static func json(_ value: Scalar, _ out: inout [UInt8]) {
        switch value {
        case .null: out += Array("null".utf8)
        case .boolean(let value): out += Array("\(value)".utf8)
        case .int(let value): out += Array("\(value)".utf8)
        case .float(let value): out += Array((value.isNaN ? "\"nan\"" : "\(value.bitPattern)").utf8)
        case .decimal, .interval: string(Column.constant(value, .numeric, count: 1).text(0) ?? "", &out)
        case .string(let value): string(value, &out)
        case .bytes(let value):
            string(value.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined(), &out)
        }
    }
}
