import MillBase
import MillColumnar

/// A function is stored by its signature, name and argument types; what else is known of it comes from the registry.
extension ScalarFunction: Codable {
    private enum CodingKeys: CodingKey { case name, argumentTypes }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let name = try container.decode(String.self, forKey: .name)
        let types = try container.decode([SQLType].self, forKey: .argumentTypes)
        self = try FunctionRegistry.stored(name: name, argumentTypes: types)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(name, forKey: .name)
        try container.encode(argumentTypes, forKey: .argumentTypes)
    }
}

extension FunctionRegistry {
    /// The function of which a stored plan keeps the signature.
    /// - Throws: 42883 when this program has none that takes exactly these types.
    static func stored(name: String, argumentTypes: [SQLType]) throws(SQLError) -> ScalarFunction {
        if name == "greatest" || name == "least" {
            if let first = argumentTypes.first, argumentTypes.allSatisfy({ $0 == first }) {
                return ScalarFunction(name: name, argumentTypes: argumentTypes)
            }
        } else {
            for overload in overloads[name] ?? [] {
                guard let targets = overload.expanded(argumentTypes.count)?.targets else { continue }
                let fits = zip(targets, argumentTypes).allSatisfy { target, type in target == .any || target == .type(type) }
                if fits { return ScalarFunction(name: name, argumentTypes: argumentTypes, volatility: overload.volatility) }
            }
        }
        throw SQLError(.undefinedFunction, "function \(call(name, argumentTypes)) does not exist")
    }
}
