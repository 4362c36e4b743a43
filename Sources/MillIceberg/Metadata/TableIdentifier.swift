/// A table's name within its catalog.
package struct TableIdentifier: Hashable, Sendable, CustomStringConvertible {
    package var namespace: [String]
    package var name: String

    package init(namespace: [String], name: String) { (self.namespace, self.name) = (namespace, name) }

    package init(_ json: JSONValue) throws(BadBytes) {
        var namespace: [String] = []
        for level in try json.required("namespace").array ?? [] {
            guard let text = level.string else { throw BadBytes("a level of \"namespace\" is no text") }
            namespace.append(text)
        }
        self.init(namespace: namespace, name: try json.requiredString("name"))
    }

    package var json: JSONValue { ["namespace": .array(namespace.map { .string($0) }), "name": .string(name)] }

    package var description: String { (namespace + [name]).joined(separator: ".") }
}
