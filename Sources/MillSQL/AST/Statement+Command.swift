/// What a statement is called: the tag of CommandComplete, and how errors name it.
extension Statement {
    /// PostgreSQL's command tag without a number of rows: `CREATE MATERIALIZED VIEW`, `SELECT`.
    package var command: String {
        switch self {
        case .query: "SELECT"
        case .createRelation(let relation): relation.kind == .source ? "CREATE SOURCE" : "CREATE TABLE"
        case .createView(let view): view.isMaterialized ? "CREATE MATERIALIZED VIEW" : "CREATE VIEW"
        case .createSink: "CREATE SINK"
        case .createNamespace(let namespace): "CREATE \(namespace.kind.rawValue)"
        case .createIndex: "CREATE INDEX"
        case .drop(let drop): "DROP \(drop.kind.rawValue)"
        case .alter(let alter): "ALTER \(alter.kind.rawValue)"
        case .comment: "COMMENT"
        case .insert: "INSERT"
        case .update: "UPDATE"
        case .delete: "DELETE"
        case .truncate: "TRUNCATE TABLE"
        case .copy: "COPY"
        case .show: "SHOW"
        case .describe: "DESCRIBE"
        case .set: "SET"
        case .reset: "RESET"
        case .explain: "EXPLAIN"
        case .transaction(let transaction): transaction.command
        case .cursor(let cursor): cursor.command
        case .prepared(let prepared): prepared.command
        case .discard(let what): "DISCARD \(what.rawValue)"
        case .flush: "FLUSH"
        case .wait: "WAIT"
        case .cancelJobs: "CANCEL JOBS"
        case .jobControl(let control): "\(control.verb.rawValue) \(control.kind.rawValue)"
        case .replayRejects: "REPLAY REJECTS"
        }
    }
}

extension Transaction {
    fileprivate var command: String {
        switch self {
        case .begin: "BEGIN"
        case .commit: "COMMIT"
        case .rollback, .rollbackTo: "ROLLBACK"
        case .savepoint: "SAVEPOINT"
        case .release: "RELEASE"
        case .set: "SET"
        }
    }
}

extension CursorStatement {
    fileprivate var command: String {
        switch self {
        case .declare: "DECLARE CURSOR"
        case .fetch(_, _, let isMove): isMove ? "MOVE" : "FETCH"
        case .close(let cursor): cursor == nil ? "CLOSE CURSOR ALL" : "CLOSE CURSOR"
        }
    }
}

extension PreparedStatement {
    fileprivate var command: String {
        switch self {
        case .prepare: "PREPARE"
        case .execute: "EXECUTE"
        case .deallocate(let name): name == nil ? "DEALLOCATE ALL" : "DEALLOCATE"
        }
    }
}
