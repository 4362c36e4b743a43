import Yams

/// Reads a variables file, with the rules of the YAML 1.1 loader that Ansible uses: `yes` and `no` are booleans, plain
/// numbers are numbers, everything else is text. `<<` merges a map into the one it stands in.
extension TemplateValue {
    /// Bytes of a variables file at most.
    static let yamlBytesMax = 4 << 20
    /// Values in it at most, aliases counted where they are used.
    static let yamlValuesMax = 200_000
    /// Values inside one another at most.
    static let yamlNestingMax = 50

    /// - Parameter name: the file's name, for messages.
    /// - Throws: `TemplateError` for text that is not YAML or is beyond the bounds.
    package init(yaml text: String, name: String) throws(TemplateError) {
        func refused(_ reason: TemplateError.Reason, _ line: Int = 1) -> TemplateError { TemplateError(reason, name: name, line: line) }
        guard text.utf8.count <= Self.yamlBytesMax else { throw refused(.limit("file is larger than \(Self.yamlBytesMax) bytes")) }
        guard Self.nestsModestly(text) else { throw refused(.limit("values nest deeper than \(Self.yamlNestingMax) levels")) }
        let node: Node?
        do {
            node = try Yams.compose(yaml: text)
        } catch let error as YamlError {
            throw refused(.syntax(Self.problem(error)), Self.line(error))
        } catch {
            throw refused(.syntax("\(error)"))
        }
        guard let node else {
            self = .none
            return
        }
        var left = Self.yamlValuesMax
        self = try Self.value(of: node, nesting: 0, left: &left, name: name)
    }

    /// The top level of a variables file: a map of names, or nothing.
    package static func variables(yaml text: String, name: String) throws(TemplateError) -> [String: TemplateValue] {
        switch try TemplateValue(yaml: text, name: name) {
        case .none: return [:]
        case .map(let entries): return Dictionary(entries.map { ($0.key, $0.value) }, uniquingKeysWith: { _, last in last })
        case let other: throw TemplateError(.invalidValue("a variables file holds a map, not \(other.typeName)"), name: name, line: 1)
        }
    }

    /// False for text whose brackets or one-line dashes could nest beyond what the recursive loader's stack bears.
    private static func nestsModestly(_ text: String) -> Bool {
        var open = 0
        var dashes = 0
        var previous: UInt8 = 0x0a
        let indicators: [UInt8] = [UInt8(ascii: "-"), UInt8(ascii: "?"), UInt8(ascii: ":")]
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "["), UInt8(ascii: "{"): open += 1
            case UInt8(ascii: "]"), UInt8(ascii: "}"): open = max(0, open - 1)
            case UInt8(ascii: "\n"): dashes = 0
            case UInt8(ascii: " ") where indicators.contains(previous), UInt8(ascii: "\t") where indicators.contains(previous): dashes += 1
            default: break
            }
            if open > yamlNestingMax || dashes > yamlNestingMax * 8 { return false }
            previous = byte
        }
        return true
    }

    private static func value(of node: Node, nesting: Int, left: inout Int, name: String) throws(TemplateError) -> TemplateValue {
        let line = node.mark?.line ?? 1
        left -= 1
        guard left >= 0, nesting <= yamlNestingMax else {
            throw TemplateError(.limit("variables hold more than \(yamlValuesMax) values or nest too deep"), name: name, line: line)
        }
        switch node {
        case .scalar(let scalar): return value(of: scalar, node)
        case .sequence(let sequence):
            var items: [TemplateValue] = []
            for item in sequence { items.append(try value(of: item, nesting: nesting + 1, left: &left, name: name)) }
            return .list(items)
        case .mapping(let mapping):
            var entries: [Entry] = []
            var merged: [Entry] = []
            for (key, item) in mapping {
                guard case .scalar(let scalar) = key else {
                    throw TemplateError(.invalidValue("a map's key must be a scalar"), name: name, line: key.mark?.line ?? line)
                }
                let value = try value(of: item, nesting: nesting + 1, left: &left, name: name)
                if scalar.string == "<<", scalar.style == .plain {
                    merged += mergedEntries(value)
                } else {
                    entries.append(Entry(scalar.string, value))
                }
            }
            var known = Set(entries.map(\.key))
            return .map(merged.filter { known.insert($0.key).inserted } + entries)
        case .alias:
            throw TemplateError(.syntax("alias stands for nothing"), name: name, line: line)
        }
    }

    private static func mergedEntries(_ value: TemplateValue) -> [Entry] {
        switch value {
        case .map(let entries): entries
        case .list(let items): items.flatMap { item in if case .map(let entries) = item { entries } else { [Entry]() } }
        default: []
        }
    }

    private static func value(of scalar: Node.Scalar, _ node: Node) -> TemplateValue {
        guard scalar.style == .plain || scalar.style == .any else { return .string(scalar.string) }
        if node.null != nil { return .none }
        if let value = node.bool { return .bool(value) }
        if let value = node.int { return .int(value) }
        // A plain word such as "infinity" is text in YAML: only what looks like a number is one.
        if scalar.string.utf8.contains(where: { (0x30...0x39).contains($0) }) || scalar.string.lowercased().hasSuffix(".inf")
            || scalar.string.lowercased() == ".nan", let value = node.float
        {
            return .float(value)
        }
        return .string(scalar.string)
    }

    private static func problem(_ error: YamlError) -> String {
        switch error {
        case .scanner(_, let problem, _, _), .parser(_, let problem, _, _), .composer(_, let problem, _, _): problem
        default: "\(error)"
        }
    }

    private static func line(_ error: YamlError) -> Int {
        switch error {
        case .scanner(_, _, let mark, _), .parser(_, _, let mark, _), .composer(_, _, let mark, _): mark.line
        default: 1
        }
    }
}
