import MillBase
import MillColumnar
import MillConnectorKit

/// Directories that are named by the value of a column in all rows below them, as Hive and Spark lay out tables: `day=2026-01-31/part-0.parquet`.
///
/// Values are escaped as Hive does: the bytes below and `%` as `%` and two hexadecimal digits. NULL, and a text without characters, which
/// could not be told from it, have a name of their own.
enum HivePath {
    static let null = "__HIVE_DEFAULT_PARTITION__"

    /// Whether a directory's name is `column=value`.
    static func isPartition(_ name: Substring) -> Bool { name.firstIndex(of: "=").map { $0 != name.startIndex } ?? false }

    /// The columns of a path's directories, outermost first; the innermost of equal ones counts.
    static func values(in path: String) -> [SplitFile.PartitionValue] {
        var values: [SplitFile.PartitionValue] = []
        for part in path.split(separator: "/").dropLast() where isPartition(part) {
            guard let sign = part.firstIndex(of: "=") else { continue }
            let (column, text) = (unescaped(part[..<sign]), part[part.index(after: sign)...])
            values.removeAll { $0.column == column }
            values.append(.init(column: column, value: text == null ? nil : unescaped(text)))
        }
        return values
    }

    /// What Hive's `FileUtils.escapePathName` escapes.
    private static let escaped: Set<UInt8> = Set(0x01...0x1F).union([0x7F]).union("\"#%'*/:=?\\{[]^".utf8)

    static func directory(_ column: String, _ value: String?) -> String {
        guard let value, !value.isEmpty else { return escape(column) + "=" + null }
        return escape(column) + "=" + escape(value)
    }

    private static func escape(_ text: String) -> String {
        guard text.utf8.contains(where: escaped.contains) else { return text }
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            if escaped.contains(byte) {
                bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func unescaped(_ text: Substring) -> String {
        guard text.utf8.contains(UInt8(ascii: "%")) else { return String(text) }
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16),
                rest.prefix(2).allSatisfy({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "-") })
            {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
