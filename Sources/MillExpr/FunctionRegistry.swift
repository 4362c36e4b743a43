package import MillBase
package import MillColumnar

/// All scalar functions, operators and aggregates, and PostgreSQL's rules for choosing among overloads.
///
/// The binder asks it with the types of a call's arguments and gets an overload, the types that the arguments must be cast
/// to, and the type of the result. Bare literals have type unknown until an overload gives them one.
///
/// The choice, as PostgreSQL's manual gives it in "Functions" and "Operators" of its chapter on type conversion:
/// 1. an overload whose types are the argument types (an operator's one unknown side counts as the type of the other);
/// 2. of those that implicit casts can reach, the ones with most exact matches,
/// 3. then with most preferred types where a cast is needed,
/// 4. then, for unknown arguments, those of the category all agree on, text winning over others,
/// 5. then the ones that take at the unknown places what all known arguments are.
package enum FunctionRegistry {
    /// - Throws: 42883 when no overload fits, 42725 when more than one is best.
    package static func resolve(name: String, arguments: [SQLType]) throws(SQLError) -> ResolvedFunction {
        if name == "greatest" || name == "least" {
            guard !arguments.isEmpty else { throw undefined(name, arguments) }
            let type = try Coercion.common(arguments, of: name == "greatest" ? "GREATEST" : "LEAST")
            let function = ScalarFunction(name: name, argumentTypes: arguments.map { _ in type })
            return ResolvedFunction(function: function, type: type)
        }
        let candidates = (overloads[name] ?? []).compactMap { Candidate($0, arguments.count) }
        switch choose(candidates, arguments, isOperator: false) {
        case .one(let candidate): return candidate.resolved(arguments)
        case .none: throw undefined(name, arguments)
        case .many:
            throw SQLError(
                .ambiguousFunction, "function \(call(name, arguments)) is not unique",
                hint: "Could not choose a best candidate function. You might need to add explicit type casts.")
        }
    }

    /// Resolves a binary operator, or a prefix one when `left` is nil.
    /// - Throws: 42883 when there is none for these types, 42725 when more than one is best.
    package static func resolveOperator(_ symbol: String, left: SQLType?, right: SQLType) throws(SQLError) -> ResolvedFunction {
        let arguments = left.map { [$0, right] } ?? [right]
        let shown = (left.map { "\($0.name) " } ?? "") + "\(symbol) \(right.name)"
        let name = left == nil ? prefixOperators[symbol] : binaryOperators[symbol]
        let candidates = (name.flatMap { overloads[$0] } ?? []).compactMap { Candidate($0, arguments.count) }
        switch choose(candidates, arguments, isOperator: true) {
        case .one(let candidate): return candidate.resolved(arguments)
        case .none:
            throw SQLError(
                .undefinedFunction, "operator does not exist: \(shown)",
                hint: "No operator matches the given name and argument type\(left == nil ? "" : "s"). You might need to add "
                    + (left == nil ? "an explicit type cast." : "explicit type casts."))
        case .many:
            throw SQLError(
                .ambiguousFunction, "operator is not unique: \(shown)",
                hint: "Could not choose a best candidate operator. You might need to add explicit type casts.")
        }
    }

    /// Whether any scalar overload has this name, with whatever arguments.
    package static func isFunction(_ name: String) -> Bool { name == "greatest" || name == "least" || overloads[name] != nil }

    /// All names of scalar functions, sorted: for SHOW FUNCTIONS and completion.
    package static var names: [String] { (Array(overloads.keys) + ["greatest", "least"]).sorted() }

    package static func undefined(_ name: String, _ arguments: [SQLType]) -> SQLError {
        SQLError(
            .undefinedFunction, "function \(call(name, arguments)) does not exist",
            hint: "No function matches the given name and argument types. You might need to add explicit type casts.")
    }

    static func call(_ name: String, _ arguments: [SQLType]) -> String { "\(name)(\(arguments.map(\.name).joined(separator: ", ")))" }

    static let overloads: [String: [FunctionOverload]] = {
        let tables = [
            comparisonSignatures, arithmeticSignatures, mathSignatures, stringSignatures, dateTimeSignatures, jsonSignatures, systemSignatures,
            catalogSignatures, subquerySignatures,
        ]
        let all = tables.flatMap { $0.split(separator: "\n").map { FunctionOverload($0) } }
        return Dictionary(grouping: all, by: \.name)
    }()
}

// MARK: - Choosing

extension FunctionRegistry {
    struct Candidate {
        let overload: FunctionOverload
        let parameters: [FunctionOverload.Parameter]
        let targets: [FunctionOverload.Parameter]

        init?(_ overload: FunctionOverload, _ count: Int) {
            guard let expanded = overload.expanded(count) else { return nil }
            self.overload = overload
            parameters = expanded.parameters
            targets = expanded.targets
        }

        func resolved(_ arguments: [SQLType]) -> ResolvedFunction {
            let types = zip(targets, arguments).map { target, argument in
                switch target {
                case .type(let type): type
                case .any: argument == .unknown ? .varchar : argument
                }
            }
            let function = ScalarFunction(name: overload.name, argumentTypes: types, volatility: overload.volatility)
            return ResolvedFunction(function: function, type: overload.result)
        }

        func matches(_ index: Int, _ type: SQLType) -> Bool { parameters[index] == .type(type.base) }

        func accepts(_ arguments: [SQLType]) -> Bool {
            zip(parameters, arguments).allSatisfy { parameter, argument in
                switch parameter {
                case .any: true
                case .type(let type): Coercion.implicit(from: argument, to: type)
                }
            }
        }

        func category(_ index: Int) -> SQLType.Category {
            if case .type(let type) = parameters[index] { type.category } else { .unknown }
        }

        func isPreferred(_ index: Int) -> Bool {
            if case .type(let type) = parameters[index] { type.isPreferred } else { false }
        }
    }

    enum Choice {
        case none
        case one(Candidate)
        case many
    }

    static func choose(_ all: [Candidate], _ arguments: [SQLType], isOperator: Bool) -> Choice {
        if let exact = all.first(where: { candidate in arguments.indices.allSatisfy { candidate.matches($0, arguments[$0]) } }) { return .one(exact) }
        if isOperator, arguments.count == 2, let known = arguments.first(where: { $0 != .unknown }), arguments.contains(.unknown) {
            if let exact = all.first(where: { $0.matches(0, known) && $0.matches(1, known) }) { return .one(exact) }
        }
        var left = all.filter { $0.accepts(arguments) }
        if left.count <= 1 { return left.first.map { .one($0) } ?? .none }

        left = keepingMost(left) { candidate in arguments.indices.count { arguments[$0] != .unknown && candidate.matches($0, arguments[$0]) } }
        if left.count == 1 { return .one(left[0]) }
        left = keepingMost(left) { candidate in
            arguments.indices.count { index in
                arguments[index] != .unknown && (candidate.matches(index, arguments[index])
                    || (candidate.isPreferred(index) && candidate.category(index) == arguments[index].category))
            }
        }
        if left.count == 1 { return .one(left[0]) }
        return chooseByUnknowns(left, arguments)
    }

    private static func keepingMost(_ candidates: [Candidate], _ score: (Candidate) -> Int) -> [Candidate] {
        let best = candidates.map(score).max() ?? 0
        return candidates.filter { score($0) == best }
    }

    /// Steps 4 and 5, for calls with literals that have no type yet.
    private static func chooseByUnknowns(_ candidates: [Candidate], _ arguments: [SQLType]) -> Choice {
        let unknowns = arguments.indices.filter { arguments[$0] == .unknown }
        guard !unknowns.isEmpty else { return .many }
        var left = candidates
        var settled = true
        var wanted: [Int: SQLType.Category] = [:]
        for index in unknowns {
            let categories = Set(left.map { $0.category(index) })
            if categories.contains(.string) {
                wanted[index] = .string
            } else if categories.count == 1, let only = categories.first {
                wanted[index] = only
            } else {
                settled = false
                break
            }
        }
        if settled {
            var kept = left.filter { candidate in unknowns.allSatisfy { candidate.category($0) == wanted[$0] } }
            for index in unknowns where kept.contains(where: { $0.isPreferred(index) }) { kept = kept.filter { $0.isPreferred(index) } }
            if !kept.isEmpty { left = kept }
            if left.count == 1 { return .one(left[0]) }
        }
        let known = Set(arguments.filter { $0 != .unknown }.map(\.base))
        if known.count == 1, let type = known.first {
            let same = left.filter { candidate in unknowns.allSatisfy { candidate.matches($0, type) } }
            if same.count == 1 { return .one(same[0]) }
        }
        return .many
    }
}

extension FunctionRegistry {
    /// All overloads of a name as a call with columns of the kernel's own types would resolve them; `any` shown as text.
    package static func signatures(of name: String) -> [ResolvedFunction] {
        if name == "greatest" || name == "least" { return [ResolvedFunction(function: ScalarFunction(name: name, argumentTypes: [.int64, .int64]), type: .int64)] }
        return (overloads[name] ?? []).compactMap { overload in
            let types = overload.targets.map { target in if case .type(let type) = target { type } else { SQLType.varchar } }
            return Candidate(overload, types.count)?.resolved(types)
        }
    }
}
