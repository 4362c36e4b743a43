/// How a value's bytes are to be read.
package enum PgFormat: Int16, Hashable, Sendable {
    case text = 0
    case binary = 1

    /// The format of the value at `index`: none given means text, one given means that one for all.
    package static func resolve(_ formats: [PgFormat], at index: Int) -> PgFormat {
        if formats.count == 1 { return formats[0] }
        return index < formats.count ? formats[index] : .text
    }
}
