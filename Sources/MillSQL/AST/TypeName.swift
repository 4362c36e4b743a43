/// A type as written, before the catalog says what it means.
package struct TypeName: Hashable, Sendable {
    package indirect enum Kind: Hashable, Sendable {
        /// `numeric(10, 2)`: the name and its modifiers. Spellings of several words are one part: `double precision` keeps its
        /// space; the others become `varchar`, `char`, `varbit`, `timestamp`, `timestamptz`, `time`, `timetz`.
        case named(ObjectName, modifiers: [Int])
        /// `INTERVAL DAY TO SECOND(3)`; plain `interval` is a named type.
        case interval(IntervalFields)
        /// `int[]`, `int ARRAY`, `ARRAY<int>`; one level each.
        case array(TypeName)
        /// `STRUCT<a int, b varchar>`, `ROW<...>`.
        case structure([StructField])
        /// `MAP(varchar, int)`, `MAP<varchar, int>`.
        case map(key: TypeName, value: TypeName)
    }

    package var kind: Kind
    package var span: NodeSpan

    package init(_ kind: Kind, _ span: NodeSpan = NodeSpan(0, 0)) {
        self.kind = kind
        self.span = span
    }
}

package struct StructField: Hashable, Sendable {
    package var name: Identifier
    package var type: TypeName
}

/// What follows `INTERVAL`: `DAY TO SECOND(3)`, `MONTH`, `(3)`.
package struct IntervalFields: Hashable, Sendable {
    package enum Unit: String, Hashable, Sendable, CaseIterable {
        case year, month, day, hour, minute, second
    }

    package var from: Unit?
    package var to: Unit?
    /// Digits of the seconds' fraction.
    package var precision: Int?
}
