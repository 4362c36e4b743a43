package import MillBase

/// The options of `WITH (...)` on their way into a connector: each is taken once, and what nobody took is an error.
///
/// Names are compared as written. A connector takes what it knows, then calls `finish`, which names the first unknown option
/// and lists the known ones.
package struct ConnectorOptions: Sendable {
    /// What the errors call it, such as `kafka`.
    package let connector: String
    private var values: [String: String]
    private var known: Set<String> = []

    package init(connector: String, _ values: [String: String]) {
        self.connector = connector
        self.values = values
        self.values["connector"] = nil
    }

    /// The value of the first of `names` that is given; they are spellings of one option, so two of them are an error.
    package mutating func take(_ names: String...) throws(SQLError) -> String? { try take(names) }

    package mutating func take(_ names: [String]) throws(SQLError) -> String? {
        known.formUnion(names)
        let given = names.filter { values[$0] != nil }
        if given.count > 1 {
            throw SQLError(.invalidParameterValue, "options \"\(given[0])\" and \"\(given[1])\" of connector \"\(connector)\" mean the same", hint: "Give one of them.")
        }
        return given.first.flatMap { values.removeValue(forKey: $0) }
    }

    func has(_ name: String) -> Bool { values[name] != nil }

    /// The same for an option that must be there.
    package mutating func require(_ name: String, or other: String? = nil, hint: String) throws(SQLError) -> String {
        let value = if let other { try take(name, other) } else { try take(name) }
        guard let value, !value.isEmpty else {
            throw SQLError(.invalidParameterValue, "option \"\(name)\" of connector \"\(connector)\" is missing", hint: hint)
        }
        return value
    }

    /// All options that begin with `prefix`, under the rest of their names.
    package mutating func takeAll(prefix: String) -> [String: String] {
        known.insert(prefix + "*")
        var found: [String: String] = [:]
        for name in values.keys.filter({ $0.hasPrefix(prefix) }) {
            found[String(name.dropFirst(prefix.count))] = values.removeValue(forKey: name)
        }
        return found
    }

    /// - Throws: 22023 when an option is left that nobody took.
    package func finish() throws(SQLError) {
        guard let unknown = values.keys.min() else { return }
        let close = known.filter { !$0.hasSuffix("*") }.map { (name: $0, distance: editDistance(unknown.lowercased(), $0, atMost: 3)) }
            .filter { $0.distance <= min(3, max(1, unknown.count / 3)) }.min { ($0.distance, $0.name) < ($1.distance, $1.name) }
        let guess = close.map { "Perhaps you meant \"\($0.name)\". " } ?? ""
        throw SQLError(
            .invalidParameterValue, "connector \"\(connector)\" has no option \"\(unknown)\"",
            hint: "\(guess)Its options are: \(known.sorted().joined(separator: ", ")).")
    }

    func invalid(_ name: String, _ value: String, expected: String) -> SQLError {
        SQLError(.invalidParameterValue, "invalid value \"\(value)\" for option \"\(name)\" of connector \"\(connector)\"", hint: "Expected \(expected).")
    }
}
