import MillColumnar

/// One row of the registry: a name, what it takes and what it gives.
///
/// The tables are written as signatures, one a line: `name(type, type) -> type`, with `variadic any` as a last argument
/// that repeats, `any` for a type left as it is, and `stable` or `volatile` at the end where results may change. A
/// signature whose arguments are cast before the kernel sees them says so: `equal(date => timestamp, timestamp)`.
struct FunctionOverload: Sendable {
    enum Parameter: Hashable, Sendable {
        case type(SQLType)
        case any
    }

    let name: String
    /// What a call is matched against.
    let parameters: [Parameter]
    /// What the kernel takes.
    let targets: [Parameter]
    let isVariadic: Bool
    let result: SQLType
    let volatility: ScalarFunction.Volatility

    /// The parameters as a call with `count` arguments sees them, or nil when it does not fit.
    func expanded(_ count: Int) -> (parameters: [Parameter], targets: [Parameter])? {
        if parameters.count == count { return (parameters, targets) }
        guard isVariadic, count >= parameters.count, let last = parameters.last, let target = targets.last else { return nil }
        let more = count - parameters.count
        return (parameters + Array(repeating: last, count: more), targets + Array(repeating: target, count: more))
    }

    /// Reads one signature. A malformed one is a mistake in a table, found by the first call of any function.
    init(_ signature: Substring) {
        guard let open = signature.firstIndex(of: "("), let close = signature.lastIndex(of: ")") else {
            preconditionFailure("a signature has parentheses: \(signature)")
        }
        name = String(signature[..<open])
        var parameters: [Parameter] = []
        var targets: [Parameter] = []
        var isVariadic = false
        for part in signature[signature.index(after: open)..<close].split(separator: ",") {
            var words = part.split(separator: " ")
            if words.first == "variadic" {
                isVariadic = true
                words.removeFirst()
            }
            let sides = words.joined(separator: " ").split(separator: "=>").map { Self.parameter($0.split(separator: " ").joined(separator: " ")) }
            parameters.append(sides[0])
            targets.append(sides[sides.count - 1])
        }
        var rest = signature[signature.index(after: close)...].split(separator: " ")
        precondition(rest.first == "->", "a signature has a result: \(signature)")
        rest.removeFirst()
        switch rest.last {
        case "stable": volatility = .stable
        case "volatile": volatility = .volatile
        default: volatility = .immutable
        }
        if volatility != .immutable { rest.removeLast() }
        guard case .type(let result) = Self.parameter(rest.joined(separator: " ")) else {
            preconditionFailure("a result has a type: \(signature)")
        }
        self.parameters = parameters
        self.targets = targets
        self.isVariadic = isVariadic
        self.result = result
    }

    private static func parameter(_ name: String) -> Parameter {
        if name == "any" { return .any }
        guard let type = TypeNames.type(named: name) else { preconditionFailure("a signature names a type: \(name)") }
        return .type(type)
    }
}
