package import MillBase
package import MillColumnar

/// An expression ready to run over batches.
///
/// A tree of closures, one call a node and batch; the loops over rows are in `Kernels/`, chosen here once by a switch on
/// function and type. Constants are folded first, and hot kernels take a constant operand without making a column of it.
///
/// Errors belong to rows: a row that fails is NULL and has an entry. Every operand is evaluated over all rows, then errors
/// of rows that do not depend on the operand are dropped: of a CASE branch not taken, of a COALESCE argument not reached,
/// of an AND operand where another operand is false (OR: true), on whichever side that is. So moving a conjunct never
/// changes what fails.
///
/// Not thread-safe: each worker compiles its own.
package final class CompiledExpression {
    package let type: SQLType
    private let root: Evaluator

    /// - Throws: 42P02 for a parameter that was not replaced, XX000 for a call that the registry would not make.
    package init(_ expression: BoundExpression) throws(SQLError) {
        type = expression.type
        root = try ExpressionCompiler.compile(expression.folded())
    }

    /// The value of the expression for each row of `batch`; failed rows are appended to `errors`, at most once each.
    /// The result may be one of the batch's own columns.
    package func evaluate(_ batch: DeltaBatch, context: EvaluationContext = EvaluationContext(), errors: inout RowErrors) -> Column {
        let frame = EvaluationFrame(context, RowErrors())
        let column = root(batch, frame)
        if frame.errors.isEmpty { return column }
        errors.append(RowErrorRules.firstOfEachRow(frame.errors.entries))
        return RowErrorRules.nullified(column, frame.errors.entries)
    }
}

typealias Evaluator = (_ batch: DeltaBatch, _ frame: EvaluationFrame) -> Column

/// Which errors count, and what they do to values.
enum RowErrorRules {
    static func firstOfEachRow(_ entries: [RowErrors.Entry]) -> [RowErrors.Entry] {
        var seen: Set<Int> = []
        return entries.filter { seen.insert($0.row).inserted }.sorted { $0.row < $1.row }
    }

    /// The column with the failed rows missing; a copy where one of them is not.
    static func nullified(_ column: Column, _ entries: [RowErrors.Entry]) -> Column {
        guard entries.contains(where: { !column.isNull($0.row) }) else { return column }
        let copy = Column(column.type, uninitialized: column.count)
        copy.data.copyMemory(from: column.data, byteCount: column.count * column.type.physical.stride)
        copy.keep(column.heaps)
        if let validity = column.validity { copy.ensureValidity().update(from: validity, count: copy.validityWords) }
        for entry in entries { copy.setNull(entry.row) }
        return copy
    }
}

/// Bound expression to closures.
enum ExpressionCompiler {
    static func compile(_ expression: BoundExpression) throws(SQLError) -> Evaluator {
        switch expression {
        case .column(let index, _): return { batch, _ in batch.columns[index] }
        case .literal(let scalar, let type): return { batch, _ in Column.constant(scalar, type, count: batch.count) }
        case .parameter(let number, _): throw SQLError(.undefinedParameter, "there is no parameter $\(number)")
        case .call(let function, let arguments, let type, let span): return try call(function, arguments, type, span)
        case .cast(let operand, let type, let span): return try cast(operand, type, span)
        case .and(let operands): return try Connectives.junction(operands, deciding: 0)
        case .or(let operands): return try Connectives.junction(operands, deciding: 1)
        case .not(let operand):
            let operand = try compile(operand)
            return { batch, frame in Loops.unary(operand(batch, frame), .boolean) { (value: UInt8) in value ^ 1 } }
        case .isNull(let operand):
            let operand = try compile(operand)
            return { batch, frame in Connectives.isNull(operand(batch, frame)) }
        case .isNotDistinct(let left, let right):
            let left = try compile(left)
            let right = try compile(right)
            return { batch, frame in Connectives.isNotDistinct(left(batch, frame), right(batch, frame)) }
        case .caseWhen(let branches, let otherwise, let type): return try Connectives.caseWhen(branches, otherwise, type)
        case .coalesce(let operands, let type): return try Connectives.coalesce(operands, type)
        case .inList(let operand, let list, let negated):
            let test = InListKernel.make(operand.type, list, negated: negated)
            let operand = try compile(operand)
            return { batch, frame in test(operand(batch, frame)) }
        }
    }

    private static func call(_ function: ScalarFunction, _ arguments: [BoundExpression], _ type: SQLType, _ span: SourceSpan?) throws(SQLError) -> Evaluator {
        let constants = arguments.map { argument -> Scalar? in if case .literal(let scalar, _) = argument { scalar } else { nil } }
        let (kernel, usesConstant) = try KernelTable.kernel(function, result: type, constants: constants)
        var evaluators: [Evaluator] = []
        for (index, argument) in arguments.enumerated() where index != usesConstant { evaluators.append(try compile(argument)) }
        let operands = evaluators
        return { batch, frame in
            let before = frame.errors.entries.count
            let columns = operands.map { $0(batch, frame) }
            let own = frame.errors.entries.count
            let result = kernel(columns, batch.count, frame)
            if frame.errors.entries.count > own { frame.errors.locate(from: own, at: span) }
            // A row whose argument failed has no value, whatever a function that accepts NULL would make of it.
            return own > before ? RowErrorRules.nullified(result, Array(frame.errors.entries[before..<own])) : result
        }
    }

    private static func cast(_ operand: BoundExpression, _ type: SQLType, _ span: SourceSpan?) throws(SQLError) -> Evaluator {
        let kernel = try CastKernels.make(from: operand.type, to: type)
        let operand = try compile(operand)
        return { batch, frame in
            let column = operand(batch, frame)
            let own = frame.errors.entries.count
            let result = kernel([column], batch.count, frame)
            if frame.errors.entries.count > own { frame.errors.locate(from: own, at: span) }
            return result
        }
    }
}
