package import MillExpr

/// `WATERMARK FOR column AS expression` of a source or table: no record is expected any more whose column is below the greatest value
/// that the expression has had.
package struct SourceWatermark: Hashable, Sendable, Codable {
    /// The column: timestamp or timestamptz.
    package var column: Int
    /// Over the relation's columns, of the column's type.
    package var expression: BoundExpression

    package init(column: Int, expression: BoundExpression) {
        self.column = column
        self.expression = expression
    }
}
