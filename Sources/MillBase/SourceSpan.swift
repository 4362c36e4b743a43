/// A range of UTF-8 bytes in a statement's text: `start` inclusive, `end` exclusive, both from 0.
package struct SourceSpan: Hashable, Sendable, Codable {
    package var start: Int
    package var end: Int

    package init(_ start: Int, _ end: Int) {
        self.start = start
        self.end = end
    }

    /// The smallest span that holds both.
    package func union(_ other: SourceSpan) -> SourceSpan {
        SourceSpan(min(start, other.start), max(end, other.end))
    }
}
