package import MillBase

/// Where in the statement's text a node was written.
///
/// Two nodes that differ only in their position are the same SQL, so all spans are equal and add nothing to a hash:
/// that is what lets `parse(print(ast)) == ast` be checked with plain `==`.
package struct NodeSpan: Hashable, Sendable {
    /// UTF-8 bytes of the text handed to the parser.
    package var source: SourceSpan

    package init(_ source: SourceSpan) {
        self.source = source
    }

    package init(_ start: Int, _ end: Int) {
        source = SourceSpan(start, end)
    }

    package static func == (_: NodeSpan, _: NodeSpan) -> Bool { true }

    package func hash(into _: inout Hasher) {}
}
