/// Which statement is written.
extension SQLPrinter {
    package mutating func write(_ statement: Statement) {
        switch statement {
        case .query(let query): write(query)
        case .createRelation(let relation): write(relation)
        case .createView(let view): write(view)
        case .createSink(let sink): write(sink)
        case .createNamespace(let namespace): write(namespace)
        case .createIndex(let index): write(index)
        case .drop(let drop): write(drop)
        case .alter(let alter): write(alter)
        case .comment(let comment): write(comment)
        case .insert(let insert): write(insert)
        case .update(let update): write(update)
        case .delete(let delete): write(delete)
        case .truncate(let truncate): write(truncate)
        case .copy(let copy): write(copy)
        case .show, .describe, .set, .reset, .explain, .transaction, .cursor, .prepared, .discard, .flush, .wait, .cancelJobs, .jobControl,
            .replayRejects:
            writeSession(statement)
        }
    }

    private mutating func writeSession(_ statement: Statement) {
        switch statement {
        case .show(let show): write(show)
        case .describe(let name):
            write("DESCRIBE ")
            write(name)
        case .set(let set): write(set)
        case .reset(let name):
            write("RESET ")
            if let name { write(name) } else { write("ALL") }
        case .explain(let explain): write(explain)
        case .transaction(let transaction): write(transaction)
        case .cursor(let cursor): write(cursor)
        case .prepared(let prepared): write(prepared)
        case .discard(let discard): write("DISCARD \(discard.rawValue)")
        case .flush: write("FLUSH")
        case .wait: write("WAIT")
        case .cancelJobs(let jobs):
            write("CANCEL JOBS ")
            list(jobs) { $0.write(String($1)) }
        case .jobControl(let control): write(control)
        case .replayRejects(let replay): write(replay)
        default: break
        }
    }
}
