/// RowDescription: the columns of the rows that follow and the format of each.
package struct RowDescription: Hashable, Sendable {
    package var columns: [PgColumn]
    /// None (all text), one for all, or one for each column.
    package var formats: [PgFormat]

    package init(_ columns: [PgColumn], formats: [PgFormat] = []) {
        self.columns = columns
        self.formats = formats
    }

    func encode(into writer: inout MessageWriter) {
        writer.begin(UInt8(ascii: "T"))
        writer.append(Int16(truncatingIfNeeded: columns.count))
        for (index, column) in columns.enumerated() {
            writer.append(cString: column.name)
            writer.append(column.tableOID)
            writer.append(column.columnNumber)
            writer.append(column.type.rawValue)
            writer.append(column.typeSize)
            writer.append(column.typeModifier)
            writer.append(PgFormat.resolve(formats, at: index).rawValue)
        }
        writer.end()
    }
}
