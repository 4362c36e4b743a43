/// Execute: runs a portal, for at most `rowLimit` rows.
package struct ExecuteMessage: Hashable, Sendable {
    package var portal: String
    /// Nil means all rows; on the wire 0 or less.
    package var rowLimit: Int?

    package init(portal: String = "", rowLimit: Int? = nil) {
        self.portal = portal
        self.rowLimit = rowLimit
    }

    init(decoding reader: inout MessageReader) throws(PgWireError) {
        portal = try reader.name()
        let limit = try reader.int32()
        rowLimit = limit > 0 ? Int(limit) : nil
    }
}
