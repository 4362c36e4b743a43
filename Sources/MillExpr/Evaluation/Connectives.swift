import MillBase
import MillColumnar

/// The forms that decide which of their operands count: AND, OR, CASE, COALESCE, IS NULL, IS NOT DISTINCT FROM.
enum Connectives {
    /// Evaluates an operand with its errors kept apart; its failed rows are missing.
    private static func isolated(_ operand: Evaluator, _ batch: DeltaBatch, _ frame: EvaluationFrame) -> (Column, [RowErrors.Entry]) {
        let before = frame.errors.entries.count
        let column = operand(batch, frame)
        let errors = frame.errors.split(from: before)
        return errors.isEmpty ? (column, errors) : (RowErrorRules.nullified(column, errors), errors)
    }

    /// AND is decided by a false operand (0), OR by a true one (1).
    static func junction(_ operands: [BoundExpression], deciding: UInt8) throws(SQLError) -> Evaluator {
        var evaluators: [Evaluator] = []
        for operand in operands { evaluators.append(try ExpressionCompiler.compile(operand)) }
        let parts = evaluators
        return { batch, frame in
            var columns: [Column] = []
            var errors: [RowErrors.Entry] = []
            for part in parts {
                let (column, failed) = isolated(part, batch, frame)
                columns.append(column)
                errors += failed
            }
            let result = combine(columns, batch.count, deciding)
            // A row that another operand decided has no error.
            if !errors.isEmpty { frame.errors.append(RowErrorRules.firstOfEachRow(errors.filter { result.isNull($0.row) })) }
            return result
        }
    }

    private static func combine(_ columns: [Column], _ count: Int, _ deciding: UInt8) -> Column {
        let result = Column(.boolean, uninitialized: count)
        let out = result.values(UInt8.self)
        if columns.allSatisfy(\.hasNoNulls) {
            out.update(repeating: deciding ^ 1, count: count)
            for column in columns {
                let flags = UnsafePointer(column.values(UInt8.self))
                if deciding == 0 { for row in 0..<count { out[row] &= flags[row] } } else { for row in 0..<count { out[row] |= flags[row] } }
            }
            return result
        }
        // 1: decided, 2: something is missing.
        var state = [UInt8](repeating: 0, count: count)
        for column in columns {
            let flags = UnsafePointer(column.values(UInt8.self))
            if let validity = column.validity {
                for row in 0..<count {
                    let present = UInt8(truncatingIfNeeded: validity[row >> 6] &>> UInt64(row & 63) & 1)
                    state[row] |= (present & (flags[row] ^ deciding ^ 1)) | (present ^ 1) &<< 1
                }
            } else {
                for row in 0..<count { state[row] |= flags[row] ^ deciding ^ 1 }
            }
        }
        for row in 0..<count {
            if state[row] & 1 != 0 { out[row] = deciding } else if state[row] == 0 { out[row] = deciding ^ 1 } else { result.setNull(row) }
        }
        return result
    }

    static func isNull(_ column: Column) -> Column {
        let count = column.count
        let result = Column(.boolean, uninitialized: count)
        let out = result.values(UInt8.self)
        guard let validity = column.validity else {
            out.update(repeating: 0, count: count)
            return result
        }
        for row in 0..<count { out[row] = UInt8(truncatingIfNeeded: ~(validity[row >> 6] &>> UInt64(row & 63)) & 1) }
        return result
    }

    static func isNotDistinct(_ a: Column, _ b: Column) -> Column {
        let result = Column(.boolean, uninitialized: a.count)
        let out = result.values(UInt8.self)
        for row in 0..<a.count { out[row] = a.equals(row, b, row) ? 1 : 0 }
        return result
    }

    // MARK: Choosing among columns

    /// Which of several columns a row takes its value from.
    private struct Choice {
        static let open: Int32 = -1
        static let missing: Int32 = -2
        var sources: [Int32]
        var undecided: Int

        init(_ count: Int) {
            sources = Array(repeating: Self.open, count: count)
            undecided = count
        }

        mutating func decide(_ row: Int, _ source: Int32) {
            sources[row] = source
            undecided -= 1
        }
    }

    static func caseWhen(_ branches: [BoundExpression.CaseBranch], _ otherwise: BoundExpression?, _ type: SQLType) throws(SQLError) -> Evaluator {
        var compiled: [(condition: Evaluator, result: Evaluator)] = []
        for branch in branches {
            compiled.append((try ExpressionCompiler.compile(branch.condition), try ExpressionCompiler.compile(branch.result)))
        }
        let parts = compiled
        let last = try otherwise.map { (expression) throws(SQLError) in try ExpressionCompiler.compile(expression) }
        return { batch, frame in
            var choice = Choice(batch.count)
            var columns: [Column] = []
            var kept: [RowErrors.Entry] = []
            func take(_ evaluator: Evaluator) {
                let (column, errors) = isolated(evaluator, batch, frame)
                let source = Int32(columns.count)
                kept += errors.filter { choice.sources[$0.row] == source }
                columns.append(column)
            }
            for part in parts where choice.undecided > 0 {
                let (condition, errors) = isolated(part.condition, batch, frame)
                for entry in errors where choice.sources[entry.row] == Choice.open {
                    kept.append(entry)
                    choice.decide(entry.row, Choice.missing)
                }
                let flags = UnsafePointer(condition.values(UInt8.self))
                let source = Int32(columns.count)
                let before = choice.undecided
                for row in 0..<batch.count where flags[row] != 0 && choice.sources[row] == Choice.open { choice.decide(row, source) }
                if choice.undecided < before { take(part.result) }
            }
            if let last, choice.undecided > 0 {
                let source = Int32(columns.count)
                for row in 0..<batch.count where choice.sources[row] == Choice.open { choice.decide(row, source) }
                take(last)
            }
            frame.errors.append(RowErrorRules.firstOfEachRow(kept))
            return assemble(columns, choice.sources, type)
        }
    }

    static func coalesce(_ operands: [BoundExpression], _ type: SQLType) throws(SQLError) -> Evaluator {
        var evaluators: [Evaluator] = []
        for operand in operands { evaluators.append(try ExpressionCompiler.compile(operand)) }
        let parts = evaluators
        return { batch, frame in
            var choice = Choice(batch.count)
            var columns: [Column] = []
            for part in parts where choice.undecided > 0 {
                let (column, errors) = isolated(part, batch, frame)
                if columns.isEmpty, errors.isEmpty, column.hasNoNulls { return column }
                for entry in RowErrorRules.firstOfEachRow(errors) where choice.sources[entry.row] == Choice.open {
                    frame.errors.append([entry])
                    choice.decide(entry.row, Choice.missing)
                }
                let source = Int32(columns.count)
                for row in 0..<batch.count where choice.sources[row] == Choice.open && !column.isNull(row) { choice.decide(row, source) }
                columns.append(column)
            }
            return assemble(columns, choice.sources, type)
        }
    }

    private static func assemble(_ columns: [Column], _ sources: [Int32], _ type: SQLType) -> Column {
        let result = Column(type, uninitialized: sources.count)
        for column in columns { result.keep(column.heaps) }
        switch type.physical.stride {
        case 1: fill(result, columns, sources, UInt8.self)
        case 2: fill(result, columns, sources, UInt16.self)
        case 4: fill(result, columns, sources, UInt32.self)
        case 8: fill(result, columns, sources, UInt64.self)
        case 16: fill(result, columns, sources, StringView.self)
        default: fill(result, columns, sources, Decimal.self)
        }
        return result
    }

    @inline(__always)
    private static func fill<T>(_ result: Column, _ columns: [Column], _ sources: [Int32], _: T.Type) {
        let out = result.values(T.self)
        for row in 0..<sources.count {
            let source = Int(sources[row])
            if source < 0 || columns[source].isNull(row) { result.setNull(row) } else { out[row] = columns[source].values(T.self)[row] }
        }
    }
}
