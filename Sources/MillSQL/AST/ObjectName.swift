/// One name as the catalog compares it: an unquoted one is already folded by the dialect, a quoted one is as written.
package struct Identifier: Hashable, Sendable {
    package var name: String
    package var span: NodeSpan

    package init(_ name: String, _ span: NodeSpan = NodeSpan(0, 0)) {
        self.name = name
        self.span = span
    }
}

/// A dotted name: `table`, `schema.table`, `database.schema.table`, or a column reference `t.c`. Never empty.
package struct ObjectName: Hashable, Sendable {
    package var parts: [Identifier]
    package var span: NodeSpan

    package init(_ parts: [Identifier], _ span: NodeSpan = NodeSpan(0, 0)) {
        precondition(!parts.isEmpty, "an object name has at least one part")
        self.parts = parts
        self.span = span
    }

    package init(_ name: String, _ span: NodeSpan = NodeSpan(0, 0)) {
        self.init([Identifier(name, span)], span)
    }

    /// The last part: the object's own name.
    package var last: Identifier { parts[parts.count - 1] }
}
