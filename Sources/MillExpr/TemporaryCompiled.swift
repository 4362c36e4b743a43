package import MillBase
package import MillColumnar
package struct RowErrors { package struct Entry { package var row: Int; package var error: SQLError }; package var entries: [Entry] = []; package init() {} }
package final class CompiledExpression { 
  let e: BoundExpression
  package init(_ expression: BoundExpression) throws(SQLError) { e = expression }
  package func evaluate(_ batch: DeltaBatch, errors: inout RowErrors) -> Column { if case .column(let i, _) = e { return batch.columns[i] }; if case .literal(let s, let t) = e { return Column.constant(s, t, count: batch.count) }; fatalError() }
}
