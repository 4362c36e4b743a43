/// Writes a tree back as SQL that parses to an equal tree.
///
/// The law, held by tests over generated statements: `parse(print(ast)) == ast`. SHOW CREATE, EXPLAIN, the deployment to
/// other engines and stored definitions read its text. One line, words in upper case, names quoted only where they need
/// it, parentheses only where precedence asks for them. Recursion is bounded by the parser's limit on height.
package struct SQLPrinter {
    package private(set) var text = ""

    package init() {}

    mutating func write(_ piece: String) { text += piece }

    /// `piece` for each item with `separator` between.
    mutating func list<Item>(_ items: [Item], separator: String = ", ", _ piece: (inout SQLPrinter, Item) -> Void) {
        var isFirst = true
        for item in items {
            if !isFirst { write(separator) }
            isFirst = false
            piece(&self, item)
        }
    }

    /// The same in parentheses.
    mutating func parenthesized<Item>(_ items: [Item], _ piece: (inout SQLPrinter, Item) -> Void) {
        write("(")
        list(items, piece)
        write(")")
    }

    // MARK: Names and constants

    /// Quoted if it is not a plain lower-case word, or is a keyword that may not stand everywhere.
    mutating func write(_ identifier: Identifier) { write(Self.quoted(identifier.name)) }

    mutating func write(_ name: ObjectName) {
        list(name.parts, separator: ".") { $0.write($1) }
    }

    mutating func writeNames(_ names: [Identifier]) {
        parenthesized(names) { $0.write($1) }
    }

    /// ` (a, b)`, or nothing.
    mutating func writeOptionalNames(_ names: [Identifier]) {
        guard !names.isEmpty else { return }
        write(" ")
        writeNames(names)
    }

    package static func quoted(_ name: String) -> String {
        if isPlain(name), Keyword.byText[name].map({ $0.category == .unreserved }) ?? true { return name }
        return quotedAlways(name)
    }

    /// A word that the lexer gives back unchanged.
    static func isPlain(_ name: String) -> Bool {
        guard let first = name.utf8.first, first == UInt8(ascii: "_") || isLower(first) else { return false }
        return name.utf8.allSatisfy { isLower($0) || $0.isDigit || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "$") }
    }

    private static func isLower(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "a") < 26 }

    static func quotedAlways(_ name: String) -> String { "\"" + doubled(name, "\"") + "\"" }

    mutating func writeString(_ string: String) { write("'" + Self.doubled(string, "'") + "'") }

    private static func doubled(_ text: String, _ quote: Character) -> String {
        guard text.utf8.contains(quote.asciiValue ?? 0) else { return text }
        var out = ""
        for scalar in text.unicodeScalars {
            out.unicodeScalars.append(scalar)
            if scalar == quote.unicodeScalars.first { out.unicodeScalars.append(scalar) }
        }
        return out
    }
}

extension Statement: CustomStringConvertible {
    /// The statement as SQL, without a semicolon.
    package var description: String {
        var printer = SQLPrinter()
        printer.write(self)
        return printer.text
    }
}

extension Query: CustomStringConvertible {
    /// The query as SQL.
    package var description: String {
        var printer = SQLPrinter()
        printer.write(self)
        return printer.text
    }
}

extension Expression: CustomStringConvertible {
    /// The expression as SQL.
    package var description: String {
        var printer = SQLPrinter()
        printer.write(self)
        return printer.text
    }
}

extension TypeName: CustomStringConvertible {
    /// The type as SQL.
    package var description: String {
        var printer = SQLPrinter()
        printer.write(self)
        return printer.text
    }
}

extension ObjectName: CustomStringConvertible {
    /// The name as SQL, quoted where needed.
    package var description: String {
        var printer = SQLPrinter()
        printer.write(self)
        return printer.text
    }
}

extension Identifier: CustomStringConvertible {
    /// The name as SQL, quoted where needed.
    package var description: String { SQLPrinter.quoted(name) }
}
