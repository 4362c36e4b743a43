package import MillBase

/// PostgreSQL's text form of a one-dimensional array, `{a,"b c",NULL}`.
///
/// The engine has no array type: what the system relations hold as arrays is text of this form, and the array functions
/// read and write it.
package enum ArrayText {
    /// The elements' text, nil for NULL. Also of a vector, as `pg_index.indkey` is one: numbers with spaces between.
    /// - Throws: 22P02 for a text that is no array of one dimension.
    package static func elements(_ text: String) throws(SQLError) -> [String?] {
        let malformed = SQLError(.invalidTextRepresentation, "malformed array literal: \"\(text)\"")
        let bytes = Array(text.utf8)
        if bytes.allSatisfy({ $0 == space || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) {
            return text.split(separator: " ").map(String.init)
        }
        guard let first = bytes.firstIndex(where: { $0 != space }), let last = bytes.lastIndex(where: { $0 != space }), first < last,
            bytes[first] == UInt8(ascii: "{"), bytes[last] == UInt8(ascii: "}")
        else { throw malformed }
        let body = bytes[(first + 1)..<last]
        if body.allSatisfy({ $0 == space }) { return [] }
        var elements: [String?] = []
        var current: [UInt8] = []
        var state = State()
        func finish() throws(SQLError) {
            if !state.wasQuoted {
                while current.last == space { current.removeLast() }
                guard !current.isEmpty else { throw malformed }
            }
            let element = String(decoding: current, as: UTF8.self)
            elements.append(!state.wasQuoted && element.uppercased() == "NULL" ? nil : element)
            current = []
            state = State()
        }
        for byte in body {
            if state.isEscaped {
                current.append(byte)
                state.isEscaped = false
            } else if byte == UInt8(ascii: "\\") {
                state.isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                state.isQuoted.toggle()
                state.wasQuoted = true
            } else if state.isQuoted {
                current.append(byte)
            } else if byte == UInt8(ascii: ",") {
                try finish()
            } else if byte == UInt8(ascii: "{") || byte == UInt8(ascii: "}") {
                throw malformed
            } else if !(byte == space && (state.wasQuoted || current.isEmpty)) {
                current.append(byte)
            }
        }
        guard !state.isQuoted, !state.isEscaped else { throw malformed }
        try finish()
        return elements
    }

    package static func text(_ elements: [String?]) -> String { "{" + elements.map(quoted).joined(separator: ",") + "}" }

    private struct State {
        var isQuoted = false
        var wasQuoted = false
        var isEscaped = false
    }

    private static let space = UInt8(ascii: " ")

    private static func quoted(_ element: String?) -> String {
        guard let element else { return "NULL" }
        let special = element.unicodeScalars.contains {
            $0 == "," || $0 == "{" || $0 == "}" || $0 == "\"" || $0 == "\\" || $0.properties.isWhitespace
        }
        guard special || element.isEmpty || element.uppercased() == "NULL" else { return element }
        var out = "\""
        for scalar in element.unicodeScalars {
            if scalar == "\"" || scalar == "\\" { out += "\\" }
            out.unicodeScalars.append(scalar)
        }
        return out + "\""
    }
}
