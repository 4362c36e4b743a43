/// Walks a template's statements and writes the output.
///
/// Scopes: the variables file is the outermost; a loop's body is a scope for its names and for `set`; branches are none,
/// as in Jinja. A variable of the file whose text is a template is rendered when it is first used and remembered; if the
/// whole text is one `{{ expression }}`, the value keeps its type, as Ansible does it. Variables that refer to each other
/// in a circle are found by the depth bound.
struct TemplateRenderer {
    /// Variables inside variables at most.
    static let depthMax = 20
    /// Bytes of output, or of any string made on the way, at most.
    static let outputBytesMax = 64 << 20
    /// Expressions inside one another at most, through all variables.
    static let heightMax = 300

    let name: String
    /// Expressions evaluated at most.
    private let stepsMax: Int
    private let variables: [String: TemplateValue]
    private var rendered: [String: TemplateValue] = [:]
    private var scopes: [[String: TemplateValue]] = [[:]]
    private var depth = 0
    private var steps = 0
    private var height = 0

    /// - Parameter stepsMax: the bound's default is some seconds' work, where a template takes microseconds.
    init(name: String, variables: [String: TemplateValue], stepsMax: Int = 10_000_000) {
        self.name = name
        self.stepsMax = stepsMax
        self.variables = variables
    }

    mutating func render(_ nodes: [TemplateNode]) throws(TemplateError) -> String {
        var output = ""
        try render(nodes, into: &output)
        return output
    }

    private mutating func render(_ nodes: [TemplateNode], into output: inout String) throws(TemplateError) {
        for node in nodes {
            switch node {
            case .text(let text):
                output += text
                try checkSize(output, line: 1)
            case .print(let expression, let line):
                output += try evaluate(expression).text
                try checkSize(output, line: line)
            case .branches(let branches):
                for (condition, body) in branches {
                    if let condition, try !evaluate(condition).isTrue { continue }
                    try render(body, into: &output)
                    break
                }
            case .loop(let loop):
                try render(loop, into: &output)
            case .set(let names, let expression, let line):
                try assign(names, try evaluate(expression), line: line)
            case .capture(let name, let body):
                var text = ""
                try render(body, into: &text)
                scopes[scopes.count - 1][name] = .string(text)
            }
        }
    }

    private mutating func render(_ loop: TemplateNode.Loop, into output: inout String) throws(TemplateError) {
        var items = try self.items(of: try evaluate(loop.over), line: loop.line)
        scopes.append([:])
        if let filter = loop.filter {
            var kept: [TemplateValue] = []
            for item in items {
                try assign(loop.names, item, line: loop.line)
                if try evaluate(filter).isTrue { kept.append(item) }
            }
            items = kept
        }
        for (index, item) in items.enumerated() {
            scopes[scopes.count - 1] = ["loop": Self.loopValue(index: index, items: items)]
            try assign(loop.names, item, line: loop.line)
            try render(loop.body, into: &output)
        }
        scopes.removeLast()
        if items.isEmpty { try render(loop.otherwise, into: &output) }
    }

    /// What `loop` is inside a loop's body.
    private static func loopValue(index: Int, items: [TemplateValue]) -> TemplateValue {
        var entries: [TemplateValue.Entry] = [
            .init("index", .int(index + 1)), .init("index0", .int(index)), .init("first", .bool(index == 0)),
            .init("last", .bool(index == items.count - 1)), .init("length", .int(items.count)),
            .init("revindex", .int(items.count - index)), .init("revindex0", .int(items.count - index - 1)),
        ]
        if index > 0 { entries.append(.init("previtem", items[index - 1])) }
        if index + 1 < items.count { entries.append(.init("nextitem", items[index + 1])) }
        return .map(entries)
    }

    private mutating func assign(_ names: [String], _ value: TemplateValue, line: Int) throws(TemplateError) {
        guard names.count > 1 else {
            scopes[scopes.count - 1][names[0]] = value
            return
        }
        let parts = try items(of: value, line: line)
        guard parts.count == names.count else { throw invalid("cannot take \(names.count) names from \(parts.count) values", line) }
        for (name, part) in zip(names, parts) { scopes[scopes.count - 1][name] = part }
    }

    /// What a loop over `value` runs through: items, keys of a map, characters of a string.
    func items(of value: TemplateValue, line: Int) throws(TemplateError) -> [TemplateValue] {
        switch value {
        case .list(let items): return items
        case .map(let entries): return entries.map { .string($0.key) }
        case .string(let text): return text.unicodeScalars.map { .string(String(Character($0))) }
        default: throw invalid("cannot loop over \(value.typeName)", line)
        }
    }

    /// The variable's value from the innermost scope that has it; nil if nobody defined it.
    mutating func lookUp(_ variable: String, line: Int) throws(TemplateError) -> TemplateValue? {
        for scope in scopes.reversed() {
            if let value = scope[variable] { return value }
        }
        if let value = rendered[variable] { return value }
        guard let value = variables[variable] else { return nil }
        guard depth < Self.depthMax else {
            throw TemplateError(
                .limit("variable \"\(variable)\" stands on more than \(Self.depthMax) others, or on itself"), name: name, line: line)
        }
        // A variable is rendered in the outermost scope: a loop's names do not reach into the file's values.
        let outer = scopes
        scopes = [[:]]
        depth += 1
        let result = try renderValue(value, of: variable)
        depth -= 1
        scopes = outer
        rendered[variable] = result
        return result
    }

    /// A value of the variables file with the templates in it rendered.
    private mutating func renderValue(_ value: TemplateValue, of variable: String) throws(TemplateError) -> TemplateValue {
        switch value {
        case .string(let text):
            guard text.contains("{{") || text.contains("{%") || text.contains("{#") else { return value }
            let nodes = try TemplateParser.parse(text, name: "variable \"\(variable)\"")
            if nodes.count == 1, case .print(let expression, _) = nodes[0] { return try evaluate(expression) }
            return .string(try render(nodes))
        case .list(let items):
            var result: [TemplateValue] = []
            for item in items { result.append(try renderValue(item, of: variable)) }
            return .list(result)
        case .map(let entries):
            var result: [TemplateValue.Entry] = []
            for entry in entries { result.append(.init(entry.key, try renderValue(entry.value, of: variable))) }
            return .map(result)
        default: return value
        }
    }

    /// Counts a step, so that loops inside loops end, and the height of the stack. No `ascend` follows an error: it ends
    /// the rendering.
    mutating func descend(line: Int) throws(TemplateError) {
        steps += 1
        height += 1
        guard height <= Self.heightMax else {
            throw TemplateError(.limit("expressions and variables nest deeper than \(Self.heightMax) levels"), name: name, line: line)
        }
        guard steps <= stepsMax else {
            throw TemplateError(.limit("template takes more than \(stepsMax) steps"), name: name, line: line)
        }
    }

    mutating func ascend() { height -= 1 }

    func checkSize(_ text: String, line: Int) throws(TemplateError) {
        guard text.utf8.count <= Self.outputBytesMax else {
            throw TemplateError(.limit("text grows over \(Self.outputBytesMax) bytes"), name: name, line: line)
        }
    }

    func invalid(_ message: String, _ line: Int) -> TemplateError {
        TemplateError(.invalidValue(message), name: name, line: line)
    }
}
