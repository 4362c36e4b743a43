/// A column's name and type.
package struct Field: Hashable, Sendable, Codable {
    package var name: String
    package var type: SQLType

    package init(_ name: String, _ type: SQLType) {
        self.name = name
        self.type = type
    }
}

/// The columns of a relation in order. Names may repeat in a query's result, not in a table.
package typealias Schema = [Field]
