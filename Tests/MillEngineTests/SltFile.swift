import MillBase
import MillIO

/// A `.slt` file: statements with their answers, in the format of sqllogictest.
///
/// Records are separated by empty lines; lines that begin with `#` are comments.
/// ```
/// # description: what the file is about         (the first line, required)
///
/// file /in/events.jsonl                         puts the lines that follow into a file that a source can read
/// {"id": 1}
///
/// statement ok                                  also: statement error 42P01, statement error <regular expression>
/// DROP TABLE IF EXISTS t
/// ----                                          optional: notices, or an error's message, hint and position
/// NOTICE: table "t" does not exist, skipping
///
/// query IT rowsort                              a letter a column: I integer, R numeric or float, B boolean, T all else;
/// SELECT id, name FROM t                        nosort (the default) or rowsort
/// ----
/// 1 ann                                         a line a row; NULL is NULL, the empty string is (empty)
/// ```
struct SltFile {
    enum Kind: Equatable {
        case file(path: String)
        case ok
        case error(pattern: String)
        case query(types: String, isSorted: Bool)
    }

    struct Record {
        var kind: Kind
        /// Number of the first line in the file, from 1.
        var line: Int
        /// The statement, or a file's content.
        var text: [String]
        /// What follows `----`; nil without it.
        var expected: [String]?
    }

    struct Malformed: Error, CustomStringConvertible {
        var line: Int
        var reason: String
        var description: String { "line \(line): \(reason)" }
    }

    var records: [Record] = []
    private let lines: [String]

    init(_ text: String) throws(Malformed) {
        lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        guard lines.first?.hasPrefix("# description: ") == true else { throw Malformed(line: 1, reason: "no \"# description: \" in the first line") }
        var next = 0
        while next < lines.count {
            if lines[next].isEmpty || lines[next].hasPrefix("#") {
                next += 1
                continue
            }
            let end = lines[next...].firstIndex(of: "") ?? lines.count
            let body = Array(lines[next + 1..<end])
            let split = body.firstIndex(of: "----")
            records.append(
                Record(
                    kind: try Self.kind(lines[next], line: next + 1), line: next + 1, text: Array(body[..<(split ?? body.count)]),
                    expected: split.map { Array(body[($0 + 1)...]) }))
            next = end
        }
    }

    private static func kind(_ line: String, line number: Int) throws(Malformed) -> Kind {
        let words = line.split(separator: " ").map(String.init)
        switch (words[0], words.dropFirst().first) {
        case ("file", let path?): return .file(path: path)
        case ("statement", "ok"): return .ok
        case ("statement", "error"): return .error(pattern: words.dropFirst(2).joined(separator: " "))
        case ("query", let types?) where types.allSatisfy("IRTB".contains):
            let mode = words.dropFirst(2).first ?? "nosort"
            guard mode == "rowsort" || mode == "nosort" else { throw Malformed(line: number, reason: "unknown order \"\(mode)\"") }
            return .query(types: types, isSorted: mode == "rowsort")
        default: throw Malformed(line: number, reason: "unknown record \"\(line)\"")
        }
    }

    /// The file's text with other expectations.
    func text(replacing expectations: [Int: [String]]) -> String {
        var result: [String] = []
        var next = 0
        for record in records {
            guard let lines = expectations[record.line] else { continue }
            let head = record.line + record.text.count
            result += self.lines[next..<head]
            if case .query = record.kind { result += ["----"] + lines } else if !lines.isEmpty { result += ["----"] + lines }
            next = head + (record.expected.map { $0.count + 1 } ?? 0)
        }
        return (result + self.lines[next...]).joined(separator: "\n")
    }
}
