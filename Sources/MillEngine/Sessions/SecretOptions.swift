import MillBase
import MillCatalog
import MillSQL

extension CatalogObject {
    /// The statement that made it, with `****` for what is secret in its options.
    var shownDefinition: String {
        guard options.contains(where: { SecretOptions.contains($0.name) }) else { return definition }
        switch try? Parser.parseStatement(definition) {  // What cannot be read is not shown.
        case .createSink(var sink):
            sink.options = SecretOptions.masked(sink.options)
            return Statement.createSink(sink).description
        case .createRelation(var relation):
            relation.options = SecretOptions.masked(relation.options)
            return Statement.createRelation(relation).description
        default: return "-- its options hold secrets"
        }
    }
}

/// Options whose values are shown to nobody: the one list of them.
enum SecretOptions {
    private static let words = [
        "password", "secret", "token", "credential", "access.key", "access_key", "access-key", "private.key", "private_key",
        "sasl.jaas.config", "catalog.header",
    ]

    static func contains(_ name: String) -> Bool {
        let name = name.lowercased()
        return words.contains { name.contains($0) }
    }

    static func masked(_ options: [WithOption]) -> [WithOption] {
        options.map { option in
            var masked = option
            if contains(option.key), option.value != nil { masked.value = .string("****") }
            return masked
        }
    }
}
