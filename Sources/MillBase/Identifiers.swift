/// A catalog object: source, table, view, sink. Stable for its life, never reused; doubles as the PostgreSQL oid.
package struct ObjectID: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
    package let number: UInt32
    package init(_ number: UInt32) { self.number = number }
    package init(from decoder: any Decoder) throws { self.init(try decoder.singleValueContainer().decode(UInt32.self)) }
    package static func < (a: ObjectID, b: ObjectID) -> Bool { a.number < b.number }
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(number)
    }
    package var description: String { String(number) }
}

/// One operator's state table inside a job's stream plan.
package struct TableID: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let number: UInt32
    package init(_ number: UInt32) { self.number = number }
    package static func < (a: TableID, b: TableID) -> Bool { a.number < b.number }
    package var description: String { String(number) }
}

/// A transaction's place in the order in which transactions changed tables, from 1 without gaps; 0 is before the first.
package struct DMLPosition: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let number: UInt64
    package init(_ number: UInt64) { self.number = number }
    package static let zero = DMLPosition(0)
    package var next: DMLPosition { DMLPosition(number + 1) }
    /// Of any but `zero`.
    package var previous: DMLPosition { DMLPosition(number - 1) }
    package static func < (a: DMLPosition, b: DMLPosition) -> Bool { a.number < b.number }
    package var description: String { String(number) }
}

/// A worker thread's index, from 0.
package struct WorkerIndex: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let number: Int
    package init(_ number: Int) { self.number = number }
    package static func < (a: WorkerIndex, b: WorkerIndex) -> Bool { a.number < b.number }
    package var description: String { String(number) }
}

/// A table of an attached catalog as a query reads it: in one state.
package struct CatalogTable: Hashable, Sendable, Codable, CustomStringConvertible {
    /// The name that the catalog is attached under.
    package var catalog: String
    package var namespace: [String]
    package var name: String
    /// What is read in place of its rows, such as `snapshots`; nil for the rows.
    package var part: String?
    /// Which state; nil for a table that is empty, and before it is known.
    package var snapshotID: Int64?
    /// The schema by which its rows are read.
    package var schemaID: Int?

    package init(catalog: String, namespace: [String], name: String, part: String? = nil) {
        self.catalog = catalog
        self.namespace = namespace
        self.name = name
        self.part = part
    }

    package var description: String {
        ([catalog] + namespace + [part.map { "\(name)$\($0)" } ?? name]).joined(separator: ".")
    }
}
