package import MillColumnar

extension PartitionSpec {
    /// The directory of a partition, `name=value/...`; empty without fields. For people: no reader takes values from it.
    package func path(_ values: [Scalar], _ types: [IcebergType]) -> String {
        zip(fields, zip(values, types)).map { field, pair in
            Self.escaped(field.name) + "=" + Self.escaped(Self.text(pair.0, pair.1, field.transform))
        }.joined(separator: "/")
    }

    private static func text(_ value: Scalar, _ type: IcebergType, _ transform: Transform) -> String {
        switch (value, transform) {
        case (.null, _): return "null"
        case (.int(let value), .year): return padded(1970 + value, 4)
        case (.int(let value), .month):
            return padded(1970 + value.flooredQuotient(12), 4) + "-" + padded(value - value.flooredQuotient(12) * 12 + 1, 2)
        case (.int(let value), .day): return date(value)
        case (.int(let value), .hour): return date(value.flooredQuotient(24)) + "-" + padded(value - value.flooredQuotient(24) * 24, 2)
        default:
            guard let sqlType = type.sqlType else { return "" }
            return Column.constant(value, sqlType, count: 1).text(0) ?? "null"
        }
    }

    private static func date(_ days: Int64) -> String {
        let date = CivilDate(days: Int(days))
        return padded(Int64(date.year), 4) + "-" + padded(Int64(date.month), 2) + "-" + padded(Int64(date.day), 2)
    }

    private static func padded(_ value: Int64, _ digits: Int) -> String {
        let text = String(value.magnitude)
        return (value < 0 ? "-" : "") + String(repeating: "0", count: max(0, digits - text.count)) + text
    }

    /// Letters, digits and `-_.` stay, all else goes by its bytes. Long values are cut: directories have names of 255 bytes at most.
    private static func escaped(_ text: String) -> String {
        var result = ""
        for byte in text.utf8.prefix(60) {
            let scalar = Unicode.Scalar(byte)
            if scalar.isASCII, scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) || "-_.".unicodeScalars.contains(scalar) {
                result.unicodeScalars.append(scalar)
            } else {
                result += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return result
    }
}
