/// What Describe and Close name: a prepared statement or a portal.
package enum PgObject: Hashable, Sendable {
    case statement(String)
    case portal(String)

    init(decoding reader: inout MessageReader) throws(PgWireError) {
        switch try reader.uint8() {
        case UInt8(ascii: "S"): self = .statement(try reader.name())
        case UInt8(ascii: "P"): self = .portal(try reader.name())
        default: throw .invalidField("object kind")
        }
    }
}
