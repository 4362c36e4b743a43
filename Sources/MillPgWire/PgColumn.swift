/// One column of a result as RowDescription tells it.
package struct PgColumn: Hashable, Sendable {
    package var name: String
    package var type: PgOID
    /// Bytes of a fixed-width type, -1 when the width varies.
    package var typeSize: Int16
    /// `atttypmod`: -1 when the type has no modifier. For numeric(p, s) it is `(p << 16 | s) + 4`, for varchar(n) `n + 4`.
    package var typeModifier: Int32
    /// The table and the column number in it when the column is a plain reference; 0 otherwise.
    package var tableOID: UInt32
    package var columnNumber: Int16

    package init(
        _ name: String, _ type: PgOID, typeSize: Int16? = nil, typeModifier: Int32 = -1, tableOID: UInt32 = 0, columnNumber: Int16 = 0
    ) {
        self.name = name
        self.type = type
        self.typeSize = typeSize ?? type.typeSize
        self.typeModifier = typeModifier
        self.tableOID = tableOID
        self.columnNumber = columnNumber
    }
}
